// Names of code by its address in the traced process: from the module's file when it is the one that was traced, from the
// trace's own records otherwise, and as module+offset when neither knows.
import Symbols
import TraceFormat

package struct CodeName: Sendable, Equatable, Hashable {
    /// For people.
    package var name: String
    /// Mangled; empty when only module and offset are known.
    package var symbol: String
    package var module: String
    /// Without a directory.
    package var file: String?
    package var line: Int?
    /// Variables that static initializers make, when there is DWARF; empty for other functions.
    package var globals: [String] = []

    /// "slow.c:12".
    package var sourceLocation: String? { file.map { file in line.map { "\(file):\($0)" } ?? file } }
}

/// Not for use by two threads at once.
package final class CodeNames {
    private let metadata: Metadata
    private let symbolizer: Symbolizer
    private var known: [UInt64: CodeName] = [:]
    private var functions: [UInt32: (name: String, module: String)] = [:]
    /// Sorted by their lowest address.
    private let modules: [Module]
    private lazy var recorded: [UInt64: String] = Dictionary(
        metadata.functions.values.lazy.filter { !$0.rawName.isEmpty && $0.address != 0 }.map { ($0.address, $0.rawName) },
        uniquingKeysWith: { min($0, $1) })

    package init(_ metadata: Metadata, _ symbolizer: Symbolizer) {
        self.metadata = metadata
        self.symbolizer = symbolizer
        modules = metadata.modules.values.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
    }

    /// The name of the function that `address` is in. `module` decides where an unloaded module's addresses were used again.
    package func name(at address: UInt64, in module: UInt32? = nil) -> CodeName {
        if let name = known[address] { return name }
        let name = find(address, module.flatMap { metadata.modules[$0] } ?? self.module(at: address))
        known[address] = name
        return name
    }

    /// Name and module of a recorded function by its id: what `FunctionNames`, and so every report, calls it.
    package func function(_ id: UInt32) -> (name: String, module: String) {
        if let known = functions[id] { return known }
        var name = (FunctionNames.unknownName(id), FunctionNames.noModule)
        if let function = metadata.functions[id] {
            name = (
                FunctionNames.displayName(FunctionNames.named(function, metadata, symbolizer), metadata),
                FunctionNames.moduleName(function, metadata)
            )
        }
        functions[id] = name
        return name
    }

    /// The variable at this address, mangled; nil when it has no name.
    package func variable(at address: UInt64) -> String? {
        guard let module = module(at: address) else { return nil }
        return symbolizer.variable(at: address &- module.loadBias, in: module.identity)
    }

    package func module(at address: UInt64) -> Module? {
        let next = bisect(modules.count) { modules[$0].addresses.lowerBound <= address }
        return next > 0 && modules[next - 1].addresses.contains(address) ? modules[next - 1] : nil
    }

    private func find(_ address: UInt64, _ module: Module?) -> CodeName {
        guard let module else {
            return CodeName(name: "0x" + String(address, radix: 16), symbol: "", module: FunctionNames.noModule)
        }
        let linked = address &- module.loadBias
        guard let function = symbolizer.function(at: linked, in: module.identity) else {
            if let symbol = recorded[address] { return CodeName(name: demangled(symbol), symbol: symbol, module: module.name) }
            return CodeName(name: "\(module.name)+0x" + String(linked, radix: 16), symbol: "", module: module.name)
        }
        var name = CodeName(name: demangled(function.name), symbol: function.name, module: module.name)
        if let source = symbolizer.source(at: function.address, in: module.identity) {
            name.file = source.fileName
            name.line = source.line
        }
        if let initializers = symbolizer.staticInitializers(function, in: module.identity) {
            let what = initializers.areDestructors ? "static destructors" : "static initializers"
            name.name = initializers.fileName.map { "\(what) of \($0)" } ?? "\(what) (\(name.name))"
            name.file = initializers.fileName ?? name.file
            name.line = nil // the compiler's own function has no line that says anything
            name.globals = initializers.globals.map { demangled($0) }
        }
        return name
    }
}
