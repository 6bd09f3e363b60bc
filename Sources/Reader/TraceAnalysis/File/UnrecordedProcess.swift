// A program that a process of the run executed and that has no trace, as `tracer record` found when the run had ended.
import CTraceLayout
import Presentation

package struct UnrecordedProcess: Equatable, Sendable {
    package enum Reason: Int, Sendable {
        case unknown, isStatic, go, musl, loader, machine, privileged, hidden, preload, noFile, elsewhere

        package var text: String {
            switch self {
            case .unknown: "unknown reason"
            case .isStatic: "static"
            case .go: "static (Go)"
            case .musl: "musl"
            case .loader: "another loader"
            case .machine: "another architecture"
            case .privileged: "setuid"
            case .hidden: "setuid or not readable"
            case .preload: "another LD_PRELOAD or none"
            case .noFile: "no trace file was created"
            case .elsewhere: "trace elsewhere or removed"
            }
        }
    }

    package let reason: Reason
    package let pid: UInt32
    /// nil: not known.
    package let parentPid: UInt32?
    /// CLOCK_MONOTONIC: when it was executed, or found.
    let at: UInt64
    /// The executable, or its name alone.
    package let program: String
    /// As many processes executed it.
    package let count: UInt64

    /// - Parameter reason: TRACE_UNRECORDED_; one that this reader does not know is unknown
    package init(reason: Int, pid: UInt32, parentPid: UInt32, at nanoseconds: UInt64, program: String, count: UInt64 = 1) {
        self.reason = Reason(rawValue: reason) ?? .unknown
        self.pid = pid
        self.parentPid = parentPid == 0 ? nil : parentPid
        at = nanoseconds
        self.program = program
        self.count = count
    }

    init(_ record: trace_unrecorded_record, program: String) {
        self.init(
            reason: Int(record.record.key), pid: record.pid, parentPid: record.parent, at: record.ns, program: program,
            count: UInt64(max(record.count, 1)))
    }
}

extension [UnrecordedProcess] {
    package var processCount: UInt64 { reduce(0) { $0 &+ $1.count } }

    /// "3 processes not recorded"; nil: none is known.
    var countText: String? { isEmpty ? nil : "\(counted(processCount, "process", "processes")) not recorded" }

    /// "3 processes not recorded: static (h-static ×2), setuid (su)", in the order in which they were executed.
    package var text: String? { countText.map { "\($0): \(reasonsText)" } }

    /// "static (h-static ×2), setuid (su)".
    package var reasonsText: String {
        var reasons: [UnrecordedProcess.Reason] = [], names: [UnrecordedProcess.Reason: [String]] = [:], counts: [[String]: UInt64] = [:]
        for process in self {
            let name = basename(process.program), reason = process.reason
            if names[reason] == nil { reasons.append(reason) }
            if counts[[reason.text, name], default: 0] == 0 { names[reason, default: []].append(name) }
            counts[[reason.text, name], default: 0] &+= process.count
        }
        let parts = reasons.map { reason in
            let all = names[reason]!
            let shown = all.prefix(Self.mostNames).map { name in
                let count = counts[[reason.text, name]]!
                return shortened(name, 60) + (count > 1 ? " ×\(grouped(count))" : "")
            }
            return "\(reason.text) (\((shown + (all.count > Self.mostNames ? ["…"] : [])).joined(separator: ", ")))"
        }
        return parts.joined(separator: ", ")
    }
    private static var mostNames: Int { 5 }
}

extension UnrecordedProcess: Record {
    package static let members = declare {
        Member("pid", "of several the first one's", \.pid)
        Member("ppid", "null: unknown", \.parentPid)
        Member("program", "path, or its name alone where that is all that is known", \.program)
        Member("reason", "why it has no trace", \.reason.text)
        Member("processes", "how many executed it", \.count)
    }
}
