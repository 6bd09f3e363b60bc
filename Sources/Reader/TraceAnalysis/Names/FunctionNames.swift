// Function ids of the file, and the rows of a report that they belong to: one per symbol and module.
import CTraceLayout
import Dispatch
import Symbols
import Synchronization
import TraceFormat

package struct FunctionNames: Sendable {
    struct Row: Sendable, Hashable {
        /// For people. Two symbols may have one name: constructors, clones.
        var name: String
        /// As in the file, "" when it has none; then the name distinguishes rows.
        var symbol: String
        var module: String
        var isEntryOnly: Bool
    }

    /// Name of the row of own code, which is no function.
    package static let ownCode = "(own code)"

    /// Indexed by row - 1. Row 0 is nobody.
    let rows: [Row]
    /// Row of each function, indexed by function id; 0 for ids that no record describes.
    let rowOfFunction: [UInt32]
    /// Rows with a function of which not all calls are recorded (Metadata.suppressed), and those where the others are not counted, either.
    let suppressed: Set<UInt32>
    let uncounted: Set<UInt32>

    /// Row 0 included.
    var rowCount: Int { rows.count + 1 }

    package init(_ metadata: Metadata) {
        let symbolizer = Symbolizer()
        let functions = metadata.functions.values.sorted { $0.id < $1.id }.map { Self.named($0, metadata, symbolizer) }
        let names = Self.displayNames(functions, metadata)
        self.init(
            zip(functions, names).map { function, name -> (Function, Row) in
                let module = Self.moduleName(function, metadata)
                return (function, Row(name: name, symbol: function.rawName, module: module, isEntryOnly: function.isEntryOnly))
            }, metadata
        ) { $1 }
    }

    /// One of several traces.
    init(_ metadata: Metadata, _ names: NameCache) {
        self.init(
            metadata.functions.values.sorted { $0.id < $1.id }.map { function -> (Function, Row) in
                var row = names.row(of: function, metadata)
                row.isEntryOnly = function.isEntryOnly
                return (function, row)
            }, metadata
        ) { $1 }
    }

    /// Rows to add up by, which have no names for people: what finding them out takes is for functions that were called.
    init(unnamed metadata: Metadata) {
        struct Key: Hashable {
            var symbol: String
            var module: UInt32?
            var isEntryOnly: Bool
        }
        self.init(metadata.functions.values.lazy.map { ($0, Self.unnamed($0)) }, metadata) { function, _ in
            // Without a symbol each id is one of its own.
            function.rawName.isEmpty
                ? nil : Key(symbol: function.rawName, module: function.module, isEntryOnly: function.isEntryOnly)
        }
    }

    /// Each function a row of its own, in the order of their ids, and without a name: two may have the same.
    init(apart metadata: Metadata) {
        let functions = metadata.functions.values.sorted { $0.id < $1.id }
        self.init(functions.map { ($0, Self.unnamed($0)) }, metadata) { _, _ in UInt32?.none }
    }

    private static func unnamed(_ function: Function) -> Row { Row(name: "", symbol: "", module: "", isEntryOnly: function.isEntryOnly) }

    /// - Parameter key: functions of one key have the row of the first of them; nil: the function has its own
    private init<Key: Hashable>(_ functions: some Collection<(Function, Row)>, _ metadata: Metadata, key: (Function, Row) -> Key?) {
        var rows: [Row] = [], numbers: [Key: UInt32] = [:]
        numbers.reserveCapacity(functions.count)
        rows.reserveCapacity(functions.count)
        var rowOfFunction = [UInt32](repeating: 0, count: Int(metadata.functions.keys.max() ?? 0) + 1)
        for (function, row) in functions {
            let next = UInt32(rows.count + 1)
            var number = next
            if let key = key(function, row), let known = numbers.updateValue(next, forKey: key) {
                numbers[key] = known
                number = known
            }
            if number == next { rows.append(row) }
            rowOfFunction[Int(function.id)] = number
        }
        self.rows = rows
        self.rowOfFunction = rowOfFunction
        let hot = metadata.suppressed.keys.filter { Int($0) < rowOfFunction.count && rowOfFunction[Int($0)] != 0 }
        suppressed = Set(hot.map { rowOfFunction[Int($0)] })
        uncounted = Set(hot.filter { !metadata.isCounted($0) }.map { rowOfFunction[Int($0)] })
    }

    /// The trace has the names that the loader knows. Those of static functions are in the module's file or its debug
    /// file, if it is here and is the one that was traced.
    static func named(_ function: Function, _ metadata: Metadata, _ symbolizer: Symbolizer) -> Function {
        guard function.rawName.isEmpty, let module = function.module.flatMap({ metadata.modules[$0] }) else { return function }
        let linked = function.address &- module.loadBias
        // A symbol that merely holds the address is another function, whose part has lost its own symbol.
        guard let symbol = symbolizer.function(at: linked, in: module.identity), symbol.address == linked else { return function }
        var function = function
        function.rawName = symbol.name
        return function
    }

    static func moduleName(_ function: Function, _ metadata: Metadata) -> String {
        function.module.map { metadata.modules[$0]?.name ?? "[module \($0)]" } ?? noModule
    }

    static let noModule = "?"

    /// Demangling takes microseconds a name, and a large program has tens of thousands: all CPUs share them.
    private static func displayNames(_ functions: [Function], _ metadata: Metadata) -> [String] {
        let partLength = 1000
        let partCount = (functions.count + partLength - 1) / partLength
        let parts = Mutex<[Int: [String]]>([:])
        DispatchQueue.concurrentPerform(iterations: partCount) { part in
            let slice = functions[part * partLength..<min((part + 1) * partLength, functions.count)]
            let names = slice.map { displayName($0, metadata) }
            parts.withLock { $0[part] = names }
        }
        return parts.withLock { parts in (0..<partCount).flatMap { parts[$0] ?? [] } }
    }

    static func displayName(_ function: Function, _ metadata: Metadata) -> String {
        if !function.rawName.isEmpty { return demangled(function.rawName) }
        guard let module = function.module.flatMap({ metadata.modules[$0] }) else {
            return "0x" + String(function.address, radix: 16)
        }
        return "\(module.name)+0x" + String(function.address &- module.loadBias, radix: 16)
    }

    static func unknownName(_ function: UInt32) -> String { "?#\(function)" }
    /// Row of a function that no record describes.
    static func unknown(_ function: UInt32) -> Row {
        Row(name: unknownName(function), symbol: unknownName(function), module: noModule, isEntryOnly: false)
    }

    /// Name and module of a function id, whether or not the file describes it.
    package func name(of function: UInt32) -> (name: String, module: String) {
        if Int(function) < rowOfFunction.count, rowOfFunction[Int(function)] != 0 {
            let row = rows[Int(rowOfFunction[Int(function)]) - 1]
            return (row.name, row.module)
        }
        return (Self.unknownName(function), Self.noModule)
    }

    /// As people write them, for texts.
    package func shortNames(_ style: NameStyle) -> ShortNames { ShortNames(rows.lazy.map { $0.name }, style) }

    /// The shortest name that has `text` in it, for one that was mistyped; nil when one is `text`.
    package func nearest(to text: String) -> String? {
        let wanted = text.lowercased()
        let names = rows.map { $0.name }.filter { $0.lowercased().contains(wanted) }
        return names.contains(text) ? nil : names.min { ($0.count, $0) < ($1.count, $1) }
    }

    package func isEntryOnly(_ function: UInt32) -> Bool {
        guard Int(function) < rowOfFunction.count, rowOfFunction[Int(function)] != 0 else { return false }
        return rows[Int(rowOfFunction[Int(function)]) - 1].isEntryOnly
    }
}
