// Link-time order of a module's functions: those that its start calls, in call order; then those that are called later, the hottest groups
// first. The rest is left to the linker.
import EntryPlan
import Presentation
import Symbols
import TraceAnalysis

package struct LaidFunction: Sendable {
    /// As linked.
    package var address: UInt64
    package var byteCount: UInt64
    /// Mangled; empty: it has no name.
    package var symbols: [String]
    package var name: String { symbols.first.map { demangled($0) } ?? "0x" + String(address, radix: 16) }
}

package struct LayoutOrder: Sendable {
    package struct Problem: Error {
        package var message: String
    }

    /// Numbers of text pages that functions occupy; whole functions count.
    package struct Pages: Sendable {
        package static let byteCount: UInt64 = 4096
        /// Pages that hold some of the functions, as linked now.
        package var now: Int
        /// Pages needed when the functions lie one after the other.
        package var together: Int

        init(_ functions: [LaidFunction]) {
            var pages: Set<UInt64> = [], bytes: UInt64 = 0
            for function in functions where function.byteCount > 0 {
                for page in function.address / Self.byteCount...(function.address + function.byteCount - 1) / Self.byteCount {
                    pages.insert(page)
                }
                bytes += function.byteCount
            }
            now = pages.count
            together = Int((bytes + Self.byteCount - 1) / Self.byteCount)
        }
    }

    /// A moment that ended the start, and the number of traces with it.
    package struct Readiness: Sendable {
        /// "never ready" where there is none.
        package var text: String
        package var traces: Int
    }

    package let module: Module
    /// The start's, then the others that were called.
    package private(set) var start: [LaidFunction] = []
    package private(set) var later: [LaidFunction] = []
    /// Number of functions of the file that were never called; nil: the file is not here, or no plan can be made of it.
    package private(set) var uncalledCount: Int?
    /// The moments that ended the start, those of the most traces first.
    package private(set) var readiness: [Readiness] = []
    package private(set) var traceCount = 0
    package private(set) var doubts = LayoutDoubts()
    package private(set) var complaints: [String] = []

    /// - Parameters:
    ///   - isWanted: of a module's name; nil: the program that was started
    ///   - ready: the function whose first call says that the program is ready
    package init(
        _ traces: [TraceFile], symbolizer: Symbolizer, isWanted: ((String) -> Bool)?, ready: String?, progress: ReadingProgress? = nil
    ) throws(Problem) {
        module = try Self.module(of: traces, isWanted, &complaints)
        let key = ModuleKey(module)
        var vote = FirstCallVote(), calls: [UInt64: UInt64] = [:], pairs: [AddressPair: UInt64] = [:], others: [String: Int] = [:]
        var readiness: [String: Int] = [:]
        for trace in traces where trace.metadata.modules.values.contains(where: { ModuleKey($0) == key }) {
            traceCount += 1
            let moment = trace.hasStart ? trace.readyMoment(symbol: ready) : nil
            if let complaint = moment?.complaint { complaints.append("\(trace.path): \(complaint); the whole trace counts as start-up") }
            // A forked process was started before.
            let end = trace.hasStart ? moment?.moment?.ticks : trace.firstTicks
            if trace.hasStart { readiness[moment?.moment.map { "ready at \($0.text)" } ?? "never ready", default: 0] += 1 }
            let counts = CallCounts(trace, after: end, progress: progress)
            func linkedAddress(_ id: UInt32) -> UInt64? {
                guard let function = trace.metadata.functions[id], !function.isSpan, !function.isMark,
                    let module = function.module.flatMap({ trace.metadata.modules[$0] })
                else { return nil }
                if ModuleKey(module) != key {
                    return nil
                }
                return function.address &- module.loadBias
            }
            var first: [UInt64] = [], known: Set<UInt64> = []
            for call in counts.firsts where end.map({ call.ticks <= $0 }) ?? true {
                if let address = linkedAddress(call.function), known.insert(address).inserted { first.append(address) }
            }
            if trace.hasStart { vote.add(first) }
            for (id, count) in counts.later { if let address = linkedAddress(id) { calls[address, default: 0] &+= count } }
            for (pair, count) in counts.pairs {
                if let caller = linkedAddress(pair.caller), let callee = linkedAddress(pair.callee) {
                    pairs[AddressPair(caller: caller, callee: callee), default: 0] &+= count
                }
            }
            for id in counts.calls.keys {
                guard let index = trace.metadata.functions[id]?.module, let module = trace.metadata.modules[index], ModuleKey(module) != key
                else { continue }
                others[module.name, default: 0] += 1
            }
        }
        self.readiness = readiness.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.map { Readiness(text: $0.key, traces: $0.value) }
        let file = functions(symbolizer, Set(vote.order).union(calls.keys), traces)
        start = vote.order.compactMap { file[$0] }
        let started = Set(start.lazy.map { $0.address })
        let rest = calls.keys.filter { !started.contains($0) && file[$0] != nil }.sorted()
        let numbers = Dictionary(uniqueKeysWithValues: rest.enumerated().map { ($1, $0) })
        var near: [CallAffinity.Pair: UInt64] = [:]
        for (pair, count) in pairs {
            if let caller = numbers[pair.caller], let callee = numbers[pair.callee] { near[.init(caller: caller, callee: callee)] = count }
        }
        later = CallAffinity.order(rest.map { .init(byteCount: file[$0]!.byteCount, calls: calls[$0]!) }, near).map { file[rest[$0]]! }
        if uncalledCount != nil { uncalledCount! -= start.count + later.count }
        doubts = LayoutDoubts(start + later, all: Array(file.values), module, symbolizer, others: others)
    }

    /// True if the order has a function that a linker can place.
    package var hasNames: Bool { (start + later).contains { $0.symbols.first.map { !LayoutDoubts.startFileNames.contains($0) } ?? false } }

    private struct AddressPair: Hashable {
        var caller: UInt64
        var callee: UInt64
    }

    /// One build of one module.
    private static func module(of traces: [TraceFile], _ isWanted: ((String) -> Bool)?, _ complaints: inout [String]) throws(Problem)
        -> Module
    {
        // The last image of the first process: a wrapper may have started it by exec.
        let main = traces.last { $0.header.pid == traces.first?.header.pid }
        let found =
            isWanted.map { isWanted in traces.lazy.flatMap { $0.sortedModules }.first { isWanted($0.name) } } ?? main?.executableModule
        guard let first = found else { throw Problem(message: "the traces have no such module: tracer info lists their modules") }
        let same = traces.compactMap { $0.sortedModules.first { $0.name == first.name } }
        let left = same.count { ModuleKey($0) != ModuleKey(first) }
        if left > 0 {
            complaints.append("skipped \(counted(left, "trace")) of another build of \(first.name): an order is made from one build")
        }
        return first
    }

    /// Returns the functions of the file by address; without the file, or a plan of it, those in `called` with the traces' names.
    private mutating func functions(_ symbolizer: Symbolizer, _ called: Set<UInt64>, _ traces: [TraceFile]) -> [UInt64: LaidFunction] {
        if symbolizer.hasFile(of: module.identity) {
            do throws(PlanProblem) {
                let planned = try PlannedModule(path: module.path).functions
                uncalledCount = planned.count
                return Dictionary(
                    planned.map { ($0.address, LaidFunction(address: $0.address, byteCount: $0.byteCount, symbols: $0.symbols)) },
                    uniquingKeysWith: { first, _ in first })
            } catch {
                complaints.append(error.message)
            }
        } else {
            complaints.append("\(module.path) was not found, or is another build: names come from the traces, and sizes are not known")
        }
        var found: [UInt64: LaidFunction] = [:]
        for trace in traces {
            for function in trace.metadata.functions.values {
                guard let own = function.module.flatMap({ trace.metadata.modules[$0] }), ModuleKey(own) == ModuleKey(module) else {
                    continue
                }
                let address = function.address &- own.loadBias
                let symbols = function.rawName.isEmpty || function.rawName.hasPrefix("0x") ? [] : [function.rawName]
                if called.contains(address) { found[address] = LaidFunction(address: address, byteCount: 0, symbols: symbols) }
            }
        }
        return found
    }
}
