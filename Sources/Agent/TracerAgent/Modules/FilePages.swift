// Pages of a module as its file has them, mapped once more without opening it: the program has its descriptors and its locks on files
// to itself, and the path may lead to another file by now.
//
// mremap(2) with MREMAP_DONTUNMAP takes a page of the module and leaves a mapping of the same file in its place, which reads the page anew
// when it is next touched (mm/mremap.c; Linux 5.13 for files). The mapping that was taken is made larger, which shows more of the file.
import CSupport

enum FilePages {
    /// A private mapping, readable alone, of what the file has where `block` is: whole pages of one segment of the module. Its pages are
    /// there. nil: it cannot be done (an older kernel, a file that was cut, a module whose first page is not as in its file), or would
    /// unlock what is locked: MREMAP_DONTUNMAP does so with the whole mapping that it takes a page of, and moving over a block with that
    /// block. For a moment the module's first page is as in the file: nothing that has been replaced may be in it.
    static func map(_ block: Range<UInt64>, of image: Image) -> UnsafeMutableRawPointer? {
        let page = Memory.pageBytes, first = image.low & ~(UInt64(page) &- 1), byteCount = Int(block.upperBound &- block.lowerBound)
        guard let from = offset(of: first, in: image), let to = offset(of: block.lowerBound, in: image), to >= from else { return nil }
        if !Memory.isSurelyNotLocked(first, page) || !Memory.isSurelyNotLocked(block.lowerBound, byteCount) { return nil }
        let taken = SystemCall.call(SystemCall.mremap, Int(bitPattern: UInt(first)), page, page, Mapping.mayMove | Mapping.dontUnmap)
        guard !failed(taken), let seed = UnsafeMutableRawPointer(bitPattern: taken) else { return nil }
        let original = UnsafeMutableRawPointer(bitPattern: UInt(first))!
        if Memory.fetch(original, page) != 0 || !Memory.isSame(original, seed, page) {
            if !Memory.move(seed, page, to: first) { Memory.release(seed, page) }
            return nil
        }
        let skipped = Int(to &- from)
        let whole = SystemCall.call(SystemCall.mremap, taken, page, skipped &+ byteCount, Mapping.mayMove)
        if failed(whole) {
            Memory.release(seed, page)
            return nil
        }
        if skipped > 0 { Memory.release(UnsafeMutableRawPointer(bitPattern: whole), skipped) }
        let view = UnsafeMutableRawPointer(bitPattern: whole &+ skipped)!
        if Memory.protect(UInt64(UInt(bitPattern: view)), UInt64(byteCount), Memory.readOnly) && Memory.fetch(view, byteCount) == 0 {
            return view
        }
        Memory.release(view, byteCount)
        return nil
    }

    /// In the file, of a page of a segment.
    private static func offset(of address: UInt64, in image: Image) -> UInt64? {
        let page = UInt64(Memory.pageBytes)
        for n in 0..<image.segmentCount {
            let segment = image.segment(n), start = image.bias &+ segment.address, low = start & ~(page &- 1)
            if segment.type != ProgramHeader.load || address < low || address >= start &+ segment.fileBytes { continue }
            return (segment.offset & ~(page &- 1)) &+ (address &- low)
        }
        return nil
    }
}
