// Ends a program that would run on, politely first.
import Glibc

struct ProgramStop {
    /// Traces of the program and of processes that it has started.
    private var traces: [Trace] = []
    private let condition: (_ path: String, _ isProgram: Bool) -> Bool
    private let pid: pid_t
    private let session: UInt64
    private var nextLook: UInt64 = 0
    private var killAt: UInt64?
    /// Processes that the program has started and that got SIGTERM: some take a second one for impatience.
    private var asked: Set<pid_t> = []

    private struct Trace {
        var pid: pid_t
        var path: String
    }

    var isUnderWay: Bool { killAt != nil }

    /// Between two looks: asking may take a while, and takes its time from the same CPUs.
    private static let interval: UInt64 = 20_000_000
    /// From SIGTERM to SIGKILL, in nanoseconds.
    private static let grace: UInt64 = 2_000_000_000
    /// The oldest are asked.
    private static let mostTraces = 64

    /// - Parameter condition: asked now and then, with the paths of the traces
    init(_ pid: pid_t, session: UInt64, condition: @escaping (_ path: String, _ isProgram: Bool) -> Bool) {
        (self.pid, self.session, self.condition) = (pid, session, condition)
    }

    /// The process has a trace, or after exec another one.
    mutating func add(_ path: String, of pid: pid_t) {
        if let known = traces.firstIndex(where: { $0.pid == pid }) {
            traces[known].path = path
        } else if pid == self.pid || traces.count < Self.mostTraces {
            traces.append(Trace(pid: pid, path: path))
        }
    }

    /// Does what is due. Nanoseconds until something is due again; nil when nothing will be.
    mutating func look(_ processes: ProcessEnds) -> UInt64? {
        let now = clockTime()
        if let killAt {
            guard killAt != .max else { return nil }
            if now < killAt {
                ask(processes) // who has begun since
                return killAt - now
            }
            kill(pid, SIGKILL)
            processes.signal(SIGKILL, session: session)
            self.killAt = .max
            return nil
        }
        guard !traces.isEmpty else { return Self.interval }
        guard now >= nextLook else { return nextLook - now }
        guard isReached else {
            let after = clockTime()
            nextLook = after + max(Self.interval, (after - now) * 10)
            return nextLook - after
        }
        kill(pid, SIGTERM)
        kill(pid, SIGCONT) // a stopped one could not hear it
        ask(processes)
        killAt = clockTime() + Self.grace
        return Self.grace
    }

    /// The program has ended. If its condition holds, what it has left ends as well, a daemon, whether it has a trace or not. Returns when
    /// it has.
    mutating func end(_ processes: ProcessEnds) {
        guard isUnderWay || isReached else { return }
        for pid in LivingSessions.processes(of: session, since: pid) { processes.watch(pid) }
        ask(processes)
        let end = killAt ?? clockTime() + Self.grace
        if end == .max || !processes.wait(for: asked, until: end) { processes.signal(SIGKILL, session: session) }
    }

    /// They would outlive the program.
    private mutating func ask(_ processes: ProcessEnds) {
        asked.formUnion(processes.signal(SIGTERM, andContinue: true, session: session, except: asked))
    }

    private var isReached: Bool { traces.contains { condition($0.path, $0.pid == pid) } }
}
