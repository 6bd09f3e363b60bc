// First chunks of threads, where there are many. Each chunk that is mapped by itself is a mapping more, of which a process may have
// 65,530 (vm.max_map_count): so a row of several is reserved and mapped at a time, and unmapped when its last thread has left.
//
// In a ring a row takes the place of one chunk of full size, so that an idle thread takes a small part of that. What a thread that
// has ended left stays, and the ring overwrites the row when its turn comes. A row that idle threads hold has no turn: once rows take
// up a quarter of the ring, new threads overwrite what ended ones left there.
import CSupport
import CTraceLayout

enum FirstChunks {
    private struct Row {
        var address: Int // 0: unmapped
        var offset: UInt64
        /// A bit for each chunk that a living thread has, and for each with the events of one that has left.
        var taken: UInt32 = 0
        var left: UInt32 = 0
    }
    /// Only a page size of 64 KB makes it fewer.
    private static let mostChunks = 16
    private static var rowBytes: Int { Limits.isRing ? ChunkSize.largest : mostChunks &* ChunkSize.first }
    private static var all: UInt32 { (1 &<< UInt32(rowBytes / ChunkSize.first)) &- 1 }
    /// Capacity for `mostRows`, of which `rowCount` have been used.
    nonisolated(unsafe) private static var rows: UnsafeMutablePointer<Row>?
    nonisolated(unsafe) private static var rowCount = 0
    nonisolated(unsafe) private static var mappedCount = 0
    private static let mostRows = 4096
    /// The row from which chunks are taken now.
    nonisolated(unsafe) private static var current: UnsafeMutablePointer<Row>?
    /// Free chunks in other rows.
    nonisolated(unsafe) private static var freeCount = 0
    nonisolated(unsafe) private static var lock = Lock()
    /// From this number of living threads on; then few of the chunks in the file are unowned at the end.
    private static let manyThreads = 64

    /// nil: the thread maps a chunk of its own. `isOfFirst`: for the first thread of the process, often the only one.
    static func take(threads: Int, isOfFirst: Bool) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        if Limits.isRing && (isOfFirst || rowBytes < 2 &* ChunkSize.first) { return nil }
        lock.lock()
        defer { lock.unlock() }
        if current == nil && !Limits.isRing && (threads < manyThreads || TraceSpace.wouldExceedLimit(rowBytes)) { return nil }
        guard let row = current ?? rowWithSpace() ?? makeRow() else { return nil }
        if row != current { freeCount &-= free(row).nonzeroBitCount }
        current = row
        var free = free(row)
        if free == 0 { free = row.pointee.left }
        let bit = free & (0 &- free), start = free.trailingZeroBitCount &* ChunkSize.first
        let address = UnsafeMutableRawPointer(bitPattern: row.pointee.address &+ start)!
        if row.pointee.left & bit != 0 { TraceSpace.clearChunk(address, ChunkSize.first) }
        row.pointee.taken |= bit
        row.pointee.left &= ~bit
        if self.free(row) == 0 { current = nil }
        return (address, row.pointee.offset &+ UInt64(start))
    }
    private static func free(_ row: UnsafeMutablePointer<Row>) -> UInt32 { all & ~(row.pointee.taken | row.pointee.left) }

    /// A row of a ring with a free chunk, or, once rows take up much, with one that may be overwritten.
    private static func rowWithSpace() -> UnsafeMutablePointer<Row>? {
        let areMany = Limits.isRing && TraceSpace.wouldExceedLimit(rowBytes) && mappedCount &* rowBytes >= Int(Limits.fileBytes / 4)
        if freeCount == 0 && !areMany { return nil }
        var found: UnsafeMutablePointer<Row>?
        for n in 0..<rowCount where rows![n].address != 0 {
            if free(rows! + n) != 0 { return rows! + n }
            if areMany && rows![n].left != 0 { found = rows! + n }
        }
        return found
    }
    private static func makeRow() -> UnsafeMutablePointer<Row>? {
        if rows == nil { rows = Memory.pages(mostRows &* MemoryLayout<Row>.stride)?.assumingMemoryBound(to: Row.self) }
        guard let rows else { return nil }
        var n = 0
        while n < rowCount && rows[n].address != 0 { n &+= 1 }
        if n == mostRows { return nil }
        guard let (address, offset) = Ring.map(rowBytes) else { return nil }
        rows[n] = Row(address: bits(address), offset: offset)
        rowCount = max(rowCount, n &+ 1)
        mappedCount &+= 1
        freeCount &+= free(rows + n).nonzeroBitCount
        return rows + n
    }

    /// The chunk is not written to any more; `isEmpty`: and another thread may have it. False: it is none of these.
    static func leave(_ chunk: UnsafeMutableRawPointer, isEmpty: Bool) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<rowCount {
            let row = rows! + n, distance = bits(chunk) &- row.pointee.address
            if row.pointee.address == 0 || UInt(bitPattern: distance) >= UInt(rowBytes) { continue }
            let bit: UInt32 = 1 &<< UInt32(distance / ChunkSize.first)
            row.pointee.taken &= ~bit
            if !isEmpty { row.pointee.left |= bit } else if row != current { freeCount &+= 1 }
            releaseIfLeft(row)
            return true
        }
        return false
    }
    @inline(never) private static func releaseIfLeft(_ row: UnsafeMutablePointer<Row>) {
        if row.pointee.taken != 0 || row == current { return }
        freeCount &-= free(row).nonzeroBitCount
        TraceSpace.unmap(UnsafeMutableRawPointer(bitPattern: row.pointee.address)!, rowBytes)
        row.pointee.address = 0
        mappedCount &-= 1
        if row.pointee.offset != parents { Ring.give(row.pointee.offset, UInt64(rowBytes), of: .max) }
    }

    /// Nothing of the file stays mapped. What threads have of it is theirs alone: a row is no longer unmapped as a whole, since the program may get
    /// the addresses of what is released. `isQuiet`: no thread is just taking one.
    static func leaveFile(isQuiet: Bool) {
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<rowCount where rows![n].address != 0 {
            let address = UnsafeMutableRawPointer(bitPattern: rows![n].address)!
            tracer_mapping_remove(address)
            Memory.replace(address, rowBytes)
            for chunk in 0..<(isQuiet ? rowBytes / ChunkSize.first : 0) where rows![n].taken & 1 &<< UInt32(chunk) == 0 {
                Memory.release(address + chunk &* ChunkSize.first, ChunkSize.first)
            }
        }
        current = nil
        (rowCount, mappedCount, freeCount) = (0, 0, 0)
    }

    /// In place of an offset in the file of a forked child's parent.
    private static let parents = UInt64.max
    /// Leaves to the parent the chunks that nobody has taken.
    static func becomeChild() {
        lock = Lock()
        current = nil
        freeCount = 0
        for n in 0..<rowCount where rows![n].address != 0 {
            rows![n].offset = parents
            rows![n].left = all & ~rows![n].taken
            releaseIfLeft(rows! + n)
        }
    }
}
