// First chunks of threads, where there are many. Each chunk that is mapped by itself is a mapping more, of which a process may have
// 65,530 (vm.max_map_count): so several are reserved and mapped at a time, and unmapped when the last of them has been left.
import CSupport
import CTraceLayout

enum FirstChunks {
    private struct Row {
        var address: Int // 0: unmapped
        var offset: UInt64
        var left = 0
    }
    private static let rowChunks = 16
    private static var rowBytes: Int { rowChunks &* ChunkSize.first }
    /// Capacity for `mostRows`, of which `rowCount` have been used.
    nonisolated(unsafe) private static var rows: UnsafeMutablePointer<Row>?
    nonisolated(unsafe) private static var rowCount = 0
    private static let mostRows = 4096
    /// The row from which they are taken now, and how many have been.
    nonisolated(unsafe) private static var current: UnsafeMutablePointer<Row>?
    nonisolated(unsafe) private static var taken = 0
    nonisolated(unsafe) private static var lock = Lock()
    /// From this number of living threads on; then few of the chunks in the file are unowned at the end.
    private static let manyThreads = 64

    /// nil: the thread maps a chunk of its own.
    static func take(threads: Int) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        lock.lock()
        defer { lock.unlock() }
        if current == nil {
            if threads < manyThreads || TraceSpace.wouldExceedLimit(rowBytes) { return nil }
            current = makeRow()
            taken = 0
        }
        guard let row = current, let address = UnsafeMutableRawPointer(bitPattern: row.pointee.address) else { return nil }
        let start = taken &* ChunkSize.first
        taken &+= 1
        let offset = row.pointee.offset
        if taken == rowChunks { current = nil }
        return (address + start, offset &+ UInt64(start))
    }
    private static func makeRow() -> UnsafeMutablePointer<Row>? {
        if rows == nil { rows = Memory.pages(mostRows &* MemoryLayout<Row>.stride)?.assumingMemoryBound(to: Row.self) }
        guard let rows else { return nil }
        var n = 0
        while n < rowCount && rows[n].address != 0 { n &+= 1 }
        if n == mostRows { return nil }
        guard let (address, offset) = TraceSpace.map(rowBytes) else { return nil }
        rows[n] = Row(address: bits(address), offset: offset)
        rowCount = max(rowCount, n &+ 1)
        return rows + n
    }

    /// The chunk is not written to any more. False: it is none of these.
    static func leave(_ chunk: UnsafeMutableRawPointer) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<rowCount {
            let row = rows! + n
            if row.pointee.address == 0 || UInt(bitPattern: bits(chunk) &- row.pointee.address) >= UInt(rowBytes) { continue }
            leave(row, 1)
            return true
        }
        return false
    }
    @inline(never) private static func leave(_ row: UnsafeMutablePointer<Row>, _ count: Int) {
        row.pointee.left &+= count
        if row.pointee.left < rowChunks { return }
        TraceSpace.unmap(UnsafeMutableRawPointer(bitPattern: row.pointee.address)!, rowBytes)
        row.pointee.address = 0
    }

    /// Leaves to the parent the chunks that nobody has taken.
    static func becomeChild() {
        lock = Lock()
        if let current { leave(current, rowChunks &- taken) }
        current = nil
    }
}
