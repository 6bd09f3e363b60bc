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

enum ExchangedCode {
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
    static func block(of bytes: Range<UInt64>, in image: Image) -> Range<UInt64>? {
        let page = UInt64(Memory.pageBytes), most = UInt64(mostBytes)
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

    /// Puts what `change` makes of a copy of the block in its place. False: it is as it was.
    /// ModuleLock is held.
    static func exchange(_ block: Range<UInt64>, of image: Image, _ change: (UnsafeMutableRawPointer) -> Void) -> Bool {
        let byteCount = Int(block.upperBound &- block.lowerBound)
        if isWritable(block) { return false } // a program that has made its code writable writes to it
        if isByWords { return changeWords(block, change) }
        guard let wanted = copySpace() else { return false }
        wanted.copyMemory(from: UnsafeRawPointer(bitPattern: UInt(block.lowerBound))!, byteCount: byteCount)
        change(wanted)
        guard let code = FilePages.map(block, of: image) else { return false }
        let address = UInt64(UInt(bitPattern: code))
        if !Memory.protect(address, UInt64(byteCount), Memory.readWrite) || !become(wanted, code, byteCount)
            || !Memory.protectCode(address, UInt64(byteCount)) || !Memory.move(code, byteCount, to: block.lowerBound)
        {
            Memory.release(code, byteCount)
            return false
        }
        return true
    }
    private static func changeWords(_ block: Range<UInt64>, _ change: (UnsafeMutableRawPointer) -> Void) -> Bool {
        let byteCount = block.upperBound &- block.lowerBound
        if !Memory.protect(block.lowerBound, byteCount, Memory.readWriteExecute) { return false }
        change(UnsafeMutableRawPointer(bitPattern: UInt(block.lowerBound))!)
        return Memory.protectCode(block.lowerBound, byteCount)
    }
    /// A page that is as it is to be stays the file's own. False: no memory for the others.
    private static func become(_ wanted: UnsafeMutableRawPointer, _ code: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        let page = Memory.pageBytes
        var offset = 0
        while offset < byteCount {
            var end = offset
            while end < byteCount && !Memory.isSame(wanted + end, code + end, page) { end = end &+ page }
            if end > offset {
                if Memory.populate(code + offset, end &- offset) != 0 { return false }
                (code + offset).copyMemory(from: wanted + offset, byteCount: end &- offset)
            }
            offset = end &+ page
        }
        return true
    }
    private static func isWritable(_ block: Range<UInt64>) -> Bool {
        // Not for counts, which a program is that may have restricted its system calls since.
        if Process.isAttached, let isSome = ProcessMaps.hasWritable(in: block) { return isSome }
        var address = block.lowerBound
        while address < block.upperBound {
            if Memory.tryWriting(address) != -Failure.address { return true }
            address = address &+ UInt64(Memory.pageBytes)
        }
        return false
    }
}
