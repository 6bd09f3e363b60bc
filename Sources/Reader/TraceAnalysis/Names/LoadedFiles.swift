// Finds the file that a call of dlopen loaded: its record says what was asked for, and when.
import TraceFormat

package struct LoadedFiles: Sendable {
    private struct Load {
        /// dlopen was called; its event begins a moment later.
        var begin: UInt64
        /// The loader began to add.
        var opened: UInt64
        /// Index of its path in `paths`.
        var number: UInt32
    }
    /// Loads of each thread, in the order of time.
    private let loads: [UInt32: [Load]]
    /// Each path once.
    private let paths: [String]
    private static let names: Set<String> = ["dlopen", "dlmopen"]
    /// Ids of functions lie below.
    private static let firstID: UInt32 = 1 << 31

    package init(_ trace: TraceFile) {
        var numbers: [String: UInt32] = [:], paths: [String] = []
        var loads: [UInt32: [Load]] = [:]
        for load in trace.metadata.start.loads where !load.path.isEmpty {
            // Within the call, whose own begin is noted elsewhere; those that its constructors open come later.
            let opened = load.opened ?? load.mapped.ticks
            let number = numbers[load.path] ?? UInt32(paths.count)
            if numbers.updateValue(number, forKey: load.path) == nil { paths.append(load.path) }
            loads[load.thread, default: []].append(
                Load(begin: (load.begin ?? opened).raw, opened: opened.raw, number: number))
        }
        self.loads = loads.mapValues { $0.sorted { $0.opened < $1.opened } }
        self.paths = paths
    }

    package var isEmpty: Bool { loads.isEmpty }

    /// nil of another function's call, and of one that brought no file.
    package func file(_ function: String, thread: UInt32, from start: UInt64, to end: UInt64) -> String? {
        guard Self.names.contains(function), let loads = loads[thread] else { return nil }
        let next = bisect(loads.count) { loads[$0].opened < start }
        return next < loads.count && loads[next].opened <= end ? paths[Int(loads[next].number)] : nil
    }

    // MARK: - As functions of their own

    /// The row of a table whose calls are distinguished by file; of the few functions that bring files one is enough. 0: none.
    func row(in table: FunctionNames) -> UInt32 {
        isEmpty ? 0 : UInt32((table.rows.firstIndex { Self.names.contains($0.symbol) } ?? -1) + 1)
    }

    /// The id by which calls of dlopen that bring this file are counted, of a call that was entered then; nil where it brought none.
    func id(thread: UInt32, entered: UInt64) -> UInt32? {
        guard let loads = loads[thread] else { return nil }
        // The load that has begun and not yet opened a file. One within another's constructors begins after that has opened.
        let next = bisect(loads.count) { loads[$0].opened < entered }
        return next < loads.count && loads[next].begin <= entered ? Self.firstID | loads[next].number : nil
    }

    /// nil: it is not such an id.
    func path(of id: UInt32) -> String? {
        id >= Self.firstID && Int(id - Self.firstID) < paths.count ? paths[Int(id - Self.firstID)] : nil
    }

    /// dlopen(libplug4.so)
    package static func name(_ function: String, _ path: String) -> String { "\(function)(\(basename(path)))" }

    /// Returns the function's name without the file that `name` added; any other name unchanged.
    static func withoutFile(_ name: String, symbol: String) -> String { names.contains(symbol) ? symbol : name }
}
