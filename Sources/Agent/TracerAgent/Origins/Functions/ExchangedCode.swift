// Code that becomes another while threads may be running in it.
//
// No store puts several bytes in place so that everybody sees either all of the old or all of the new ones (Intel SDM volume 3, "Handling
// Self- and Cross-Modifying Code"); nor may code be writable while it is executed. So a block of pages is mapped from the file once more
// (FilePages.swift), becomes there what it is to be, and mremap(2) moves it over the block: the kernel takes the old pages away before it
// puts the new ones in, and holds mmap_lock meanwhile (mm/mremap.c, mremap_to), so that whoever comes waits in a page fault. No
// instruction is read from both. In /proc/self/maps the code is the file's before and afterwards, and a page that is as in the file is
// the file's own.
import CSupport
import CTraceLayout

struct ExchangedCode {
    /// False: an emulator does not move pages as the kernel does.
    static var isPossible: Bool { TraceSpace.isRealKernel || isByWords }
    /// An emulator translates again what is written to, a word at a time.
    private static var isByWords: Bool { EntryPatch.changesWords && !TraceSpace.isRealKernel }

    private static var mostBytes: Int { Memory.pageBytes &* 64 }

    /// The copy of a block. Kept: to make its pages anew for each of some hundred blocks costs more than all copying, and a process that may map
    /// nothing more needs it to be put back.
    nonisolated(unsafe) private static var space: UnsafeMutableRawPointer?
    private static func copySpace() -> UnsafeMutableRawPointer? {
        if space == nil { space = Memory.pages(mostBytes) }
        return space
    }

    /// As much of the module's code as is exchanged at once. Always the same blocks, so that they stay few: each is a mapping of its own
    /// afterwards, of which a process has 65,530 (vm.max_map_count). nil: the bytes are in two of them, or this code is not to be
    /// changed, or it lies in the module's first page, which FilePages takes for a moment.
    static func block(of bytes: Range<UInt64>, in image: Image) -> Range<UInt64>? { part(of: bytes, in: image, atMost: mostBytes) }
    private static func part(of bytes: Range<UInt64>, in image: Image, atMost most: Int) -> Range<UInt64>? {
        let page = UInt64(Memory.pageBytes), most = UInt64(most)
        if bytes.lowerBound < (image.low & ~(page &- 1)) &+ page && !isByWords { return nil }
        for n in 0..<image.segmentCount {
            let segment = image.segment(n), start = image.bias &+ segment.address
            if segment.type != ProgramHeader.load || bytes.lowerBound &- start >= segment.memoryBytes { continue }
            if segment.flags != ProgramHeader.readable | ProgramHeader.executable { return nil }
            let segmentLow = start & ~(page &- 1), segmentHigh = (start &+ segment.memoryBytes &+ page &- 1) & ~(page &- 1)
            let low = segmentLow &+ (bytes.lowerBound &- segmentLow) / most &* most, high = min(low &+ most, segmentHigh)
            return bytes.upperBound <= high ? low..<high : nil
        }
        return nil
    }

    private let image: Image
    /// The file's pages around the latest block.
    private var pages: FilePages?
    private let survey: MemorySurvey

    /// For one or more blocks of a module, until `end`.
    init(_ image: Image) {
        self.image = image
        survey = MemorySurvey.current()
    }
    func end() {
        pages?.release()
        survey.end()
    }

    /// Puts what `change` makes of a copy of the block in its place. False: it is as it was.
    /// ModuleLock is held. `isOnly`: no other block follows.
    @inline(never) mutating func exchange(_ block: Range<UInt64>, isOnly: Bool = false, _ change: (UnsafeMutableRawPointer) -> Void) -> Bool
    {
        if ExchangedCode.isByWords { return changeWords(block, change) }
        guard let wanted = ExchangedCode.copySpace(), let code = filePages(of: block, isOnly) else { return false }
        let byteCount = Int(block.upperBound &- block.lowerBound)
        wanted.copyMemory(from: ExchangedCode.live(block), byteCount: byteCount)
        change(wanted)
        return move(code, to: block, isReady: ExchangedCode.become(wanted, code, from: 0, to: byteCount))
    }
    /// The same where `change` reads and writes `pages` alone, a bit each, none of which is to be the file's own: they are written where they
    /// will lie, and no other copy is made. `sums`: one a page of the block, for `putBack`.
    @inline(never) mutating func put(
        _ block: Range<UInt64>, in pages: UInt64, sums: UnsafeMutablePointer<UInt64>, _ change: (UnsafeMutableRawPointer) -> Void
    ) -> Bool {
        if ExchangedCode.isByWords { return changeWords(block, change) }
        guard ExchangedCode.copySpace() != nil, let code = filePages(of: block, false) else { return false }
        let page = Memory.pageBytes, count = Int(block.upperBound &- block.lowerBound) / page, live = ExchangedCode.live(block)
        let own = survey.ownPages(of: block)
        // First those: to look at a page maps its neighbours, too (mm/memory.c, do_fault_around), and such a one costs more to write to.
        var n = 0
        while let run = ExchangedCode.run(of: pages, from: n, count) {
            if Memory.populate(code + run.lowerBound &* page, run.count &* page) != 0 { return move(code, to: block, isReady: false) }
            n = run.upperBound
        }
        var others = pages & own // somebody else may have changed them before
        for n in 0..<count where others &>> UInt64(n) & 1 != 0 {
            let offset = n &* page
            if Memory.isSame(live + offset, code + offset, page) {
                others &= ~(1 &<< UInt64(n))
            } else {
                (code + offset).copyMemory(from: live + offset, byteCount: page)
            }
        }
        n = 0
        while let run = ExchangedCode.run(of: own & ~pages, from: n, count) {
            if !ExchangedCode.become(live, code, from: run.lowerBound &* page, to: run.upperBound &* page) {
                return move(code, to: block, isReady: false)
            }
            n = run.upperBound
        }
        change(code)
        for n in 0..<count { sums[n] = (pages & ~others) &>> UInt64(n) & 1 != 0 ? ExchangedCode.sum(of: code + n &* page) : 0 }
        return move(code, to: block, isReady: true)
    }
    /// Puts back what `put` has written, if that is all by which the block's pages differ from the file's: then nothing is copied or looked
    /// at, and the file's pages come as they are touched. Otherwise as `exchange` does it.
    @inline(never) mutating func putBack(
        _ block: Range<UInt64>, sums: UnsafePointer<UInt64>, _ change: (UnsafeMutableRawPointer) -> Void
    ) -> Bool {
        if ExchangedCode.isByWords || !areAsPut(block, sums) { return exchange(block, change) }
        if let code = filePages(of: block, false) { return move(code, to: block, isReady: true) }
        return mayChange(block) && takeAway(block)
    }
    /// For a process that may map nothing more (RLIMIT_AS): the block's pages are taken over the copy's, and the block's mapping, which is still
    /// there, has the file's from then on (mm/mremap.c, MREMAP_DONTUNMAP). It is the same for whoever runs there. But a block stays a
    /// mapping of its own then, so this is the exception.
    private func takeAway(_ block: Range<UInt64>) -> Bool {
        guard let space = ExchangedCode.copySpace() else { return false }
        let byteCount = Int(block.upperBound &- block.lowerBound)
        let moved = SystemCall.call(
            SystemCall.mremap, Int(bitPattern: UInt(block.lowerBound)), byteCount, byteCount, Mapping.mayMoveTo | Mapping.dontUnmap,
            Int(bitPattern: space))
        // A kernel that has refused may have unmapped the copy, and somebody else may have the addresses.
        if failed(moved) || !Memory.replace(space, byteCount) { ExchangedCode.space = nil }
        return !failed(moved)
    }
    private func areAsPut(_ block: Range<UInt64>, _ sums: UnsafePointer<UInt64>) -> Bool {
        let own = survey.ownPages(of: block), page = Memory.pageBytes
        for n in 0..<Int(block.upperBound &- block.lowerBound) / page where own &>> UInt64(n) & 1 != 0 {
            if sums[n] == 0 || sums[n] != ExchangedCode.sum(of: ExchangedCode.live(block) + n &* page) { return false }
        }
        return true
    }
    /// Another number for nearly any other content: each step is reversible, and carries every bit to others.
    @inline(never) private static func sum(of page: UnsafeRawPointer) -> UInt64 {
        let factor: UInt64 = 0xff51_afd7_ed55_8ccd
        func mixed(_ sum: UInt64, _ offset: Int) -> UInt64 { // two words by one product, which is what takes the time
            let product = (sum ^ page.load(fromByteOffset: offset, as: UInt64.self)) &* factor
            return (product &<< 29 | product &>> 35) ^ page.load(fromByteOffset: offset &+ 8, as: UInt64.self)
        }
        var a: UInt64 = 1, b: UInt64 = 2, c: UInt64 = 3, d: UInt64 = 4, offset = 0
        while offset < Memory.pageBytes { // four that do not wait for each other
            tracer_prefetch(page + (offset &+ 2048)) // the processor itself looks no further than the end of a page
            a = mixed(a, offset)
            b = mixed(b, offset &+ 16)
            c = mixed(c, offset &+ 32)
            d = mixed(d, offset &+ 48)
            offset = offset &+ 64
        }
        return (((a &* factor ^ b) &* factor ^ c) &* factor ^ d) &* factor
    }
    private static func live(_ block: Range<UInt64>) -> UnsafeRawPointer { UnsafeRawPointer(bitPattern: UInt(block.lowerBound))! }
    /// The numbers of the first pages from `first` on, of these, a bit each, that lie together.
    @inline(never) private static func run(of pages: UInt64, from first: Int, _ count: Int) -> Range<Int>? {
        if first >= count { return nil }
        let start = first &+ (pages &>> UInt64(first)).trailingZeroBitCount
        return start >= count ? nil : start..<min(start &+ (~(pages &>> UInt64(start))).trailingZeroBitCount, count)
    }
    /// The file's pages, where the block may be exchanged.
    @inline(never) private mutating func filePages(of block: Range<UInt64>, _ isOnly: Bool) -> UnsafeMutableRawPointer? {
        mayChange(block) && findPages(around: block, isOnly) ? pages!.pages(of: block) : nil
    }
    private func mayChange(_ block: Range<UInt64>) -> Bool {
        if isWritable(block) { return false } // a program that has made its code writable writes to it
        // Moving over a block would unlock it.
        return !survey.mayBeLocked || Memory.isSurelyNotLocked(block.lowerBound, Int(block.upperBound &- block.lowerBound))
    }
    @inline(never) private mutating func move(_ code: UnsafeMutableRawPointer, to block: Range<UInt64>, isReady: Bool) -> Bool {
        let byteCount = block.upperBound &- block.lowerBound
        if isReady && Memory.protectCode(UInt64(UInt(bitPattern: code)), byteCount)
            && Memory.move(code, Int(byteCount), to: block.lowerBound)
        {
            pages!.take(block)
            return true
        }
        pages!.release()
        pages = nil
        return false
    }
    /// To map the file's pages for many blocks together takes a third of the system calls. False: not even those of this one are to be had.
    @inline(never) private mutating func findPages(around block: Range<UInt64>, _ isOnly: Bool) -> Bool {
        if let pages, pages.part.contains(block.lowerBound) { return true }
        pages?.release()
        pages = nil
        let bytes = ExchangedCode.mostBytes
        if !isOnly, let part = ExchangedCode.part(of: block, in: image, atMost: bytes &* FilePages.mostBlocks) {
            pages = FilePages(part, of: image, blockBytes: bytes, mayBeLocked: survey.mayBeLocked)
        }
        if pages == nil { pages = FilePages(block, of: image, blockBytes: bytes, mayBeLocked: survey.mayBeLocked) } // with less memory
        return pages != nil
    }
    private func changeWords(_ block: Range<UInt64>, _ change: (UnsafeMutableRawPointer) -> Void) -> Bool {
        if isWritable(block) { return false }
        let byteCount = block.upperBound &- block.lowerBound
        if !Memory.protect(block.lowerBound, byteCount, Memory.readWriteExecute) { return false }
        change(UnsafeMutableRawPointer(bitPattern: UInt(block.lowerBound))!)
        return Memory.protectCode(block.lowerBound, byteCount)
    }
    /// A page that is as it is to be stays the file's own. False: no memory for the others, or the file was cut.
    @inline(never) private static func become(_ wanted: UnsafeRawPointer, _ code: UnsafeMutableRawPointer, from first: Int, to last: Int)
        -> Bool
    {
        let page = Memory.pageBytes
        if Memory.fetch(code + first, last &- first) != 0 { return false }
        var offset = first
        while offset < last {
            var end = offset
            while end < last && !Memory.isSame(wanted + end, code + end, page) { end = end &+ page }
            if end > offset {
                if Memory.populate(code + offset, end &- offset) != 0 { return false }
                (code + offset).copyMemory(from: wanted + offset, byteCount: end &- offset)
            }
            offset = end &+ page
        }
        return true
    }
    private func isWritable(_ block: Range<UInt64>) -> Bool {
        // Not for counts, which a program is that may have restricted its system calls since.
        if Process.isAttached, let isSome = survey.hasWritable(in: block) { return isSome }
        var address = block.lowerBound
        while address < block.upperBound {
            if Memory.tryWriting(address) != -Failure.address { return true }
            address = address &+ UInt64(Memory.pageBytes)
        }
        return false
    }
}
