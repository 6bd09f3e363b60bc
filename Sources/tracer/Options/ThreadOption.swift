// --thread, the same for all commands that have it.
import ArgumentParser
import Presentation
import TraceAnalysis

struct ThreadOption: ParsableArguments {
    @Option(help: ArgumentHelp("Only these threads: main, a thread id, or a glob for the name.", valueName: "main|tid|glob"))
    var thread: String?

    var pattern: ThreadPattern? { thread.map { ThreadPattern($0) } }
    /// The words of a message about a call that is not there: " by thread \"main\"", empty for all threads.
    var text: String { thread.map { " by thread \"\($0)\"" } ?? "" }

    /// The traces with these threads alone; of several those that have one.
    func narrow(_ traces: [TraceFile]) throws -> [TraceFile] {
        guard pattern != nil else { return traces }
        let narrowed = only(traces).filter { !$0.threads.isEmpty }
        if narrowed.isEmpty, let first = traces.first {
            throw noThread(in: first, of: traces.flatMap { $0.threads.map { (tid: $0.tid, name: $0.name) } })
        }
        return narrowed
    }

    /// All traces with these threads alone, also those that have none.
    func only(_ traces: [TraceFile]) -> [TraceFile] { pattern.map { pattern in traces.map { $0.only(pattern) } } ?? traces }

    /// Throws when none of the threads is wanted.
    func check(_ threads: [(pid: UInt32, tid: UInt32, name: String)], in traces: [TraceFile]) throws {
        guard let pattern, !threads.contains(where: { pattern.matches(tid: $0.tid, pid: $0.pid, name: $0.name) }) else { return }
        throw noThread(in: traces[0], of: threads.map { ($0.tid, $0.name) })
    }

    private func noThread(in trace: TraceFile, of threads: [(tid: UInt32, name: String)]) -> CommandFailure {
        let more = threads.count > 20 ? [counted(threads.count - 20, "more thread")] : []
        let known = (threads.prefix(20).map { "\($0.tid) \($0.name)" } + more).joined(separator: ", ")
        return CommandFailure("no thread \"\(thread ?? "")\" in \(trace.path); it has \(known.isEmpty ? "none" : known)")
    }
}
