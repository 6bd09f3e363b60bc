// Option that chooses threads, for commands that show all of them.
import ArgumentParser
import Glibc
import TraceAnalysis

struct ThreadOption: ParsableArguments {
    @Option(help: ArgumentHelp("Only these threads: a thread id, or a glob for the name.", valueName: "tid|glob"))
    var thread: String?

    var isWanted: (@Sendable (ThreadStates) -> Bool)? {
        guard let thread else { return nil }
        return { String($0.tid) == thread || fnmatch(thread, $0.name, 0) == 0 }
    }
}
