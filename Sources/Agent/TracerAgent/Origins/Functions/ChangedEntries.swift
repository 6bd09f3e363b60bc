// Changes of a module's code that lead its functions to their stubs while threads run, and back: each is one of a single instruction
// (EntryJump.swift, or the distance of a call), so it does not matter where any thread is, or comes back to.
import CSupport
import CTraceLayout

struct CodeChange: BitwiseCopyable {
    /// Address of the first byte that changes.
    let address: UInt64
    /// How many bytes do, and how many must stay what they are.
    let count: UInt8, needed: UInt8
    fileprivate(set) var isInPlace = false
    fileprivate var isWritten = false // to the copy that is about to be put there
    fileprivate(set) var isChosen = true
    /// The bytes, the first one lowest.
    let old: UInt64, new: UInt64
    /// The function that is recorded in this way.
    let function: UInt64

    /// Writes the new bytes, or the old ones, to `code`, in a block that ends at `end`. False: something else is there.
    @inline(never) func write(isPutting: Bool, to code: UnsafeMutableRawPointer, until end: UnsafeMutableRawPointer) -> Bool {
        // Whole words, also at the end of a block.
        let start = min(code, end - 8), shift = UInt64((code - start) &* 8)
        let changed = CodeChange.lowest(Int(count)), all = CodeChange.lowest(min(Int(needed), end - code))
        let there = start.loadUnaligned(as: UInt64.self), from = isPutting ? old : new, to = isPutting ? new : old
        if (there &>> shift ^ (from & changed | old & ~changed)) & all != 0 { return false }
        if EntryPatch.changesWords {
            code.storeBytes(of: UInt32(truncatingIfNeeded: to), as: UInt32.self)
        } else {
            start.storeBytes(of: there & ~(changed &<< shift) | (to & changed) &<< shift, as: UInt64.self)
        }
        return true
    }
    private static func lowest(_ bytes: Int) -> UInt64 { bytes >= 8 ? .max : 1 &<< UInt64(bytes &* 8) &- 1 }
}

/// The changes of one module, for as long as the process lives: it may be patched again. ModuleLock is held.
struct ChangedEntries: BitwiseCopyable {
    private var changes: UnsafeMutablePointer<CodeChange>?
    private var capacity = 0
    private var siteCount = 0 // call sites come first, by function; in what follows, entries are at the end, by address
    private var firstEntry = 0
    /// Some may be in place.
    private(set) var mayBeInPlace = false
    /// Sums of the module's pages as they were put, from the lowest one; 0: a page is not only by that another than the file's.
    private var sums: UnsafeMutablePointer<UInt64>?
    /// For each of these pages, and behind the last one, the first entry of a function that is not below it.
    private var firsts: UnsafeMutablePointer<UInt32>?
    private var pageCount = 0, lowest: UInt64 = 0

    /// nil: there is no memory.
    init?(capacity: Int, of image: Image) {
        let page = UInt64(Memory.pageBytes)
        self.capacity = capacity
        firstEntry = capacity
        lowest = image.low & ~(page &- 1)
        pageCount = Int((image.high &- lowest &+ page &- 1) / page)
        guard let pages = Memory.pages(byteCount) else { return nil }
        changes = pages.bindMemory(to: CodeChange.self, capacity: capacity)
        let tables = pages + capacity &* MemoryLayout<CodeChange>.stride
        sums = tables.assumingMemoryBound(to: UInt64.self)
        firsts = (tables + pageCount &* MemoryLayout<UInt64>.stride).assumingMemoryBound(to: UInt32.self)
    }
    @inline(never) func release() { Memory.release(UnsafeMutableRawPointer(changes), byteCount) }
    private var byteCount: Int {
        let word = MemoryLayout<UInt32>.stride
        return capacity &* MemoryLayout<CodeChange>.stride &+ pageCount &* (MemoryLayout<UInt64>.stride &+ word) &+ word
    }

    // MARK: - Choice

    /// The call site at `word` leads to the stub of a function.
    mutating func addSite(_ word: UInt64, to stub: UInt64, function: UInt64) {
        changes![siteCount] = CodeChange(
            address: word, count: 4, needed: 4, old: UInt64(UnsafePointer<UInt8>(bitPattern: UInt(word))!.word(4)),
            new: EntryPatch.siteWord(word, to: stub), function: function)
        siteCount = siteCount &+ 1
    }
    /// A function's entry is to lead to its stub; functions come with falling addresses. False: none of its first instructions can become a
    /// jump that leads to where memory is free.
    mutating func addEntry(
        _ function: plan_function, base: UInt64, to stub: UInt64, in image: UnsafePointer<Image>, _ landings: inout Landings
    )
        -> Bool
    {
        EntryPatch.forEachJump(function, base: base, in: image) { jump in
            // No change of another function may be among the bytes that are to stay.
            if firstEntry < capacity && jump.end > changes![firstEntry].address || hasSite(in: jump.address..<jump.end)
                || ExchangedCode.block(of: jump.address..<(jump.address &+ UInt64(jump.count)), in: image.pointee) == nil
            {
                return false
            }
            var target = stub
            if jump.undoCount > 0 || stub < jump.low || stub > jump.high {
                let nearLow = max(jump.low, stub &- min(ChangedEntries.near, stub)), nearHigh = min(jump.high, stub &+ ChangedEntries.near)
                let bytes = EntryPatch.landingBytes(jump)
                guard
                    let landing = (nearLow <= nearHigh ? landings.take(bytes, from: nearLow, to: nearHigh) : nil)
                        ?? landings.take(bytes, from: jump.low, to: jump.high)
                else { return false }
                EntryPatch.writeLanding(at: UnsafeMutableRawPointer(bitPattern: UInt(landing))!, jump, to: stub)
                target = landing
            }
            firstEntry = firstEntry &- 1
            changes![firstEntry] = CodeChange(
                address: jump.address, count: UInt8(jump.count), needed: UInt8(jump.byteCount),
                old: UnsafePointer<UInt8>(bitPattern: UInt(jump.address))!.word(jump.byteCount), new: EntryPatch.word(jump, to: target),
                function: base &+ UInt64(function.address))
            return true
        }
    }
    /// Distance of landings that can be anywhere from their stubs.
    private static let near: UInt64 = 32 << 20
    private func hasSite(in bytes: Range<UInt64>) -> Bool {
        for n in 0..<siteCount where changes![n].address < bytes.upperBound && changes![n].address &+ 4 > bytes.lowerBound { return true }
        return false
    }

    // MARK: - In place

    /// The functions, by their addresses, that `put` is to change.
    mutating func choose(_ isChosen: (UInt64) -> Bool) {
        for n in 0..<capacity where changes![n].count > 0 { changes![n].isChosen = isChosen(changes![n].function) }
    }
    /// Returns how many of the functions are recorded. `planned` is asked for each; nil: all are as their plan says.
    mutating func put(in image: Image, _ planned: UnsafeMutablePointer<PlannedCode>?) -> UInt32 {
        mayBeInPlace = true // before the first: a child that is forked meanwhile has some
        exchange(in: image, isPutting: true, planned)
        var count: UInt32 = 0, n = 0
        while n < siteCount {
            let function = changes![n].function
            var areAll = true
            while n < siteCount && changes![n].function == function {
                areAll = areAll && changes![n].isInPlace
                n = n &+ 1
            }
            if areAll { count &+= 1 }
        }
        for n in firstEntry..<capacity where changes![n].isInPlace { count &+= 1 }
        return count
    }
    /// What somebody else has changed since is left.
    @inline(never) mutating func putBack(in image: Image) {
        mayBeInPlace = false
        exchange(in: image, isPutting: false, nil)
        for n in 0..<capacity where changes![n].isInPlace { mayBeInPlace = true } // the kernel refuses: the next time
    }
    /// The module is no longer mapped.
    mutating func forget() {
        mayBeInPlace = false
        for n in 0..<capacity { changes![n].isInPlace = false }
    }

    /// All have been added.
    @inline(never) func finish() {
        var n = firstEntry
        for page in 0...pageCount {
            let address = lowest &+ UInt64(page &* Memory.pageBytes)
            while n < capacity && changes![n].function < address { n = n &+ 1 }
            firsts![page] = UInt32(n)
        }
    }
    /// Returns true if the function's entry leads to its stub.
    func leads(_ function: UInt64) -> Bool {
        guard let changes, function >= lowest else { return false }
        let page = Int((function &- lowest) / UInt64(Memory.pageBytes))
        if page >= pageCount { return false }
        // The entries of one page alone, since to look at each of the others is a cache miss.
        var low = Int(firsts![page]), high = Int(firsts![page &+ 1])
        let end = high
        while low < high {
            let middle = (low &+ high) / 2
            if changes[middle].function < function { low = middle &+ 1 } else { high = middle }
        }
        return low < end && changes[low].function == function && changes[low].isInPlace
    }

    /// Puts the changes that are not there in place, or back.
    @inline(never) private func exchange(in image: Image, isPutting: Bool, _ planned: UnsafeMutablePointer<PlannedCode>?) {
        var latest: Range<UInt64> = 0..<0, exchanged = ExchangedCode(image)
        defer { exchanged.end() }
        for n in 0..<capacity where changes![n].isDue(isPutting) {
            let bytes = changes![n].bytes
            if bytes.lowerBound >= latest.lowerBound && bytes.lowerBound < latest.upperBound { continue } // the kernel has refused
            guard let block = ExchangedCode.block(of: bytes, in: image) else { continue }
            latest = block
            let sums = sums! + Int((block.lowerBound &- lowest) / UInt64(Memory.pageBytes))
            func go(_ step: Step, _ copy: UnsafeMutableRawPointer? = nil) -> UInt64 {
                self.go(step, from: n, in: block, isPutting, copy, planned)
            }
            let isExchanged =
                isPutting
                ? exchanged.put(block, in: go(.collect), sums: sums) { _ = go(.write, $0) }
                : exchanged.putBack(block, sums: sums) { _ = go(.write, $0) }
            if isExchanged { _ = go(.settle) }
        }
    }
    private enum Step { case collect, write, settle }
    /// Takes a step with each change of the block that is to be put in place, or back: collects the pages in which it is written and read, a bit
    /// each, which are returned; writes it to a copy of the block; notes that the copy is in place.
    @inline(never) private func go(
        _ step: Step, from first: Int, in block: Range<UInt64>, _ isPutting: Bool, _ copy: UnsafeMutableRawPointer?,
        _ planned: UnsafeMutablePointer<PlannedCode>?
    ) -> UInt64 {
        let page = UInt64(Memory.pageBytes)
        var pages: UInt64 = 0, n = first &- 1
        while true {
            n = n &+ 1
            if n >= siteCount { n = max(n, firstEntry) }
            if n >= capacity || n >= firstEntry && changes![n].address >= block.upperBound { return pages }
            if !changes![n].isWanted(in: block, isPutting) { continue }
            let offset = changes![n].address &- block.lowerBound
            switch step {
            case .collect: pages |= 1 &<< (offset / page) | 1 &<< ((min(offset &+ 8, block.upperBound &- block.lowerBound) &- 1) / page)
            case .write:
                let end = copy! + Int(block.upperBound &- block.lowerBound)
                let isAsPlanned = planned?.pointee.has(changes![n], isSite: n < siteCount, BlockCopy(block: block, copy: copy!)) ?? true
                changes![n].isWritten =
                    isAsPlanned && changes![n].write(isPutting: isPutting, to: copy! + Int(offset), until: end)
            case .settle: changes![n].isInPlace = isPutting && changes![n].isWritten
            }
        }
    }
}

extension CodeChange {
    fileprivate var bytes: Range<UInt64> { address..<(address &+ UInt64(count)) }
    fileprivate func isDue(_ isPutting: Bool) -> Bool { count > 0 && isInPlace != isPutting && (isChosen || !isPutting) }
    fileprivate func isWanted(in block: Range<UInt64>, _ isPutting: Bool) -> Bool {
        isDue(isPutting) && address >= block.lowerBound && address &+ UInt64(count) <= block.upperBound
    }
}

extension UnsafePointer<UInt8> {
    /// Returns so many bytes, the first one lowest.
    fileprivate func word(_ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for n in 0..<count { word |= UInt64(self[n]) &<< UInt64(n &* 8) }
        return word
    }
}
