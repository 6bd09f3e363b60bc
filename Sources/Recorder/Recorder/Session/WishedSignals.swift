// Does what a signal to the tool means, with all processes of the run.
import CTraceLayout
import ELF
import Glibc

struct WishedSignals {
    private let wishes: SignalWishes
    /// What a snapshot has, in nanoseconds; nil: all that its trace has.
    private let last: UInt64?
    private let directory: String
    private let kernel: KernelWatch?
    private let tell: (String) -> Void
    private var processes: [RecordedProcess] = []

    /// - Parameter tell: gets a line for each thing that was done
    init(_ wishes: SignalWishes, _ plan: SnapshotPlan?, _ kernel: KernelWatch?, directory: String, _ tell: @escaping (String) -> Void) {
        self.wishes = wishes
        last = plan?.before
        self.directory = directory
        self.kernel = kernel
        self.tell = tell
    }

    mutating func add(_ header: TraceHeader) {
        if wishes.numbers.isEmpty { return }
        removeEnded()
        let state = header.current
        processes.append(RecordedProcess(pid: ProcessNumbers.number(of: state.pid, in: state.pid_namespace) ?? 0, header))
    }
    /// A descriptor each.
    private mutating func removeEnded() {
        processes.removeAll { $0.header.current.state != UInt32(TRACE_RECORDING) || $0.pid != 0 && ProcessStatus.isGone($0.pid) }
    }

    /// Returns false if the signal has no meaning: it is for the program.
    mutating func take(_ signal: Int32) -> Bool {
        guard let action = wishes.action(of: signal) else { return false }
        removeEnded()
        if processes.isEmpty { tell("\(action.rawValue): no process is being recorded yet") }
        for process in processes {
            do {
                switch action {
                case .start: _ = try process.ask(.start)
                case .stop: _ = try process.ask(.stop)
                case .snapshot:
                    let path = try process.snapshot(last: last, to: nil, in: directory), now = clockTime()
                    kernel?.append(to: path, since: last.map { now > $0 ? now - $0 : 0 } ?? 0)
                    tell("snapshot: tracer report \(path)")
                }
            } catch {
                tell("\(action.rawValue): \(error.message)")
            }
        }
        return true
    }
}
