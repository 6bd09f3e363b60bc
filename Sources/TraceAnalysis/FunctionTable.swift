// Function ids of the file, and the rows of a report that they belong to: one per symbol and module.
import CTraceLayout
import Dispatch
import Symbols
import Synchronization
import TraceFormat

public struct FunctionTable: Sendable {
    struct Row: Sendable, Hashable {
        /// For people. Two symbols may have one name: constructors, clones.
        var name: String
        /// As in the file, "" when it has none; then the name tells rows apart.
        var symbol: String
        var module: String
        var isTail: Bool
    }

    /// By slot - 1. Slot 0 is nobody.
    let rows: [Row]
    /// By function id; 0 for ids that no record describes.
    let slotOfFunction: [UInt32]

    var slotCount: Int { rows.count + 1 }

    public init(_ metadata: Metadata) {
        var rows: [Row] = []
        var slotOfRow: [Row: UInt32] = [:]
        var slots = [UInt32](repeating: 0, count: Int(metadata.functions.keys.max() ?? 0) + 1)
        let symbolizer = Symbolizer()
        let functions = metadata.functions.values.sorted { $0.id < $1.id }.map { Self.named($0, metadata, symbolizer) }
        let names = Self.displayNames(functions, metadata)
        for (function, name) in zip(functions, names) {
            let row = Row(name: name, symbol: function.rawName, module: Self.moduleName(function, metadata), isTail: function.isTail)
            if let slot = slotOfRow[row] {
                slots[Int(function.id)] = slot
            } else {
                rows.append(row)
                slotOfRow[row] = UInt32(rows.count)
                slots[Int(function.id)] = UInt32(rows.count)
            }
        }
        self.rows = rows
        slotOfFunction = slots
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

    /// Demangling takes microseconds a name, and a large program has tens of thousands: all processors share them.
    private static func displayNames(_ functions: [Function], _ metadata: Metadata) -> [String] {
        let partLength = 1000
        let partCount = (functions.count + partLength - 1) / partLength
        let parts = Mutex<[Int: [String]]>([:])
        DispatchQueue.concurrentPerform(iterations: partCount) { part in
            let slice = functions[part * partLength ..< min((part + 1) * partLength, functions.count)]
            let names = slice.map { displayName($0, metadata) }
            parts.withLock { $0[part] = names }
        }
        return parts.withLock { parts in (0 ..< partCount).flatMap { parts[$0] ?? [] } }
    }

    static func displayName(_ function: Function, _ metadata: Metadata) -> String {
        if !function.rawName.isEmpty { return demangled(function.rawName) }
        guard let module = function.module.flatMap({ metadata.modules[$0] }) else {
            return "0x" + String(function.address, radix: 16)
        }
        return "\(module.name)+0x" + String(function.address &- module.loadBias, radix: 16)
    }

    static func strangerName(_ function: UInt32) -> String { "?#\(function)" }

    /// Name and module of a function id, whether or not the file describes it.
    public func name(of function: UInt32) -> (name: String, module: String) {
        if Int(function) < slotOfFunction.count, slotOfFunction[Int(function)] != 0 {
            let row = rows[Int(slotOfFunction[Int(function)]) - 1]
            return (row.name, row.module)
        }
        return (Self.strangerName(function), Self.noModule)
    }

    public func isTail(_ function: UInt32) -> Bool {
        guard Int(function) < slotOfFunction.count, slotOfFunction[Int(function)] != 0 else { return false }
        return rows[Int(slotOfFunction[Int(function)]) - 1].isTail
    }
}
