// Names of the code that samples were in: the function, and those that the compiler has put into it, as far as DWARF says.
import Symbols

/// Not for use by two threads at once.
final class SampledCode {
    struct Frame {
        /// In `functions`, innermost first: what was inlined, then what it was inlined into.
        var functions: [Int]
        /// Absolute start address of the function that the address is in; nil: not known.
        var start: UInt64?
        /// The agent's own code.
        var isAgent: Bool
    }
    private(set) var functions: [CallTree.Function] = []
    private var numbers: [CallTree.Function: Int] = [:]
    private var frames: [UInt64: [UInt32: Frame]] = [:]
    private let names: CodeNames
    private let times: ModuleTimes
    private let symbolizer: Symbolizer
    private let records: SampleRecords
    private var calls: [UInt32: Int] = [:]

    init(_ trace: TraceFile, _ records: SampleRecords, _ symbolizer: Symbolizer) {
        names = CodeNames(trace.metadata, symbolizer)
        times = ModuleTimes(trace.metadata)
        self.symbolizer = symbolizer
        self.records = records
    }

    func number(_ function: CallTree.Function) -> Int {
        if let known = numbers[function] { return known }
        functions.append(function)
        numbers[function] = functions.count - 1
        return functions.count - 1
    }

    /// A recorded call's, which every report calls so.
    func number(ofCall function: UInt32, _ metadata: Metadata) -> Int {
        if let known = calls[function] { return known }
        let (name, module) = names.function(function)
        let number = number(CallTree.Function(name: name, symbol: metadata.functions[function]?.rawName ?? "", module: module))
        calls[function] = number
        return number
    }

    /// - Parameter address: of an instruction: of calls not where they return to
    func frame(_ address: UInt64, at ticks: UInt64) -> Frame {
        let epoch = times.epoch(at: ticks)
        if let known = frames[address]?[epoch] { return known }
        let frame = find(address, times.module(at: address, epoch: epoch))
        frames[address, default: [:]][epoch] = frame
        return frame
    }

    private func find(_ address: UInt64, _ module: Module?) -> Frame {
        guard let module else {
            if let made = records.madeCode(at: address) {
                return Frame(
                    functions: [number(CallTree.Function(name: made.name, symbol: made.name, module: Self.made))], start: made.start,
                    isAgent: false)
            }
            // Each address would be a function of its own.
            return Frame(functions: [number(Self.nowhere)], start: nil, isAgent: false)
        }
        let linked = address &- module.loadBias
        if module.isOfAgent { return Frame(functions: [number(Self.agent(module.name))], start: nil, isAgent: true) }
        guard let function = symbolizer.function(at: linked, in: module.identity) else {
            guard let start = symbolizer.functionStart(at: linked, in: module.identity) else {
                return Frame(
                    functions: [number(CallTree.Function(name: module.name, symbol: "", module: module.name))], start: nil, isAgent: false)
            }
            let code = names.name(at: start &+ module.loadBias, in: module.index)
            return Frame(
                functions: [number(CallTree.Function(name: code.name, symbol: code.symbol, module: code.module))],
                start: start &+ module.loadBias, isAgent: false)
        }
        let inlined = symbolizer.inlined(at: linked, in: module.identity).map {
            number(CallTree.Function(name: demangled($0), symbol: $0, module: module.name))
        }
        let own = number(CallTree.Function(name: demangled(function.name), symbol: function.name, module: module.name))
        return Frame(functions: inlined + [own], start: function.address &+ module.loadBias, isAgent: false)
    }

    /// The module of code that was made while the program ran.
    private static let made = "[made at run time]"
    private static let nowhere = CallTree.Function(name: "[no module]", symbol: "[no module]", module: FunctionNames.noModule)
    private static func agent(_ module: String) -> CallTree.Function {
        CallTree.Function(name: "(recording)", symbol: "(recording)", module: module)
    }
}
