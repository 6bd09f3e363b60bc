// Reading that may take a while: a bar on stderr tells how far it has come.
import Dispatch
import Glibc
import Synchronization
import TraceAnalysis

/// The trees of all files as one.
func reading(_ files: [TraceFile], _ body: (TraceFile, ReadingProgress) -> CallTree) -> CallTree {
    let trees = files.map { file in withProgress(file) { body(file, $0) } }
    return trees.count == 1 ? trees[0] : CallTree(trees)
}

/// What takes longer than a second shows how far it has come, on a terminal.
func withProgress<R>(_ trace: TraceFile, _ body: (ReadingProgress) -> R) -> R {
    let progress = ReadingProgress()
    guard isatty(STDERR_FILENO) == 1 else { return body(progress) }
    let isShown = Mutex(false)
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "progress"))
    timer.schedule(deadline: .now() + 1, repeating: 0.1)
    timer.setEventHandler {
        isShown.withLock { $0 = true }
        let filled = Int(progress.share * 30)
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
        put("\r\(basename(trace.path))  \(bar) \(Int(progress.share * 100))%\u{1b}[K")
    }
    timer.resume()
    let done = DispatchSemaphore(value: 0)
    timer.setCancelHandler { done.signal() }
    defer {
        timer.cancel()
        done.wait() // or its last stroke would come after what follows
        if isShown.withLock({ $0 }) { put("\r\u{1b}[K") }
    }
    return body(progress)
}

private func put(_ text: String) {
    var text = text
    text.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress!, bytes.count) }
}
