/// How many frames of each row are open. A table, but for rows that only a damaged file is likely to name: functions are numbered from 0
/// on, and a table of one that calls itself 2³¹ would take 8 GB.
struct OpenCounts: ~Copyable {
    private var table: PlainArray<UInt32>
    private let mostInTable: Int
    private var others: [UInt32: UInt32] = [:]

    /// - Parameter rowCount: rows known from the start, all of which the table has; more may come
    init(rowCount: Int) {
        table = PlainArray(repeating: 0, count: max(rowCount, 1))
        mostInTable = max(rowCount, 1 << 18)
    }

    subscript(row: UInt32) -> UInt32 {
        @inline(__always) get { _fastPath(Int(row) < table.count) ? table[Int(row)] : others.isEmpty ? 0 : others[row] ?? 0 }
    }

    @inline(__always) mutating func add(_ row: UInt32) {
        if _fastPath(Int(row) < table.count) { table[Int(row)] &+= 1 } else { addBeyond(row) }
    }

    /// Precondition: it was added.
    @inline(__always) mutating func remove(_ row: UInt32) {
        if _fastPath(Int(row) < table.count) { table[Int(row)] &-= 1 } else { removeBeyond(row) }
    }

    @inline(never) private mutating func addBeyond(_ row: UInt32) {
        guard Int(row) < mostInTable else { return others[row, default: 0] += 1 }
        table.append(repeating: 0, count: Int(row) + 1 - table.count)
        table[Int(row)] = 1
    }

    @inline(never) private mutating func removeBeyond(_ row: UInt32) {
        let left = (others[row] ?? 1) - 1
        others[row] = left == 0 ? nil : left
    }
}
