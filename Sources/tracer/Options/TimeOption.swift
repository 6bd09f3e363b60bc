// --time, the same for all commands that have it.
import ArgumentParser
import Presentation
import TraceAnalysis

extension CallTime: ExpressibleByArgument {}

struct TimeOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Which time of calls: all of it, that on a CPU, or that spent waiting. The last two leave out the time in which a thread could run and others had the CPUs, and need the context switches of tracer record --states.",
            valueName: CallTime.allCases.map(\.rawValue).joined(separator: "|")))
    var time = CallTime.wall

    /// What is to be read of threads' states.
    /// - Parameter isAsked: also where wall time is shown
    func reading(isAsked: Bool) -> StateReading { isAsked || time != .wall ? .ofFunctions(time) : .nothing }

    func checkCorrect(_ isCorrected: Bool) throws { try Self.checkCorrect(isCorrected, time) }
    static func checkCorrect(_ isCorrected: Bool, _ time: CallTime) throws {
        if isCorrected, time == .waiting {
            throw ValidationError("--correct takes recording out, which is no waiting: remove --time waiting")
        }
    }

    static func unknown(_ time: CallTime, _ trace: TraceFile) -> CommandFailure {
        CommandFailure("\(trace.path) has no context switches, so --time \(time.rawValue) is not known: \(trace.noSwitches ?? "")")
    }

    /// Throws when the time is not known; of some of several traces, says what is shown instead.
    func check(_ traces: [TraceFile]) throws {
        guard time != .wall else { return }
        let missing = traces.filter { $0.noSwitches != nil }
        if let first = missing.first, missing.count == traces.count { throw Self.unknown(time, first) }
        for trace in missing {
            complain("\(trace.path) has no context switches, so all of its time counts as running: \(trace.noSwitches ?? "")")
        }
    }
}
