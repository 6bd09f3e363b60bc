// One process of the lab: started alone in its group, watched for the call that means "ready", ended, and accounted for.
import CLaunch
import Foundation
import Glibc
import Recorder
import TraceFormat

struct LaunchedProcess {
    enum Waiting: Equatable {
        case reached(LaunchMoment)
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
            input: null, output: controls.keepsOutput ? -1 : null,
            exec_time: UnsafeRawPointer(Variables.exec.name.utf8Start).assumingMemoryBound(to: CChar.self), prepare: nil, context: nil)
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
    ///   - done: nil: nothing but a call ends the wait
    ///   - reached: called with such a call's bit while the thread that makes it waits
    func wait(
        for calls: UInt32, until deadline: UInt64, done: (() -> UInt64?)? = nil, opened: (String) -> Void = { _ in },
        reached: (UInt32) -> Void = { _ in }
    ) -> Waiting {
        var report = launch_report()
        var listener = child.listener, limit = deadline
        // How long this thread had waited for a CPU when no report was pending last.
        var idle = child.tool_delay_ns
        while true {
            if let at = done?() { return .reached(moment(at)) }
            let now = clockTime()
            if now >= limit {
                limit = deadline + (account?.waited ?? 0)
                if now >= limit { return .timedOut }
            }
            var ends = (
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0), pollfd(fd: child.end, events: Int16(POLLIN), revents: 0)
            )
            // Nothing may tell that it has ended, or that it is ready: then look once a millisecond.
            let patience = child.end < 0 || done != nil ? 1 : Int32(min((limit - now) / 1_000_000 + 1, 1_000_000))
            withUnsafeMutablePointer(to: &ends) { pointer in
                pointer.withMemoryRebound(to: pollfd.self, capacity: 2) {
                    if poll($0, 2, 0) == 0 {
                        idle = launch_own_delay()
                        poll($0, 2, patience)
                    }
                }
            }
            if ends.0.revents & Int16(POLLIN) != 0 {
                let taken = withUnsafePointer(to: child) { launch_take_report($0, &report) }
                if taken == -1 { listener = -1 }
                guard taken == 1 else { continue }
                let isEnd = report.is_own != 0 && UInt32(report.call) & calls != 0
                var end: LaunchMoment?
                if isEnd {
                    end = moment(report.time_ns, idle: idle)
                    reached(UInt32(report.call))
                }
                let isLeft = withUnsafePointer(to: child) { launch_answer($0, &report) } == 1
                if let end, isLeft { return .reached(end) }
                if isLeft, UInt32(report.call) == UInt32(LAUNCH_FILES) {
                    opened(withUnsafeBytes(of: &report.path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
                }
                continue
            } else if ends.0.revents != 0 {
                listener = -1 // everybody who could report has gone
            }
            var info = siginfo_t()
            if waitid(P_PID, id_t(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0, info._sifields._sigchld.si_pid == child.pid {
                let status = info._sifields._sigchld.si_status
                return .ended(status: info.si_code == CLD_EXITED ? status : 128 + status)
            }
        }
    }

    /// The launch up to now, as long as nobody has waited for the process.
    /// - Parameters:
    ///   - at: when the tool knew of its end, CLOCK_MONOTONIC in nanoseconds
    ///   - idle: how long this thread had waited for a CPU when nothing had been reported yet; nil: nothing is reported
    func moment(_ at: UInt64, idle: UInt64? = nil) -> LaunchMoment {
        var late: UInt64 = 0
        if let idle, idle != .max {
            let now = launch_own_delay()
            if now != .max, now > idle { late = now - idle }
        }
        return LaunchMoment(
            exec: execTime, at: at, late: late, cpu: withUnsafePointer(to: child) { launch_cpu_time($0) }, firstThread: account,
            othersWait: othersWait)
    }

    /// nil where the kernel does not say.
    private var account: LaunchMoment.Account? {
        let account = withUnsafePointer(to: child) { launch_account_since_exec($0) }
        return account.delay_ns == .max ? nil : .init(ran: account.ran_ns, waited: account.delay_ns)
    }

    private var othersWait: UInt64 {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
        return tasks.reduce(0) { sum, task in
            let fields =
                task == "\(pid)" ? nil : ProcessStatus.readAll("/proc/\(pid)/task/\(task)/schedstat")?.split(separator: UInt8(ascii: " "))
            return sum &+ (fields.flatMap { $0.count > 1 ? UInt64(String(decoding: $0[1], as: UTF8.self)) : nil } ?? 0)
        }
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
        if child.end >= 0 { close(child.end) }
        (child.listener, child.end) = (-1, -1)
        let signal = status & 0x7f
        return Usage(status: signal == 0 ? status >> 8 & 0xff : 128 + signal, involuntarySwitches: usage.ru_nivcsw)
    }
}
