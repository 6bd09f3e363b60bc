// The call site of a call, by the address that it returns to: the function there, the line, the module. Modules
// come and go, and another one may have had the same addresses before or since.
import Symbols
import TraceFormat

package struct CallSite: Sendable, Hashable {
    /// For people: the function that the call is in, module+0x1234 where it has no symbol.
    package var name: String
    /// Mangled; empty where there is none.
    package var symbol: String
    package var module: String
    /// Without a directory.
    package var file: String?
    package var line: Int?
    /// Return address as linked; nil where the line is known.
    package var address: UInt64?
    /// The same, relative to the start of the function where that is known.
    var offset: UInt64?

    /// A call whose jump nobody has seen, a span or a mark.
    package static let unknown = CallSite(name: "(unknown)", symbol: "", module: FunctionNames.noModule)
    package var isKnown: Bool { self != .unknown }

    /// "refresh_index, dir.c:123 (git)"; without symbols "git+0x1234".
    package func text(_ spelt: (String) -> String) -> String {
        if !isKnown { return name }
        if symbol.isEmpty, file == nil, let address, module != FunctionNames.noModule { return "\(module)+0x" + String(address, radix: 16) }
        let location = file.map { file in ", " + (line.map { "\(file):\($0)" } ?? file) }
        return spelt(name) + (location ?? offset.map { "+0x" + String($0, radix: 16) } ?? "") + " (\(module))"
    }
}

/// Finds the module that had an address at a given time.
struct ModuleTimes: Sendable {
    private let modules: [Module]
    /// Every time that a module got addresses which another one had before or has had since.
    private let changes: [(ticks: UInt64, module: Int)]

    init(_ metadata: Metadata) {
        let modules = metadata.modules.values.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
        var shared = Set<Int>(), first = 0, end: UInt64 = 0 // shared: modules whose addresses overlap
        for index in modules.indices {
            if modules[index].addresses.lowerBound >= end { first = index } else { shared.formUnion([index - 1, index, first]) }
            end = max(end, modules[index].addresses.upperBound)
        }
        self.modules = modules
        changes = shared.flatMap { index in
            let again = metadata.start.moduleDetails[modules[index].index]?.laterLoads.compactMap { metadata.start.load($0)?.opened } ?? []
            return ([modules[index].loaded] + again).map { ($0.raw, index) }
        }.sorted { $0 < $1 }
    }

    /// Between two changes every address is of one module.
    func epoch(at ticks: UInt64) -> UInt32 { changes.isEmpty ? 0 : UInt32(bisect(changes.count) { changes[$0].ticks <= ticks }) }

    func module(at address: UInt64, epoch: UInt32) -> Module? {
        if let change = changes[..<Int(epoch)].last(where: { modules[$0.module].addresses.contains(address) }) {
            return modules[change.module]
        }
        // None of those that share addresses; or one that was seen late.
        let next = bisect(modules.count) { modules[$0].addresses.lowerBound <= address }
        return modules[..<next].last { $0.addresses.contains(address) }
    }
}

/// Not for use by two threads at once.
final class CallSites {
    private let symbolizer: Symbolizer

    init(_ symbolizer: Symbolizer) { self.symbolizer = symbolizer }

    /// - Parameter address: what the call returns to. It may be the first of another function, so the byte before it is looked up.
    func site(_ address: UInt64, in module: Module?) -> CallSite {
        guard let module else {
            return CallSite(name: "0x" + String(address, radix: 16), symbol: "", module: FunctionNames.noModule, address: address)
        }
        let linked = address &- module.loadBias
        var site = CallSite(name: module.name, symbol: "", module: module.name, address: linked, offset: linked)
        if let function = symbolizer.function(at: linked &- 1, in: module.identity) {
            site.name = demangled(function.name)
            site.symbol = function.name
            site.offset = linked &- function.address
        } else if let start = symbolizer.functionStart(at: linked &- 1, in: module.identity) {
            site.name = "\(module.name)+0x" + String(start, radix: 16)
            site.offset = linked &- start
        }
        if let source = symbolizer.source(at: linked &- 1, in: module.identity) {
            site.file = source.fileName
            site.line = source.line
            // Calls that a compiler has made several of are one to whoever wrote the line.
            site.address = nil
            site.offset = nil
        }
        return site
    }
}
