// One process of the lab: started alone in its group, watched for the call that means "ready", ended, and accounted for.
import CLaunch
import Glibc
import Recorder

struct LaunchedProcess {
    enum Waiting: Equatable {
        /// CLOCK_MONOTONIC, nanoseconds.
        case reached(at: UInt64)
        /// It ended before.
        case ended(status: Int32)
        case timedOut
    }

    struct Usage: Equatable, Sendable {
        /// 128 + n when signal n ended it.
        var status: Int32
        /// Times that it had to give the CPU to somebody else.
        var involuntarySwitches: Int
    }

    /// Begins while the process waits to call execve.
    private struct Asking {
        let question: LaunchQuestion
        /// Folder of the launch's trace.
        let traces: String
        var kernel: KernelWatch?
        /// errno
        var touchError: Int32 = 0
        mutating func begin(_ pid: pid_t) {
            switch question {
            case .nothing: break
            case .trace: kernel = KernelWatch(pid: pid, directory: traces)
            case .textFaults: kernel = KernelWatch(textFaultsOf: pid)
            case .touchedText: touchError = launch_stop_at_exec(pid)
            }
        }
    }

    private var child: launch_child
    /// CLOCK_MONOTONIC immediately before execve, nanoseconds.
    var execTime: UInt64 { child.exec_ns }
    var pid: pid_t { child.pid }

    /// The kernel's reports on it; nil when nobody asked for any.
    private(set) var kernel: KernelWatch?
    /// Why nothing reports which pages it touches: errno, 0 none.
    private(set) var touchError: Int32 = 0

    /// - Parameter watched: LAUNCH_ bits
    init(
        _ subject: LaunchSubject, environment: [[CChar]], watched: UInt32, controls: LaunchControls, question: LaunchQuestion = .nothing
    ) throws(Refusal) {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        var options = launch_options(
            watched: watched, cpu: Int32(controls.cpu ?? -1), fixed_addresses: controls.hasFixedAddresses ? 1 : 0,
            input: null, output: controls.keepsOutput ? -1 : null, prepare: nil, context: nil)
        child = launch_child()
        var asking = Asking(question: question, traces: subject.folder)
        options.prepare = { $1!.assumingMemoryBound(to: Asking.self).pointee.begin($0) }
        let path = subject.path, words = subject.arguments.map { Array($0.utf8CString) }
        let error = withCStrings(words) { words in
            withCStrings(environment) { variables in
                withUnsafeMutablePointer(to: &asking) {
                    options.context = UnsafeMutableRawPointer($0) // until launch_spawn returns
                    return launch_spawn(path, words, variables, &options, &child)
                }
            }
        }
        kernel = asking.kernel
        touchError = asking.touchError
        if question == .touchedText, error == 0, touchError == 0 { touchError = launch_forget_touched(child.pid) }
        if error != 0 { kernel?.stop() }
        switch error {
        case 0: return
        case ENOENT: throw .notFound("\(path): \(String(cString: strerror(error)))")
        case EINVAL where controls.cpu != nil:
            throw .usage("--cpu \(controls.cpu!): there is no such CPU, or the program may not run on it")
        default: throw .cannotRun("\(path) cannot be started: \(String(cString: strerror(error)))")
        }
    }

    /// Waits until the program makes one of the `calls` (LAUNCH_ bits among those watched), or `done` returns a time; calls
    /// `opened` for every file that it opens, if that is watched. Calls of its children do not end the wait, but
    /// files that they open are reported.
    /// - Parameters:
    ///   - deadline: later by the time that the process waits for a CPU: that other programs run says nothing of it
    ///   - reached: called with such a call's bit while the thread that makes it waits
    func wait(
        for calls: UInt32, until deadline: UInt64, done: () -> UInt64? = { nil }, opened: (String) -> Void = { _ in },
        reached: (UInt32) -> Void = { _ in }
    ) -> Waiting {
        var report = launch_report()
        var listener = child.listener, limit = deadline
        while true {
            if let moment = done() { return .reached(at: moment) }
            let now = clockTime()
            if now >= limit {
                limit = deadline + cpuWait
                if now >= limit { return .timedOut }
            }
            var end = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            // Without reports nobody wakes us when it ends: look once a millisecond.
            if listener >= 0, poll(&end, 1, 1) > 0, end.revents & Int16(POLLIN) != 0 {
                let taken = withUnsafePointer(to: child) { launch_take_report($0, &report) }
                if taken == -1 { listener = -1 }
                guard taken == 1 else { continue }
                let isEnd = report.is_own != 0 && UInt32(report.call) & calls != 0
                if isEnd { reached(UInt32(report.call)) }
                let isLeft = withUnsafePointer(to: child) { launch_answer($0, &report) } == 1
                if isEnd, isLeft { return .reached(at: report.time_ns) }
                if isLeft, UInt32(report.call) == UInt32(LAUNCH_FILES) {
                    opened(withUnsafeBytes(of: &report.path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
                }
                continue
            } else if listener < 0 {
                usleep(500)
            } else if end.revents != 0 {
                listener = -1 // everybody who could report has gone
            }
            var info = siginfo_t()
            if waitid(P_PID, id_t(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0, info._sifields._sigchld.si_pid == child.pid {
                let status = info._sifields._sigchld.si_status
                return .ended(status: info.si_code == CLD_EXITED ? status : 128 + status)
            }
        }
    }

    /// How long its first thread could have run and did not, nanoseconds: the second field of schedstat (Linux,
    /// Documentation/scheduler/sched-stats.rst). 0 where the kernel does not say.
    private var cpuWait: UInt64 {
        let fields = ProcessStatus.readAll("/proc/\(pid)/schedstat")?.split(separator: UInt8(ascii: " ")) ?? []
        return fields.count > 1 ? UInt64(String(decoding: fields[1], as: UTF8.self)) ?? 0 : 0
    }

    /// nil when it did not end in time.
    mutating func waitForEnd(milliseconds: Int32) -> Usage? {
        var status: Int32 = 0, usage = rusage()
        return launch_wait(&child, milliseconds, &status, &usage) == 1 ? ended(status, usage) : nil
    }

    /// SIGTERM to its group, then SIGKILL.
    mutating func end(patienceMilliseconds: Int32 = 2000) -> Usage? {
        var status: Int32 = 0, usage = rusage()
        return launch_end(&child, patienceMilliseconds, &status, &usage) == 1 ? ended(status, usage) : nil
    }

    private mutating func ended(_ status: Int32, _ usage: rusage) -> Usage {
        if child.listener >= 0 { close(child.listener) }
        child.listener = -1
        let signal = status & 0x7f
        return Usage(status: signal == 0 ? status >> 8 & 0xff : 128 + signal, involuntarySwitches: usage.ru_nivcsw)
    }
}
