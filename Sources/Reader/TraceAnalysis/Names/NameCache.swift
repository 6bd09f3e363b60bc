// Names found while one trace was read, kept for the next: processes of one run share most of their libraries.
import Symbols

/// Not for use by two threads at once.
final class NameCache {
    let symbolizer = Symbolizer()
    private var readable: [String: String] = [:]

    /// As a report names it.
    func row(of function: Function, _ metadata: Metadata) -> FunctionNames.Row {
        let function = FunctionNames.named(function, metadata, symbolizer)
        let module = FunctionNames.moduleName(function, metadata)
        return FunctionNames.Row(name: name(of: function, metadata), symbol: function.rawName, module: module, isEntryOnly: false)
    }

    private func name(of function: Function, _ metadata: Metadata) -> String {
        if function.rawName.isEmpty { return FunctionNames.displayName(function, metadata) }
        if let known = readable[function.rawName] { return known }
        let name = FunctionNames.displayName(function, metadata)
        readable[function.rawName] = name
        return name
    }
}
