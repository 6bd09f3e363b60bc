// What `tracer waits` shows of waits, locks and page faults: each member declared once for the JSON, its schema and the tables.
import Presentation
import TraceFormat

/// What `tracer waits --json` prints.
package struct WaitOutput: Record {
    private let report: WaitReport
    private let limit: Int

    /// - Parameter limit: of waits; 0 all
    package init(_ report: WaitReport, limit: Int) {
        self.report = report
        self.limit = limit
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("window", windowMeaning, \.report.window?.reported)
        Member("missing", "why the kernel has not reported when threads were off-CPU, and what allows it; null: it has") {
            $0.report.missing.first
        }
        Member("notes", "what could not be found out") { WaitSearch.notes($0.report.processes) }
        Member("idle", "what idle threads waited for, the longest waited for first: docs/guide/waits.md") { report in
            report.report.idle.map { IdleRow(explanation: report.report.explanations[$0.process], totals: $0) }
        }
        Member("totals", "without idle waits; by kind, the one with the longest time first", .object(kindForms), \.totals)
        Member("switches", "context switches of threads; null: the kernel has not reported them", \.report.switchRow)
        Member("places", "without idle waits; by kind and call, the longest waited in first") { $0.report.placeRows(limit: 0) }
        Member("waits", "longest first, also idle ones") { $0.report.waitRows($0.report.order, limit: $0.limit) }
        Member("locks", "the locks that threads waited for, the longest waited for first") { $0.report.lockRows(limit: 0) }
        Member("major_faults", "pages that were not in memory, of each process in the order of time", \.majorFaults)
        Member(
            "minor_faults",
            "faults whose page was in memory, of each process by stage and file; null: not asked for (tracer record --minor-faults)",
            \.minorFaults)
    }

    /// The kind with the longest time comes first: declared members would have a fixed order.
    private var totals: JSON { .object(report.kinds.map { ($0.kind.rawValue, KindRow(kind: $0.kind, lengths: $0.lengths).json) }) }
    private static var kindForms: [JSONMember] { WaitKind.allCases.map { JSONMember(optional: $0.rawValue, KindRow.form) } }
    private var majorFaults: [PageRow] {
        report.pages.enumerated().flatMap { process, pages in pages.map { PageRow(explanation: report.explanations[process], page: $0) } }
    }
    private var minorFaults: [PageTotalsRow]? {
        let isRecorded = report.processes.contains { $0.trace.metadata.kernel?.granted.contains(.minorFaults) == true }
        return isRecorded ? report.rows(report.minorFaults, limit: 0) : nil
    }
}

extension WaitReport {
    /// - Parameters:
    ///   - limit: 0 all
    ///   - spelt: how names are spelt in tables
    func waitRows(_ all: [(process: Int, wait: Int)], limit: Int, _ spelt: @escaping (String) -> String = { $0 }) -> [WaitRow] {
        (limit == 0 ? all[...] : all.prefix(limit)).map { WaitRow(explanations[$0.process], $0.wait, spelt) }
    }

    func lockRows(limit: Int, _ spelt: @escaping (String) -> String = { $0 }) -> [LockRow] {
        (limit == 0 ? locks[...] : locks.prefix(limit)).map { LockRow(explanation: explanations[$0.process], lock: $0, short: spelt) }
    }

    func rows(_ pages: [PageTotals], limit: Int) -> [PageTotalsRow] {
        (limit == 0 ? pages[...] : pages.prefix(limit)).map { PageTotalsRow(explanation: explanations[$0.process], totals: $0) }
    }
}

extension WaitKind: JSONChoice {}

// MARK: - Waits

struct WaitRow: Record {
    let explanation: WaitExplanation
    /// Index among the waits of the process.
    let index: Int
    fileprivate let chain: WaitChain
    /// How names are spelt in tables.
    private let short: (String) -> String

    init(_ explanation: WaitExplanation, _ index: Int, _ spelt: @escaping (String) -> String) {
        self.explanation = explanation
        self.index = index
        chain = WaitChain(of: index, in: explanation.search)
        short = spelt
    }

    fileprivate var wait: Wait { explanation.search.waits[index] }
    fileprivate var thread: ThreadStates { explanation.search.threads[wait.thread] }
    fileprivate var start: Int64 { explanation.time(wait.begin) }
    fileprivate var duration: Nanoseconds { explanation.length(wait.duration) }

    static let members = declare {
        Member("thread", "name", \.thread.name).column("thread", .text) { $0.thread.title }
        Member("tid", \.thread.tid)
        Member("pid", \.explanation.search.trace.header.pid)
        Member("start_ns", "when the thread first left the CPU; negative before the trace's beginning", \.start)
            .column("at") { column(readable(signed: $0.start)) }
        Member("end_ns", "when the thread had a CPU again") { $0.explanation.time($0.wait.end) }
        Member("duration_ns", "time off-CPU in between", \.duration).column("off-CPU") { column(readable($0.duration)) }
        Member("is_call_length", "true where the kernel has not reported context switches: duration_ns is how long the call took") {
            $0.explanation.search.noSwitches != nil
        }
        Member("stretches", "how often it left the CPU in the one call", \.wait.count)
        Member("is_of_agent", "the program had not begun: the agent was starting") { $0.explanation.search.isOfAgent($0.wait) }
        Member("is_idle", "the thread waited for work, and nobody for the thread", \.wait.isIdle)
        Member("function", "the innermost recorded call that was open") { $0.explanation.search.name($0.wait.call.row) }
        Member("caller", "where that call was made: the line, with call sites, or the recorded function") {
            $0.explanation.site(of: $0.wait.call)
        }
        Member("kind", \.wait.kind).column("kind", .text) { $0.wait.kind.rawValue }
        Member("object", "what the thread waited for: an address, \"descriptor 5\", a path, \"process 4711\"", \.wait.object)
        Member("system_call", "the one that the thread was found in, where no recorded call shows what it waited for", \.wait.systemCall)
        Member("holder", \.holder)
        Member("handovers", "how often other threads took the lock in that time", \.wait.handovers)
        Member("chain", "waits of the holder itself in that time, then of the holder of what that one waited for, and so on", \.links)
        Member("is_circular", "the last thread of the chain waits for one of the threads before it", \.chain.isCircular)
        Member("waker", \.waker)
        Member("late_ns", "time from the waker's call or end until the thread ran") { row in
            row.wait.waker?.late.map { row.explanation.length($0) } ?? row.wait.otherProcess?.late
        }
        Member(
            "other_ends",
            "peers that were found to have a pipe or a socket open, where it is not known who ended the wait for it",
            \.wait.peers)
        Member(
            "stack", "where the thread waited, as it was found in a wait of 10 ms or more; null: nobody has looked in time"
        ) { $0.explanation.stack($0.index) }
        Member.shown("what", "waiting in", .name) { $0.explanation.what($0.wait, $0.short) }
    }

    private var holder: HolderRow? { wait.holder.map { HolderRow(row: self, holder: $0) } }
    private var links: [LinkRow] { chain.links.map { LinkRow(explanation: explanation, link: $0) } }

    private var waker: WakerRow? {
        if let waker = wait.waker {
            let thread = explanation.search.threads[waker.thread]
            return WakerRow(
                thread: thread.name, tid: thread.tid, function: explanation.search.name(waker.act.row),
                caller: waker.act.isKnown ? explanation.site(of: waker.act) : nil, at: explanation.time(waker.at))
        }
        return wait.otherProcess.map { other in
            WakerRow(
                thread: other.name, tid: other.tid, function: other.function, caller: other.caller,
                at: explanation.time(wait.end) &- Int64(truncatingIfNeeded: other.late.count))
        }
    }
}

/// The thread that held what another waited for.
private struct HolderRow: Record {
    var row: WaitRow
    var holder: Wait.Holder
    private var thread: ThreadStates { row.explanation.search.threads[holder.thread] }

    static let members = declare {
        Member("thread", "name", \.thread.name)
        Member("tid", \.thread.tid)
        Member("function", "the function that it was in as the wait began, or where it took the lock") {
            $0.row.explanation.site(of: $0.holder)
        }
        Member("library", "the one that it was opening, where it has the loader's lock") {
            $0.row.explanation.search.library(of: $0.holder)
        }
        Member("since_ns") { $0.row.explanation.time($0.holder.since) }
        Member("preempted_ns", "how long, in that time, it was ready to run but had no CPU") {
            $0.row.explanation.search.noSwitches == nil ? $0.row.explanation.length($0.row.chain.preempted) : nil
        }
        Member(
            "inversion",
            "the holder was ready to run but had no CPU, and has a lower priority than the thread that waits; as of the last look at both"
        ) { $0.row.chain.inversion.map { InversionRow(holder: $0.holder.text, waiter: $0.waiter.text) } }
    }
}

/// The priorities of a holder and of the thread that waits for it.
private struct InversionRow: Record {
    var holder: String
    var waiter: String

    static let members = declare {
        Member("holder", "\"idle\", \"nice 10\", \"real-time 5\", \"deadline\"", \.holder)
        Member("waiter", \.waiter)
    }
}

/// A wait of a holder.
private struct LinkRow: Record {
    var explanation: WaitExplanation
    var link: WaitChain.Link
    private var wait: Wait { explanation.search.waits[link.wait] }
    private var thread: ThreadStates { explanation.search.threads[wait.thread] }

    static let members = declare {
        Member("thread", \.thread.name)
        Member("tid", \.thread.tid)
        Member("function") { $0.explanation.search.name($0.wait.call.row) }
        Member("kind", \.wait.kind)
        Member("object", \.wait.object)
        Member("duration_ns") { $0.explanation.length($0.link.duration) }
    }
}

/// The thread that let another go on.
private struct WakerRow: Record {
    var thread: String
    var tid: UInt32
    var function: String?
    var caller: String?
    var at: Int64

    static let members = declare {
        Member("thread", "name", \.thread)
        Member("tid", \.tid)
        Member(
            "function", "the call that released or signalled; null: the thread ended, or the process ended, whose main thread it is then",
            \.function)
        Member("caller", \.caller)
        Member("at_ns", \.at)
    }
}

extension Wait.Peer: Record {
    package static let members = declare {
        Member("thread", "name", \.name)
        Member("pid", \.pid)
        Member("descriptor", \.descriptor)
    }
}

// MARK: - Locks

struct LockRow: Record {
    fileprivate var explanation: WaitExplanation
    fileprivate var lock: LockTotals
    /// How names are spelt in tables.
    fileprivate var short: (String) -> String

    private var duration: Nanoseconds { explanation.length(lock.duration) }
    private var longest: Nanoseconds { explanation.length(lock.longest) }

    /// The longest queue for the lock, if it is a convoy.
    var convoy: ConvoyRow? {
        let queue = lock.longestQueue
        return queue.isConvoy ? ConvoyRow(waits: queue.waits, threads: queue.threads, duration: explanation.length(queue.duration)) : nil
    }

    private func rows(_ sites: [LockTotals.CallSiteTotal]) -> [LockSiteRow] {
        sites.map { LockSiteRow(function: $0.name, waits: $0.waits, duration: explanation.length($0.duration)) }
    }

    private func cell(_ sites: [LockTotals.CallSiteTotal]) -> String {
        let known = sites.compactMap { site in site.name.map { short($0) + (sites.count > 1 ? " ×\(site.waits)" : "") } }
        return known.isEmpty ? "-" : known.prefix(3).joined(separator: "; ") + (known.count > 3 ? "; and \(known.count - 3) more" : "")
    }

    static let members = declare {
        Member("object", \.lock.object).column("lock", .text) { $0.lock.object }
        Member("pid", \.explanation.search.trace.header.pid)
        Member("waits", \.lock.waits).column("waits") { grouped($0.lock.waits) }
        Member("duration_ns", \.duration).column("waited") { column(readable($0.duration)) }
        Member("longest_ns", \.longest).column("longest") { column(readable($0.longest)) }
        Member("threads", "number of threads that waited", \.lock.threads)
        Member("most_at_once", "most threads that waited at one time", \.lock.mostAtOnce)
            .column("at once") { grouped($0.lock.mostAtOnce) }
        Member("convoy", \.convoy)
        Member("waited_in") { $0.rows($0.lock.waitedIn) }.column("waited in", .name) { $0.cell($0.lock.waitedIn) }
        Member("held_in") { $0.rows($0.lock.heldIn) }.column("held in", .name) { $0.cell($0.lock.heldIn) }
    }
}

struct ConvoyRow: Record {
    var waits: Int
    var threads: Int
    var duration: Nanoseconds

    static let members = declare {
        Member("waits", \.waits)
        Member("threads", \.threads)
        Member("duration_ns", \.duration)
    }
}

/// A function in which a lock was waited for, or held.
private struct LockSiteRow: Record {
    var function: String?
    var waits: Int
    var duration: Nanoseconds

    static let members = declare {
        Member("function", \.function)
        Member("waits", \.waits)
        Member("duration_ns", \.duration)
    }
}

// MARK: - Page faults

private let stageMeaning = "of startup.json, or ready: after it"

/// A major fault.
private struct PageRow: Record {
    var explanation: WaitExplanation
    var page: PageWait

    static let members = declare {
        Member("thread", \.thread.name)
        Member("tid", \.thread.tid)
        Member("pid", \.explanation.search.trace.header.pid)
        Member("at_ns", "when the page was there") { $0.explanation.time($0.page.at) }
        Member("duration_ns", "time off-CPU just before; null: unknown") { row in row.page.duration.map { row.explanation.length($0) } }
        Member("file", "null: the page is of no file") { $0.page.path.isEmpty ? nil : $0.page.path }
        Member("offset", \.page.offset)
        Member("symbol", "the function or variable there, or the section", \.page.symbol)
        Member("stage", stageMeaning, \.page.stage)
    }

    private var thread: ThreadStates { explanation.search.threads[page.thread] }
}

/// The faults of one file in one stage.
struct PageTotalsRow: Record {
    fileprivate var explanation: WaitExplanation
    fileprivate var totals: PageTotals

    fileprivate var file: String? { totals.path.isEmpty ? nil : totals.path }
    fileprivate var symbols: String { totals.symbols.isEmpty ? "-" : listed(totals.symbols, most: 3) }

    static let members = declare {
        Member("pid", \.explanation.search.trace.header.pid)
        Member("stage", stageMeaning, \.totals.stage).column("stage", .text) { $0.totals.stage ?? "-" }
        Member("file", "null: the pages are of no file", \.file).column("file", .name) { $0.file ?? "-" }
        Member("faults", \.totals.count).column("minor faults") { grouped($0.totals.count) }
        Member.shown("waited", "waited") {
            $0.totals.duration == 0 ? "-" : column(readable($0.explanation.length($0.totals.duration)))
        }
        Member.shown("symbols", "symbols", .name) { $0.symbols }
    }
}
