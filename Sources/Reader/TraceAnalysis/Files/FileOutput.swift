// What `tracer files` shows: each member declared once for the JSON, its schema, CSV and the table.
import Presentation
import TraceFormat

package struct FileOutput {
    private let report: FileReport
    private let rows: [FileUse]
    /// All that `--path` chooses, also where not all are shown.
    private let wanted: [FileUse]

    package init(_ report: FileReport, order: FileReport.Order, limit: Int, isWanted: (String) -> Bool) {
        self.report = report
        wanted = report.chosen(isWanted, by: order, limit: 0)
        rows = limit > 0 ? Array(wanted.prefix(limit)) : wanted
    }

    fileprivate func sum(_ figure: (FileUse) -> UInt64) -> UInt64 { wanted.reduce(0) { $0 &+ figure($1) } }
    fileprivate func time(_ kind: FileUse.Kind) -> Nanoseconds { Nanoseconds(sum { $0[kind].time.count }) }
    fileprivate func calls(_ kind: FileUse.Kind) -> Int { wanted.reduce(0) { $0 + $1[kind].calls } }
    fileprivate func failed(_ kind: FileUse.Kind) -> Int { wanted.reduce(0) { $0 + $1[kind].failed } }
    private var beforeReady: Int? { report.ready.map { ready in wanted.count { $0.first < ready } } }
}

extension FileOutput: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("ready_ns", "when the run's first process was ready, since its beginning; null: it never was", \.report.ready)
        Member("missing", "why the kernel has not reported when threads were off-CPU, and what allows it; null: it has", \.report.missing)
        Member("notes", "what is not known, or not counted") { $0.report.remarks + $0.report.alarms }
        Member(
            "look_ups_without_path", "calls of stat, access and others that were recorded without their arguments", \.report.lookUpsWithout)
        Member("count", "number of all files that are wanted", \.wanted.count)
        Member("before_ready", "how many of them were used before ready; null: never ready", \.beforeReady)
        Member("opens", "of these files, as in a row", { $0.calls(.open) })
        Member("failed_opens") { $0.failed(.open) }
        Member("look_ups") { $0.calls(.lookUp) }
        Member("failed_look_ups") { $0.failed(.lookUp) }
        Member("read_bytes") { output in output.sum { $0[.read].bytes } }
        Member("written_bytes") { output in output.sum { $0[.write].bytes } }
        Member("time_ns") { output in Nanoseconds(output.sum(\.time.count)) }
        Member("files", "in the order of --sort", \.rows)
        Member("other_calls", "on descriptors that are no files", \.report.otherCalls)
        Member("unknown_calls", "on descriptors of which the trace does not say what they are", \.report.unknownCalls)
    }
}

extension FileUse: Record {
    private static func cell(_ count: Int) -> String { count == 0 ? "-" : grouped(count) }
    private static func cell(bytes: UInt64) -> String { bytes == 0 ? "-" : readable(byteCount: bytes) }
    private static func cell(_ counts: Counts) -> String {
        counts.failed == 0 ? cell(counts.calls) : "\(grouped(counts.calls)) (\(grouped(counts.failed)) failed)"
    }

    package static let members = declare {
        Member(
            "path",
            "absolute where the folder is known that it is relative to; otherwise as the program passed it. Symbolic links are not followed",
            \.path
        ).column("path", .name) { $0.path }
        Member("opens", "open, fopen, opendir and others, with those that failed") { $0[.open].calls }
            .column("opens") { cell($0[.open]) }
        Member("failed_opens") { $0[.open].failed }
        Member("look_ups", "stat, access, readlink and others, with those that failed") { $0[.lookUp].calls }
            .column("look-ups") { cell($0[.lookUp]) }
        Member("failed_look_ups") { $0[.lookUp].failed }
        Member("reads", "calls") { $0[.read].calls }
        Member("read_bytes") { $0[.read].bytes }.column("read") { cell(bytes: $0[.read].bytes) }
        Member("writes", "calls") { $0[.write].calls }
        Member("written_bytes") { $0[.write].bytes }.column("written") { cell(bytes: $0[.write].bytes) }
        Member("maps", "calls of mmap", \.maps.calls)
        Member("mapped_bytes", \.maps.bytes)
        Member("syncs", "fsync, fdatasync, syncfs") { $0[.sync].calls }
        Member("changes", "unlink, rename, mkdir, truncate, chmod and others") { $0[.change].calls }
        Member("time_ns", "in all of these calls", \.time).column("time") { column(readable($0.time)) }
        Member("open_ns", "in calls that open, map or close it") { $0[.open].time }
        Member("read_ns") { $0[.read].time }
        Member("write_ns") { $0[.write].time }
        Member("sync_ns") { $0[.sync].time }
        Member("look_up_ns") { $0[.lookUp].time }
        Member("change_ns") { $0[.change].time }
        Member("waiting_ns", "off-CPU in these calls; null: the kernel has not reported it") { $0.isWaitingKnown ? $0.waiting : nil }
        Member(
            "source",
            "disk: a thread was off-CPU in a call that read; cache: none was; null: nothing was read, or the kernel has not reported it",
            \.source
        ).column("from", .text) { $0.source?.rawValue ?? "" }
        Member("first_ns", "when the first call began, since the run's beginning", \.first)
            .column("first") { column(readable(signed: $0.first)) }
        Member("last_ns", "when the last one ended", \.last)
        Member("threads", "number of threads that used it", \.threads.count)
        Member("processes", "number of processes that used it", \.processes.count)
        Member("opened_by", "function that made the first call that opened it; null: it was not opened, or by code that is not recorded") {
            $0.opener?.caller?.name
        }.column("opened by", .text) { $0.opener?.caller?.name ?? "" }
        Member("opened_by_module", "its module") { $0.opener?.caller?.module }
        Member("opened_by_pid", "the process that opened it first; null: it was not opened") { $0.opener?.pid }
        Member("error", "of the last call that failed; null: none did", \.error).column("error", .text) { $0.error ?? "" }
    }
}

// MARK: - Text

extension FileOutput {
    /// - Parameter width: columns of the terminal; nil: lines may be of any length
    package func lines(width: Int?, style: TextStyle) -> [String] {
        var lines = wrapped(headline, width: width, indentation: 6).map { style.bold($0) }
        lines += times.map { [$0] } ?? []
        for text in report.remarks { lines += wrapped(text, width: width, indentation: 4).map { style.dim($0) } }
        for text in report.alarms { lines += wrapped(text, width: width, indentation: 4).map { style.alarm($0) } }
        if rows.isEmpty { return lines }
        var keys = ["time_ns", "opens", "look_ups", "read_bytes", "written_bytes", "source", "first_ns", "opened_by", "error", "path"]
        let isUsed: [String: (FileUse) -> Bool] = [
            "look_ups": { $0[.lookUp].calls > 0 }, "written_bytes": { $0[.write].bytes > 0 }, "read_bytes": { $0[.read].bytes > 0 },
            "source": { $0.source != nil }, "opened_by": { $0.opener?.caller != nil }, "error": { $0.error != nil },
        ]
        keys.removeAll { key in isUsed[key].map { !rows.contains(where: $0) } ?? false }
        let table = TextTable(rows, FileUse.columns(keys)).lines(style, width: width)
        lines += [""] + table
        return lines + (rows.count < wanted.count ? [style.dim("and \(counted(wanted.count - rows.count, "other file"))")] : [])
    }

    /// "31 files, 25 before ready: 28 opens (3 failed), 12 look-ups, 48.2 KB read, 120 B written"
    private var headline: String {
        func part(_ kind: FileUse.Kind, _ noun: String) -> String? {
            let failed = failed(kind)
            return calls(kind) == 0 ? nil : counted(calls(kind), noun) + (failed == 0 ? "" : " (\(grouped(failed)) failed)")
        }
        let bytes = [("read", sum { $0[.read].bytes }), ("written", sum { $0[.write].bytes }), ("mapped", sum(\.maps.bytes))]
        let parts = [part(.open, "open"), part(.lookUp, "look-up")] + bytes.map { $1 == 0 ? nil : "\(readable(byteCount: $1)) \($0)" }
        let ready = beforeReady.map { ", \(grouped($0)) before ready" } ?? ""
        let rest = parts.compactMap { $0 }.joined(separator: ", ")
        return counted(wanted.count, "file") + ready + (rest.isEmpty ? "" : ": " + rest)
    }

    /// "1.2 ms in these calls: open 400 us, read 300 us, …"; nil: none took any time.
    private var times: String? {
        let names: [(FileUse.Kind, String)] = [
            (.open, "open"), (.read, "read"), (.write, "write"), (.sync, "sync"), (.lookUp, "look-up"), (.change, "change"),
        ]
        let parts = names.filter { time($0.0).count > 0 }.map { "\($0.1) \(readable(time($0.0)))" }
        guard !parts.isEmpty else { return nil }
        let known = wanted.allSatisfy(\.isWaitingKnown), waiting = Nanoseconds(sum(\.waiting.count))
        return "\(readable(Nanoseconds(sum(\.time.count)))) in these calls: " + parts.joined(separator: ", ")
            + (known && waiting.count > 0 ? "; \(readable(waiting)) of it off-CPU" : "")
    }
}
