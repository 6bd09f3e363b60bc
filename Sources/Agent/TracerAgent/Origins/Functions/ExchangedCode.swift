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

    /// The copy of a block. Kept: to make its pages anew for each of some hundred blocks costs more than all copying.
    nonisolated(unsafe) private static var space: UnsafeMutableRawPointer?
    private static func copySpace() -> UnsafeMutableRawPointer? {
        if space == nil, let pages = Memory.pages(mostBytes) {
            Memory.populate(pages, mostBytes)
            space = pages
        }
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
    /// /proc/self/maps, where a task of our own has a table of descriptors to itself; else -1.
    private let maps: Int
    /// The process has locked some of its memory.
    private let mayBeLocked: Bool

    /// For one or more blocks of a module, until `end`.
    init(_ image: Image) {
        self.image = image
        maps = Lock.asksKernel ? ProcessMaps.open() : -1
        mayBeLocked = maps < 0 || Process.mayHaveLocked
    }
    func end() {
        pages?.release()
        if maps >= 0 { _ = SystemCall.call(SystemCall.close, maps) }
    }

    /// Puts what `change` makes of a copy of the block in its place. False: it is as it was.
    /// ModuleLock is held. `isOnly`: no other block follows. `isPutting`: a page that changes is not as in the file afterwards.
    @inline(never) mutating func exchange(
        _ block: Range<UInt64>, isOnly: Bool = false, isPutting: Bool = false, _ change: (UnsafeMutableRawPointer) -> Void
    ) -> Bool {
        let byteCount = Int(block.upperBound &- block.lowerBound)
        if isWritable(block) { return false } // a program that has made its code writable writes to it
        if ExchangedCode.isByWords { return ExchangedCode.changeWords(block, change) }
        guard let wanted = ExchangedCode.copySpace() else { return false }
        wanted.copyMemory(from: UnsafeRawPointer(bitPattern: UInt(block.lowerBound))!, byteCount: byteCount)
        change(wanted)
        // Moving over a block would unlock it.
        guard !mayBeLocked || Memory.isSurelyNotLocked(block.lowerBound, byteCount), findPages(around: block, isOnly),
            let code = pages!.pages(of: block)
        else { return false }
        let address = UInt64(UInt(bitPattern: code))
        if !ExchangedCode.become(wanted, code, byteCount, insteadOf: isPutting ? UnsafeRawPointer(bitPattern: UInt(block.lowerBound)) : nil)
            || !Memory.protectCode(address, UInt64(byteCount)) || !Memory.move(code, byteCount, to: block.lowerBound)
        {
            pages!.release()
            pages = nil
            return false
        }
        pages!.take(block)
        return true
    }
    /// To map the file's pages for many blocks together takes a third of the system calls. False: not even those of this one are to be had.
    @inline(never) private mutating func findPages(around block: Range<UInt64>, _ isOnly: Bool) -> Bool {
        if let pages, pages.part.contains(block.lowerBound) { return true }
        pages?.release()
        pages = nil
        let bytes = ExchangedCode.mostBytes
        if !isOnly, let part = ExchangedCode.part(of: block, in: image, atMost: bytes &* FilePages.mostBlocks) {
            pages = FilePages(part, of: image, blockBytes: bytes)
        }
        if pages == nil { pages = FilePages(block, of: image, blockBytes: bytes) } // with less memory
        return pages != nil
    }
    private static func changeWords(_ block: Range<UInt64>, _ change: (UnsafeMutableRawPointer) -> Void) -> Bool {
        let byteCount = block.upperBound &- block.lowerBound
        if !Memory.protect(block.lowerBound, byteCount, Memory.readWriteExecute) { return false }
        change(UnsafeMutableRawPointer(bitPattern: UInt(block.lowerBound))!)
        return Memory.protectCode(block.lowerBound, byteCount)
    }
    /// A page that is as it is to be stays the file's own. `live`: what the block has now; a page that is to be another than that is not as in
    /// the file, and need not be compared with it.
    /// False: no memory for the others, or the file was cut.
    @inline(never) private static func become(
        _ wanted: UnsafeMutableRawPointer, _ code: UnsafeMutableRawPointer, _ byteCount: Int, insteadOf live: UnsafeRawPointer?
    ) -> Bool {
        let page = Memory.pageBytes
        func isChanged(_ offset: Int) -> Bool { live.map { !Memory.isSame(wanted + offset, $0 + offset, page) } ?? false }
        var offset = 0
        while offset < byteCount {
            // Pages that are to be looked at come all at once, and so do those that are to be written.
            var end = offset
            while end < byteCount && isChanged(end) { end = end &+ page }
            if end == offset {
                while end < byteCount && !isChanged(end) { end = end &+ page }
                if !becomeCompared(wanted, code, offset, end) { return false }
            } else if !write(wanted, code, offset, end) {
                return false
            }
            offset = end
        }
        return true
    }
    @inline(never) private static func becomeCompared(
        _ wanted: UnsafeMutableRawPointer, _ code: UnsafeMutableRawPointer, _ first: Int, _ last: Int
    )
        -> Bool
    {
        let page = Memory.pageBytes
        if Memory.fetch(code + first, last &- first) != 0 { return false }
        var offset = first
        while offset < last {
            var end = offset
            while end < last && !Memory.isSame(wanted + end, code + end, page) { end = end &+ page }
            if end > offset && !write(wanted, code, offset, end) { return false }
            offset = end &+ page
        }
        return true
    }
    @inline(never) private static func write(_ wanted: UnsafeMutableRawPointer, _ code: UnsafeMutableRawPointer, _ first: Int, _ last: Int)
        -> Bool
    {
        if Memory.populate(code + first, last &- first) != 0 { return false }
        (code + first).copyMemory(from: wanted + first, byteCount: last &- first)
        return true
    }
    private func isWritable(_ block: Range<UInt64>) -> Bool {
        // Not for counts, which a program is that may have restricted its system calls since.
        if Process.isAttached, let isSome = maps >= 0 ? ProcessMaps.hasWritable(in: block, maps) : ProcessMaps.hasWritable(in: block) {
            return isSome
        }
        var address = block.lowerBound
        while address < block.upperBound {
            if Memory.tryWriting(address) != -Failure.address { return true }
            address = address &+ UInt64(Memory.pageBytes)
        }
        return false
    }
}
