// Reading that may take a while: a bar on stderr shows how far it has come.
import Dispatch
import Glibc
import Synchronization
import TraceAnalysis

/// Merges the trees of all files.
/// - Parameter byArguments: calls with different arguments are different paths; says so if there are none
func reading(_ files: [TraceFile], states: StateReading = .nothing, byArguments: Bool = false) -> CallTree {
    let tree = withProgress(files) { CallTree.reading(files, states: states, byArguments: byArguments, progress: $0) }
    if byArguments, !tree.hasArguments {
        complain("\(files.count == 1 ? files[0].path : "the run") has no arguments: record with tracer record --arguments 'NAME,…'")
    }
    return tree
}

/// Reads the call sites of all files.
func reading(_ files: [TraceFile], sitesOf pattern: FunctionPattern?, states: StateReading) throws -> SiteReport {
    guard files.contains(where: \.hasCallSites) else {
        throw CommandFailure("\(files.first?.path ?? "the run") has no call sites: record with tracer record --call-sites")
    }
    return withProgress(files) { SiteReport(files, pattern, states: states, progress: $0) }
}

func withProgress<R>(_ files: [TraceFile], _ body: (ReadingProgress) -> R) -> R {
    withProgress(files.count == 1 ? basename(files[0].path) : "\(files.count) traces", body)
}

/// Runs `body`. On a terminal its progress is shown once it takes longer than a second.
func withProgress<R>(_ name: String, _ body: (ReadingProgress) -> R) -> R {
    let progress = ReadingProgress()
    guard isatty(STDERR_FILENO) == 1 else { return body(progress) }
    let isShown = Mutex(false)
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "progress"))
    timer.schedule(deadline: .now() + 1, repeating: 0.1)
    timer.setEventHandler {
        isShown.withLock { $0 = true }
        let filled = Int(progress.share * 30)
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
        writeError("\r\(name)  \(bar) \(Int(progress.share * 100))%\u{1b}[K")
    }
    timer.resume()
    let done = DispatchSemaphore(value: 0)
    timer.setCancelHandler { done.signal() }
    defer {
        timer.cancel()
        done.wait() // else the bar might be drawn over what follows
        if isShown.withLock({ $0 }) { writeError("\r\u{1b}[K") }
    }
    return body(progress)
}
