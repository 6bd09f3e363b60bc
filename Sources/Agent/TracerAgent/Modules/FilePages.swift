// Pages of a module as its file has them, mapped once more without opening it: the program has its descriptors and its locks on files
// to itself, and the path may lead to another file by now.
//
// mremap(2) with MREMAP_DONTUNMAP takes a page of the module and leaves a mapping of the same file in its place, which reads the page anew
// when it is next touched (mm/mremap.c; Linux 5.13 for files). The mapping that was taken is made larger, which shows more of the file.
import CSupport

/// A private mapping of what the file has where a part of a segment is, whole pages, readable and writable. Blocks of it are taken away one by one.
struct FilePages {
    /// The part's addresses in the module, in blocks of `blockBytes`, of which there are `mostBlocks` at most.
    let part: Range<UInt64>
    static let mostBlocks = 64
    private let start: UnsafeMutableRawPointer
    private let blockBytes: Int
    private var taken: UInt64 = 0

    /// nil: it cannot be done (an older kernel, a file that was cut, a module whose first page is not as in its file), or would unlock what is
    /// locked: MREMAP_DONTUNMAP does so with the whole mapping that it takes a page of. For a moment the module's first page is as in the
    /// file: nothing that has been replaced may be in it.
    /// `mayBeLocked`: the process has locked some of its memory.
    init?(_ part: Range<UInt64>, of image: Image, blockBytes: Int, mayBeLocked: Bool) {
        let page = Memory.pageBytes, first = image.low & ~(UInt64(page) &- 1), byteCount = Int(part.upperBound &- part.lowerBound)
        guard let from = FilePages.offset(of: first, in: image), let to = FilePages.offset(of: part.lowerBound, in: image), to >= from
        else {
            return nil
        }
        if mayBeLocked && !Memory.isSurelyNotLocked(first, page) { return nil }
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
        start = UnsafeMutableRawPointer(bitPattern: whole &+ skipped)!
        self.part = part
        self.blockBytes = blockBytes
        if !Memory.protect(UInt64(UInt(bitPattern: start)), UInt64(byteCount), Memory.readWrite) {
            Memory.release(start, byteCount)
            return nil
        }
    }

    /// The block's pages, which need not be there yet. nil: the block was taken before.
    func pages(of block: Range<UInt64>) -> UnsafeMutableRawPointer? {
        let offset = Int(block.lowerBound &- part.lowerBound), pages = start + offset
        if taken &>> UInt64(offset / blockBytes) & 1 != 0 { return nil }
        return pages
    }
    /// It is somebody else's from now on: what comes to lie there is not to be released.
    mutating func take(_ block: Range<UInt64>) { taken |= 1 &<< UInt64(Int(block.lowerBound &- part.lowerBound) / blockBytes) }

    /// All that was not taken.
    @inline(never) func release() {
        let byteCount = Int(part.upperBound &- part.lowerBound)
        var offset = 0
        while offset < byteCount {
            var end = offset
            while end < byteCount && taken &>> UInt64(end / blockBytes) & 1 == 0 { end = end &+ blockBytes }
            if end > offset { Memory.release(start + offset, min(end, byteCount) &- offset) }
            offset = end &+ blockBytes
        }
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
