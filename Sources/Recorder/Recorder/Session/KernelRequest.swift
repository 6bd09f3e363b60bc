// Decides whether a run records kernel events, and how much of them its traces may hold.
import Glibc
import TraceFormat

struct KernelRequest {
    /// nil: where that costs little.
    private let isWanted: Bool?
    /// Nanoseconds, 0: none.
    private let samplePeriod: UInt64
    private let minorFaults: Bool
    /// Limit for kernel events in a trace: a quarter of the trace's own limit, on top of it; `.max` where that has none.
    private let mostBytes: Int
    private let keepsEnd: Bool

    /// Each thread and each process that begins costs some 3 us for each CPU that it may run on.
    private static let mostCPUs = 32

    init(_ options: RecordOptions, _ environment: ProgramEnvironment) {
        samplePeriod = options.samplesPerSecond.map { UInt64(1_000_000_000 / $0) } ?? 0
        minorFaults = options.minorFaults
        isWanted = samplePeriod != 0 || minorFaults ? true : options.states
        let limit = environment[Variables.maximumSize.name.description].flatMap { Variables.maximumSize.read($0) } ?? 0
        mostBytes = limit == 0 ? .max : Int(limit / 4)
        keepsEnd = environment[Variables.mode.name.description].flatMap { Variables.mode.read($0) } == .ring
    }

    /// nil: it is not wanted.
    /// - Parameter isRunning: it has been executed already
    func watch(_ pid: pid_t, isRunning: Bool = false, directory: String) -> KernelWatch? {
        guard isWanted ?? (KernelWatch.cpus.count <= Self.mostCPUs) else { return nil }
        return KernelWatch(
            pid: pid, isRunning: isRunning, samplePeriod: samplePeriod, minorFaults: minorFaults,
            KernelStorage(spool: KernelSpool(directory: directory), mostBytes: mostBytes, keepsEnd: keepsEnd))
    }
}
