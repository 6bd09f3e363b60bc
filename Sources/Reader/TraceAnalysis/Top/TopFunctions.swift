// The functions of a growing trace as its reading numbers them: functions of one symbol and module have one row, as in a report.
import CTraceLayout
import Symbols
import TraceFormat

/// Used by one thread at a time.
final class TopFunctions {
    let file: InputFile
    var records: GrowingMetadata
    /// Row 0 is nobody.
    private(set) var rows: [FunctionNames.Row] = [FunctionNames.unknown(0)]
    private var rowOf: [FunctionNames.Row: UInt32] = [:]
    /// Functions whose record was not there yet when they were met, by row.
    private var unknown: [UInt32: UInt32] = [:]
    private let symbolizer = Symbolizer()

    init(_ file: InputFile, machine: UInt32) {
        self.file = file
        records = GrowingMetadata(machine: machine)
    }

    /// Returns the row of a function that is met for the first time.
    func newRow(of function: UInt32) -> UInt32 {
        let found = row(function)
        if let found, let known = rowOf[found] { return known }
        let number = UInt32(rows.count)
        rows.append(found ?? FunctionNames.unknown(function))
        if let found { rowOf[found] = number } else { unknown[number] = function }
        return number
    }

    private func row(_ id: UInt32) -> FunctionNames.Row? {
        guard let recorded = records.function(id, file) else { return nil }
        let function = FunctionNames.named(recorded, records.metadata, symbolizer)
        return FunctionNames.Row(
            name: FunctionNames.displayName(function, records.metadata), symbol: function.rawName,
            module: FunctionNames.moduleName(function, records.metadata), isEntryOnly: function.isEntryOnly)
    }

    /// Reads the records that have come, and with them the names that were missing.
    func readRecords() {
        records.read(file)
        for (number, function) in unknown {
            guard let found = row(function) else { continue }
            rows[Int(number)] = found
            unknown[number] = nil
        }
    }

    func isEntryOnly(_ row: UInt32) -> Bool { rows[Int(row)].isEntryOnly }
}
