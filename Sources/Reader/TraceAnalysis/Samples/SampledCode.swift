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
    /// Addresses of the functions that the loader has run.
    private let initializers: Set<UInt64>
    private var calls: [UInt32: Int] = [:]

    init(_ trace: TraceFile, _ records: SampleRecords, _ symbolizer: Symbolizer) {
        names = CodeNames(trace.metadata, symbolizer)
        times = ModuleTimes(trace.metadata)
        self.symbolizer = symbolizer
        self.records = records
        initializers = Set(trace.metadata.start.initializers.lazy.map { $0.address })
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

    /// Returns whether the agent calls this function without a call in the trace: main, and what the loader runs.
    /// - Parameters:
    ///   - callee, caller: frames on both sides of a mark, innermost first
    ///   - isOutermost: no mark is further out
    ///   - isInMain: it is known that main was running
    func isStart(_ callee: [Frame], calledBy caller: [Frame], isOutermost: Bool, isInMain: Bool) -> Bool {
        if let start = callee.last?.start, initializers.contains(start) { return true }
        guard isOutermost else { return false }
        // A forked child's trace does not say that main was called.
        return isInMain || symbol(callee.last) == "main" || symbol(caller.first)?.hasPrefix("__libc_start") == true
    }

    private func symbol(_ frame: Frame?) -> String? { frame?.functions.last.map { functions[$0].symbol } }

    /// The functions of a stack of the kernel, innermost first, and after them (kernel), which all its time is below. That alone where the
    /// system did not tell the recorder what its functions are called.
    /// - Parameter stack: innermost first; return addresses from the second on
    func kernel(_ stack: ArraySlice<UInt64>) -> [Int] {
        let boundary = number(Self.kernel)
        if records.kernelCode.isEmpty { return [boundary] }
        return zip(stack.indices, stack).map { index, address in
            let name = records.kernelCode(at: index == stack.startIndex ? address : address - 1)?.name ?? "[unknown]"
            return number(CallTree.Function(name: name, symbol: name, module: "kernel"))
        } + [boundary]
    }
    private static let kernel = CallTree.Function(name: "(kernel)", symbol: "(kernel)", module: FunctionNames.noModule)

    private func find(_ address: UInt64, _ module: Module?) -> Frame {
        guard let module else {
            if let made = records.madeCode(at: address) { return frame(made.name, made.name, "[made at run time]", start: made.start) }
            // Each address would be a function of its own.
            return frame("[no module]", "[no module]", FunctionNames.noModule)
        }
        let linked = address &- module.loadBias
        if module.isOfAgent { return frame("(recording)", "(recording)", module.name, isAgent: true) }
        guard let function = symbolizer.function(at: linked, in: module.identity) else {
            guard let start = symbolizer.functionStart(at: linked, in: module.identity) else { return frame(module.name, "", module.name) }
            let code = names.name(at: start &+ module.loadBias, in: module.index)
            return frame(code.name, code.symbol, code.module, start: start &+ module.loadBias)
        }
        let inlined = symbolizer.inlined(at: linked, in: module.identity).map {
            number(CallTree.Function(name: demangled($0), symbol: $0, module: module.name))
        }
        var frame = frame(demangled(function.name), function.name, module.name, start: function.address &+ module.loadBias)
        frame.functions = inlined + frame.functions
        return frame
    }

    private func frame(_ name: String, _ symbol: String, _ module: String, start: UInt64? = nil, isAgent: Bool = false) -> Frame {
        Frame(functions: [number(CallTree.Function(name: name, symbol: symbol, module: module))], start: start, isAgent: isAgent)
    }
}
