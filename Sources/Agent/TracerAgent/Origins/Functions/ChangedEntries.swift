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
    fileprivate(set) var isChosen = true
    /// The bytes, the first one lowest.
    let old: UInt64, new: UInt64
    /// The function that is recorded in this way.
    let function: UInt64

    /// `code`: of these bytes, as far as they are in a block that ends at `end`.
    @inline(never) func matches(_ code: UnsafeRawPointer, _ wanted: UInt64, until end: UnsafeRawPointer) -> Bool {
        if code + 8 <= end { // nearly always
            let changed = CodeChange.lowest(Int(count)), all = CodeChange.lowest(Int(needed))
            return (code.loadUnaligned(as: UInt64.self) ^ (wanted & changed | old & ~changed)) & all == 0
        }
        for n in 0..<Int(needed) where code + n < end {
            let isChanged = n < Int(count)
            if code.load(fromByteOffset: n, as: UInt8.self) != UInt8(truncatingIfNeeded: (isChanged ? wanted : old) &>> UInt64(n &* 8)) {
                return false
            }
        }
        return true
    }
    private static func lowest(_ bytes: Int) -> UInt64 { bytes >= 8 ? .max : 1 &<< UInt64(bytes &* 8) &- 1 }
    func write(_ wanted: UInt64, to code: UnsafeMutableRawPointer) {
        if EntryPatch.changesWords { return code.storeBytes(of: UInt32(truncatingIfNeeded: wanted), as: UInt32.self) }
        for n in 0..<Int(count) {
            code.storeBytes(of: UInt8(truncatingIfNeeded: wanted &>> UInt64(n &* 8)), toByteOffset: n, as: UInt8.self)
        }
    }
}

/// The changes of one module, for as long as the process lives: it may be patched again. ModuleLock is held.
struct ChangedEntries: BitwiseCopyable {
    private var changes: UnsafeMutablePointer<CodeChange>?
    private var capacity = 0
    private var siteCount = 0 // call sites come first, by function; in what follows, entries are at the end, by address
    private var firstEntry = 0
    /// Some may be in place.
    private(set) var mayBeInPlace = false

    /// nil: there is no memory.
    init?(capacity: Int) {
        guard let pages = Memory.pages(max(capacity, 1) &* MemoryLayout<CodeChange>.stride) else { return nil }
        changes = pages.bindMemory(to: CodeChange.self, capacity: capacity)
        self.capacity = capacity
        firstEntry = capacity
    }
    func release() { Memory.release(UnsafeMutableRawPointer(changes), max(capacity, 1) &* MemoryLayout<CodeChange>.stride) }

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
    /// Returns how many of the functions are recorded.
    mutating func put(in image: Image) -> UInt32 {
        mayBeInPlace = true // before the first: a child that is forked meanwhile has some
        exchange(in: image, isPutting: true)
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
    mutating func putBack(in image: Image) {
        mayBeInPlace = false
        exchange(in: image, isPutting: false)
        for n in 0..<capacity where changes![n].isInPlace { mayBeInPlace = true } // the kernel refuses: the next time
    }
    /// The module is no longer mapped.
    mutating func forget() {
        mayBeInPlace = false
        for n in 0..<capacity { changes![n].isInPlace = false }
    }

    /// Returns true if the function's entry leads to its stub.
    func leads(_ function: UInt64) -> Bool {
        guard let changes else { return false }
        var low = firstEntry, high = capacity
        while low < high {
            let middle = (low &+ high) / 2
            if changes[middle].function < function { low = middle &+ 1 } else { high = middle }
        }
        return low < capacity && changes[low].function == function && changes[low].isInPlace
    }

    /// Puts the changes that are not there in place, or back.
    @inline(never) private func exchange(in image: Image, isPutting: Bool) {
        var latest: Range<UInt64> = 0..<0, exchanged = ExchangedCode(image)
        defer { exchanged.end() }
        for n in 0..<capacity where changes![n].isDue(isPutting) {
            let bytes = changes![n].bytes
            if bytes.lowerBound >= latest.lowerBound && bytes.lowerBound < latest.upperBound { continue } // the kernel has refused
            guard let block = ExchangedCode.block(of: bytes, in: image) else { continue }
            latest = block
            let isExchanged = exchanged.exchange(block, isPutting: isPutting) { copy in
                let end = UnsafeRawPointer(copy) + Int(block.upperBound &- block.lowerBound)
                forEach(from: n, in: block, isPutting) { k in
                    let change = changes![k], code = copy + Int(change.address &- block.lowerBound)
                    if change.matches(code, isPutting ? change.old : change.new, until: end) {
                        change.write(isPutting ? change.new : change.old, to: code)
                    }
                }
            }
            if !isExchanged { continue }
            forEach(from: n, in: block, isPutting) { k in
                let code = UnsafeRawPointer(bitPattern: UInt(changes![k].address))!
                changes![k].isInPlace = isPutting && changes![k].matches(code, changes![k].new, until: code + Int(changes![k].needed))
            }
        }
    }
    /// Calls `body` with the number of each change of the block that is to be put in place, or back.
    @inline(__always) private func forEach(from first: Int, in block: Range<UInt64>, _ isPutting: Bool, _ body: (Int) -> Void) {
        var n = first
        while n < siteCount {
            if changes![n].isWanted(in: block, isPutting) { body(n) }
            n = n &+ 1
        }
        n = max(n, firstEntry)
        while n < capacity && changes![n].address < block.upperBound {
            if changes![n].isWanted(in: block, isPutting) { body(n) }
            n = n &+ 1
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
