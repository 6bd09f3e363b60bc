// Function ids as the sums of a reading number them: 0 is nobody, then the rows of the function table, then ids that no
// record describes, in the order in which this reading met them.

struct RowNumbers: ~Copyable {
    /// Rows by function id; 0 unknown.
    private var rows: PlainArray<UInt32>
    let knownCount: Int
    /// In the order of their rows, which follow the known ones.
    private(set) var unknownFunctions: [UInt32] = []
    private var unknownRows: [UInt32: UInt32] = [:]

    init(_ table: FunctionNames) {
        knownCount = table.rowCount
        rows = PlainArray(repeating: 0, count: max(table.rowOfFunction.count, 1))
        for (id, row) in table.rowOfFunction.enumerated() { rows[id] = row }
    }

    /// 0 when the function table does not have it.
    @inline(__always) func known(_ function: UInt32) -> UInt32 {
        _fastPath(Int(function) < rows.count) ? rows[Int(function)] : 0
    }

    /// Also of one that no record describes.
    @inline(__always) mutating func row(of function: UInt32) -> UInt32 {
        let row = known(function)
        return _fastPath(row != 0) ? row : unknownRow(function)
    }

    /// Returns this reading's row for a row of another reading.
    mutating func translate(_ row: UInt32, from other: borrowing RowNumbers) -> UInt32 {
        other.unknownFunction(row).map { unknownRow($0) } ?? row
    }

    @inline(never) mutating func unknownRow(_ function: UInt32) -> UInt32 {
        if let row = unknownRows[function] { return row }
        let row = UInt32(knownCount + unknownFunctions.count)
        unknownFunctions.append(function)
        unknownRows[function] = row
        return row
    }

    /// The id of a row that the table does not have; nil for one that it has, whose number is the same in every
    /// reading.
    func unknownFunction(_ row: UInt32) -> UInt32? {
        Int(row) < knownCount ? nil : unknownFunctions[Int(row) - knownCount]
    }
}

/// Calls that ended on another thread than they began on: the latter must not take them for still running.
struct Migrations {
    private(set) var ends: [FrameKey: UInt64] = [:]
    private static let most = 1 << 16

    mutating func insert(_ row: UInt32, enter: UInt64, end: UInt64) {
        if ends.count < Self.most { ends[FrameKey(enter: enter, row: row)] = end }
    }

    func end(of frame: Frame) -> UInt64? { ends.isEmpty ? nil : ends[frame.key] }
}
