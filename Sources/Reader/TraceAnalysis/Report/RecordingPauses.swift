// Stretches in which no call was recorded: the program had called tracer_stop, had not yet called tracer_start, or somebody had it stop
// (`tracer control`).
import Presentation
import TraceFormat

package struct RecordingPauses: Sendable {
    package var count = 0
    package var total = Nanoseconds(0)

    var text: String? {
        count == 0
            ? nil
            : "recording was off for \(readable(total))\(count > 1 ? ", \(grouped(UInt64(count))) times" : ""): calls of that time are missing, and it counts as own code"
    }
    static func + (a: RecordingPauses, b: RecordingPauses) -> RecordingPauses {
        RecordingPauses(count: a.count + b.count, total: Nanoseconds(a.total.count &+ b.total.count))
    }
}

extension TraceFile {
    /// In the whole trace. A pause that has not ended lasts as long as the process is known to have run.
    package var pauses: RecordingPauses {
        var pauses = RecordingPauses(), begin: Ticks?
        func end(_ moment: Ticks) {
            guard let start = begin else { return }
            pauses.count += 1
            pauses.total = Nanoseconds(pauses.total.count &+ timeScale.nanoseconds(from: start, to: max(start, moment)).count)
            begin = nil
        }
        for one in metadata.switched.sorted(by: { $0.moment < $1.moment }) {
            if one.isOn { end(one.moment) } else if begin == nil { begin = one.moment }
        }
        end(ends.process)
        return pauses
    }
}

extension RunSummary {
    /// nil: there were none.
    var pauseNote: String? { processes.reduce(RecordingPauses()) { $1.images.reduce($0) { $0 + $1.pauses } }.text }
}
