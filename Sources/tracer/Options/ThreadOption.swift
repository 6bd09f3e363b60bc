// --thread, the same for all commands that have it.
import ArgumentParser
import Presentation
import TraceAnalysis

struct ThreadOption: ParsableArguments {
    @Option(help: ArgumentHelp("Only these threads: main, a thread id, or a glob for the name.", valueName: "main|tid|glob"))
    var thread: String?

    var pattern: ThreadPattern? { thread.map { ThreadPattern($0) } }

    func choose(from tree: CallTree, in files: [TraceFile]) throws -> CallTree {
        guard let pattern else { return tree }
        let chosen = tree.filtered { root in
            pattern.matches(tid: root.tid, pid: root.process.map { tree.processes[$0].pid }, name: root.name)
        }
        if chosen.roots.isEmpty { throw noThread(in: files[0], of: tree.roots.map { ($0.tid ?? 0, $0.name) }) }
        return chosen
    }

    /// Throws when none of the threads is wanted.
    func check(_ threads: [(pid: UInt32, tid: UInt32, name: String)], in traces: [TraceFile]) throws {
        guard let pattern, !threads.contains(where: { pattern.matches(tid: $0.tid, pid: $0.pid, name: $0.name) }) else { return }
        throw noThread(in: traces[0], of: threads.map { ($0.tid, $0.name) })
    }

    func noThread(in trace: TraceFile, of threads: [(tid: UInt32, name: String)]) -> CommandFailure {
        let more = threads.count > 20 ? [counted(threads.count - 20, "more thread")] : []
        let known = (threads.prefix(20).map { "\($0.tid) \($0.name)" } + more).joined(separator: ", ")
        return CommandFailure(message: "no thread \"\(thread ?? "")\" in \(trace.path); it has \(known.isEmpty ? "none" : known)")
    }
}
