// A process that `tracer top --attach` records for as long as it shows it: `AttachedRun` on a thread of its own, since ptrace(2) wants one thread
// to do all.
import Dispatch
import Foundation
import Glibc
import Presentation
import Recorder
import Synchronization
import TraceFormat

final class TopAttachment: @unchecked Sendable {
    private struct State {
        var result: Result<AttachedRun.Result, Refusal>?
        var thread = pthread_t()
    }
    private let state = Mutex(State())
    private let begun = DispatchSemaphore(value: 0), over = DispatchSemaphore(value: 0)
    private let run: AttachedRun
    /// The trace is kept: the user has named it.
    private let isKept: Bool
    let directory: String

    /// As much of the calls lies in the file until they are read.
    static let usualSize = "256M"

    /// Begins to record. Throws a `Refusal`.
    /// - Parameter output: nil: the trace is only there while it is read
    init(_ pid: pid_t, _ options: RecordOptions, output: String?) throws(Refusal) {
        var options = options
        isKept = output != nil
        if output == nil {
            let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
            options.output = "\(folder)/tracer.top.\(pid).\(String(UInt32.random(in: 0...UInt32.max), radix: 36)).trace"
            options.set(Variables.mode, "ring")
        } else {
            options.output = output
        }
        options.set(Variables.quiet, true)
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil) // the thread takes them
        let run = try AttachedRun(pid: pid, options: options, for: nil)
        self.run = run
        directory = run.directory
        start()
        begun.wait()
        if case .failure(let refusal) = state.withLock({ $0.result }) { throw refusal }
    }

    private func start() {
        var thread = pthread_t()
        let this = Unmanaged.passRetained(self)
        pthread_create(
            &thread, nil,
            { pointer in
                Unmanaged<TopAttachment>.fromOpaque(pointer!).takeRetainedValue().record()
                return nil
            }, this.toOpaque())
        state.withLock { $0.thread = thread }
    }

    private func record() {
        var run = run
        run.whenBegun = { _ in self.begun.signal() }
        let result: Result<AttachedRun.Result, Refusal>
        do throws(Refusal) { result = .success(try run.run()) } catch { result = .failure(error) }
        state.withLock { $0.result = result }
        over.signal()
        begun.signal()
    }

    /// The process has ended, or a signal has.
    var isOver: Bool { state.withLock { $0.result != nil } }

    /// Lets the process go. Throws a `CommandFailure` if it could not be let go.
    func end() throws {
        if !isOver { pthread_kill(state.withLock { $0.thread }, SIGTERM) }
        over.wait()
        guard case .success(let result) = state.withLock({ $0.result }) else { return }
        let path = result.recording.path ?? directory
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
        if case .left(let reason) = result.end {
            throw CommandFailure("\(reason). It is still being recorded: tracer attach, later, ends that", status: 1)
        }
        if isKept { complain("\(path): tracer report \(shellWord(path))") }
    }
}
