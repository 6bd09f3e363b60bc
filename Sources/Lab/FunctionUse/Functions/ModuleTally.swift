// Sums for one module over several traces.
import Symbols
import TraceAnalysis

/// The same file, wherever it was loaded.
struct ModuleKey: Hashable {
    private let buildID: [UInt8]
    private let path: String
    private let spanBytes: UInt64
    private let file: ModuleIdentity.LoadedFile?

    init(_ module: Module) {
        buildID = module.buildID
        path = module.buildID.isEmpty ? module.path : ""
        spanBytes = module.buildID.isEmpty ? module.identity.spanBytes : 0
        file = module.buildID.isEmpty ? module.file : nil
    }

    /// To sort by.
    var text: String { hexadecimalText + path }
    private var hexadecimalText: String { buildID.map { String($0, radix: 16) }.joined(separator: ".") }
}

struct FunctionTally {
    var calls: UInt64 = 0
    /// Although none of its calls may be there.
    var isCalled = false
    var isLeast = false
    /// A trace has none of its calls, and may lack some.
    var mayBeMissed = false
    private(set) var symbol: String?

    var hasCalls: Bool { calls > 0 || isCalled }

    /// Keeps one of the names by which it was called, whichever comes first: rather one without underscores, which are a library's own.
    mutating func add(symbol: String) {
        func rank(_ name: String) -> (Int, String) { (name.hasPrefix("_") ? 1 : 0, name) }
        self.symbol = self.symbol.map { rank($0) < rank(symbol) ? $0 : symbol } ?? symbol
    }
}

struct ModuleTally {
    struct Appearance {
        var trace: TraceFile
        var module: Module
        var recorded: RecordedFunctions
        /// Its functions are recorded, not only what goes through slots.
        var isWhole: Bool { trace.metadata.patched[module.index].map { $0.patched > 0 } ?? false }
    }
    /// As the first trace has it.
    let module: Module
    private(set) var paths: [String] = []
    /// In some trace it is the executable.
    private(set) var isMain = false
    /// Sums of its functions by start address, as linked.
    var functions: [UInt64: FunctionTally] = [:]
    var traces: [Appearance] = []

    init(_ module: Module) { self.module = module }

    mutating func add(_ module: Module, isMain: Bool) {
        if !paths.contains(module.path) { paths.append(module.path) }
        if isMain { self.isMain = true }
    }

    /// A function that was not recorded in one of the traces may have been called there.
    func reasons(_ planned: [PlannedFunction]) -> [UnknownReason?] {
        var reasons: [UnknownReason?] = planned.map { _ in nil }
        for appearance in traces {
            for (index, reason) in appearance.recorded.reasons(planned, in: appearance.module).enumerated() where reasons[index] == nil {
                reasons[index] = reason
            }
        }
        return reasons
    }
}
