// What `tracer top` reads: one process, or all processes of a run, as their traces grow.
import CTraceLayout
import Presentation
import TraceFormat

package enum TopGrouping: String, CaseIterable, Sendable { case function, thread, module }

package enum TopOrder: String, CaseIterable, Sendable {
    case calls, total, selfTime = "self", median = "p50", percentile99 = "p99", longest, open, name

    func comesFirst(_ a: TopRow, _ b: TopRow) -> Bool {
        func longer(_ a: Nanoseconds?, _ b: Nanoseconds?) -> Bool { (a?.count ?? 0, a == nil ? 0 : 1) > (b?.count ?? 0, b == nil ? 0 : 1) }
        let (one, other) = (a.figures, b.figures)
        switch self {
        case .calls: if one.calls != other.calls { return one.calls > other.calls }
        case .total: if one.total != other.total { return one.total > other.total }
        case .selfTime: break
        case .median: if one.median != other.median { return longer(one.median?.time, other.median?.time) }
        case .percentile99:
            if one.percentile99 != other.percentile99 { return longer(one.percentile99?.time, other.percentile99?.time) }
        case .longest: if one.maximum != other.maximum { return longer(one.maximum, other.maximum) }
        case .open:
            if a.open != b.open { return a.open > b.open }
            if a.oldest != b.oldest { return longer(a.oldest, b.oldest) }
        case .name: return (one.name, one.module, one.symbol) < (other.name, other.module, other.symbol)
        }
        if one.selfTime != other.selfTime { return one.selfTime > other.selfTime }
        return (one.name, one.module, one.symbol) < (other.name, other.module, other.symbol) // the same order each time
    }
}

/// The rows that are wanted, and what they are of.
package struct TopView: Sendable {
    package var grouping = TopGrouping.function
    package var order = TopOrder.selfTime
    /// Since the beginning, and not of the last interval.
    package var isWhole = false
    package var filter: FunctionPattern?
    /// Rows that percentiles are wanted for; 0 all.
    package var most = 0

    package init() {}
}

/// Used by one thread at a time.
package final class TopReading {
    private var traces: [GrowingTrace] = []
    private var known: Set<String>
    private let find: () -> [String]
    /// Sums of the traces that have ended, where there are several, in nanoseconds.
    private var endedFunctions = NamedSums(nil, areModules: false), endedModules = NamedSums(nil, areModules: true)
    private var endedThreads = ThreadSums(), endedThreadTime: UInt64 = 0, endedInCalls: UInt64 = 0
    private var endedLosses = TopLosses(), endedCount = 0
    private var looks = 0
    /// One line for each trace that cannot be read.
    package private(set) var problems: [String] = []
    /// Nobody wrote to any of the traces when the reading began: all of them are read from their beginning.
    package let isOfEnded: Bool
    private let beganAt = LivingProcess.monotonicTime
    private var intervalBegan: UInt64, intervalTime: UInt64 = 0, wholeTime: UInt64 = 0

    /// Throws `TraceError` if no trace can be read.
    /// - Parameters:
    ///   - paths: the traces
    ///   - fromStart: reads living processes from the beginning of their traces, and not from now on
    ///   - find: the paths that there are at this moment: processes begin while others are read
    package init(_ paths: [String], fromStart: Bool = false, find: @escaping () -> [String]) throws {
        known = Set(paths)
        self.find = find
        var all: [GrowingTrace] = [], first: (any Error)?
        for path in paths {
            do { all.append(try GrowingTrace(path: path, fromStart: fromStart)) } catch {
                first = first ?? error
                problems.append("\(error)")
            }
        }
        if all.isEmpty, let first { throw first }
        let living = all.filter { $0.isLive }
        isOfEnded = living.isEmpty
        traces = living.isEmpty || fromStart ? all : living
        intervalBegan = LivingProcess.monotonicTime
    }

    /// All of them have ended, and nothing more will come.
    package var isOver: Bool { traces.allSatisfy { $0.isOver } }
    package var hasCountsAlone: Bool { !traces.isEmpty && traces.allSatisfy { $0.hasCountsAlone } }
    package var path: String { traces.first?.file.path ?? "" }
    private var isSeveral: Bool { traces.count + endedCount > 1 }

    /// Reads what has been written since the last look.
    /// - Parameter time: nanoseconds that it may take; nil: as long as it takes
    package func look(within time: UInt64? = nil) {
        looks += 1
        if !isOfEnded, looks % 8 == 1 { findMore() }
        let living = max(traces.count { !$0.isOver }, 1)
        for trace in traces { trace.look(within: time.map { $0 / UInt64(living) }) }
    }

    private func findMore() {
        for path in find() where !known.contains(path) {
            // One that cannot be read yet is tried again.
            guard let trace = try? GrowingTrace(path: path, fromStart: true) else { continue }
            known.insert(path)
            traces.append(trace)
        }
    }

    /// Ends an interval: its figures are shown from now on, and those of what is read from now on are of the next one.
    package func endInterval() {
        forgetEnded()
        for trace in traces { trace.endInterval() }
        let now = LivingProcess.monotonicTime
        if isOfEnded {
            wholeTime = traces.map { $0.wholeLength.count }.max() ?? 0
            intervalTime = wholeTime
        } else {
            (intervalTime, intervalBegan) = (now - intervalBegan, now)
            wholeTime = max(now - beganAt, traces.count == 1 ? traces[0].wholeLength.count : 0)
        }
    }

    /// Traces that had ended before are added up. Memory does not grow with them.
    private func forgetEnded() {
        guard isSeveral, !isOfEnded else { return }
        for trace in traces where trace.isEnded {
            endedFunctions.add(trace, trace.whole)
            endedModules.add(trace, trace.whole)
            let sums = Self.threads(trace, isWhole: true)
            endedThreads.calls &+= sums.calls
            endedThreads.onlyCounted &+= sums.onlyCounted
            endedThreadTime &+= trace.scale.nanoseconds(sums.span).count
            endedInCalls &+= trace.scale.nanoseconds(sums.inCalls).count
            endedLosses = endedLosses.adding(trace.losses)
            endedCount += 1
        }
        traces.removeAll { $0.isEnded }
    }

    private static func threads(_ trace: GrowingTrace, isWhole: Bool) -> ThreadSums {
        var sums = isWhole ? trace.forgottenThreads : ThreadSums()
        for thread in trace.threads.values { sums.add(isWhole ? thread.whole : thread.shown) }
        return sums
    }

    // MARK: - Rows

    package func snapshot(_ view: TopView) -> TopSnapshot {
        var snapshot = TopSnapshot(view)
        snapshot.length = Nanoseconds(view.isWhole ? wholeTime : intervalTime)
        snapshot.isOver = isOver
        snapshot.processes = traces.map {
            TopProcess(
                pid: $0.header.pid, program: $0.identity.program, name: $0.identity.processName, command: $0.identity.commandLine,
                state: $0.state, isTruncated: $0.isTruncated)
        }
        snapshot.endedProcesses = endedCount
        if view.isWhole {
            snapshot.calls = endedThreads.calls
            snapshot.onlyCounted = endedThreads.onlyCounted
            (snapshot.threadTime, snapshot.inCalls) = (Nanoseconds(endedThreadTime), Nanoseconds(endedInCalls))
            snapshot.losses = endedLosses
        }
        for trace in traces {
            let sums = Self.threads(trace, isWhole: view.isWhole)
            snapshot.calls &+= sums.calls
            snapshot.onlyCounted &+= sums.onlyCounted
            snapshot.threads += trace.liveThreads
            snapshot.threadTime = Nanoseconds(snapshot.threadTime.count &+ trace.scale.nanoseconds(sums.span).count)
            snapshot.inCalls = Nanoseconds(snapshot.inCalls.count &+ trace.scale.nanoseconds(sums.inCalls).count)
            snapshot.losses = snapshot.losses.adding(view.isWhole ? trace.losses : trace.intervalLosses)
        }
        snapshot.rows = view.grouping == .thread ? threadRows(view, snapshot) : rows(view, snapshot)
        snapshot.rows.sort(by: view.order.comesFirst)
        return snapshot
    }

    private func rows(_ view: TopView, _ snapshot: TopSnapshot) -> [TopRow] {
        var sums = NamedSums(isSeveral ? nil : traces.first?.scale, areModules: view.grouping == .module)
        for trace in traces {
            if view.isWhole { sums.add(trace, trace.whole) } else { sums.add(trace, trace.interval) }
            sums.addOpen(trace)
        }
        if view.isWhole, endedCount > 0 {
            if view.grouping == .module { sums.add(endedModules) } else { sums.add(endedFunctions) }
        }
        let found = sums.summaries { row in
            view.filter.map {
                view.grouping == .module
                    ? $0.matches(name: row.name, symbol: "", module: row.name)
                    : $0.matches(name: row.name, symbol: row.symbol, module: row.module)
            } ?? true
        }
        var rows = found.map {
            TopRow(
                $0.summary, view.grouping, length: snapshot.length, whole: snapshot.threadTime, open: $0.open, oldest: $0.oldest,
                isAtLeast: snapshot.isAtLeast, number: $0.number)
        }
        if view.filter == nil, view.grouping == .function {
            for trace in traces.prefix(1) where snapshot.own.count > 0 {
                let own = FunctionSummary.ownCode(of: basename(trace.identity.program), snapshot.own)
                rows.append(TopRow(own, view.grouping, length: snapshot.length, whole: snapshot.threadTime))
            }
        }
        // Only the rows that are shown have percentiles, unless they decide which these are.
        let needsAll = view.most == 0 || view.order == .median || view.order == .percentile99
        if !needsAll { rows = Array(rows.sorted(by: view.order.comesFirst).prefix(view.most)) }
        for index in rows.indices {
            if let number = rows[index].number { sums.addPercentiles(number, to: &rows[index].figures) }
        }
        return rows
    }

    private func threadRows(_ view: TopView, _ snapshot: TopSnapshot) -> [TopRow] {
        var rows: [TopRow] = []
        for trace in traces {
            for reading in trace.threads.values {
                let sums = view.isWhole ? reading.whole : reading.shown
                if reading.hasEnded, !view.isWhole, sums.calls == 0 { continue }
                let name = trace.name(of: reading.thread)
                if let filter = view.filter, !filter.matches(name: name, symbol: String(reading.tid), module: "") { continue }
                let inCalls = trace.scale.nanoseconds(sums.inCalls)
                var row = TopRow(
                    FunctionSummary(
                        name: name, symbol: "", module: trace.identity.processName, calls: sums.calls, timedCalls: sums.calls,
                        total: inCalls,
                        selfTime: Int64(clamping: inCalls.count)), .thread, length: snapshot.length,
                    whole: trace.scale.nanoseconds(sums.span), isAtLeast: snapshot.isAtLeast)
                row.pid = trace.header.pid
                row.tid = reading.tid
                if !trace.isOver, !reading.hasEnded, let frame = reading.calls.frames.last {
                    row.open = reading.calls.frames.count
                    row.oldest = trace.age(frame)
                    row.innermost = trace.functions.rows[Int(frame.row)].name
                }
                rows.append(row)
            }
            if view.isWhole, trace.forgottenThreads.calls > 0, view.filter == nil {
                let sums = trace.forgottenThreads, inCalls = trace.scale.nanoseconds(sums.inCalls)
                rows.append(
                    TopRow(
                        FunctionSummary(
                            name: "(threads that have ended)", symbol: "", module: trace.identity.processName, calls: sums.calls,
                            timedCalls: sums.calls, total: inCalls, selfTime: Int64(clamping: inCalls.count)), .thread,
                        length: snapshot.length, whole: trace.scale.nanoseconds(sums.span)))
            }
        }
        return rows
    }
}
