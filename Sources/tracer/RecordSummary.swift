// The one or two lines on stderr when a recorded program has ended.
import Glibc
import Recorder

struct RecordSummary {
    let lines: [String]

    init(_ result: RecordingResult) {
        guard let main = result.files.last(where: \.isRoot) ?? result.files.first else {
            lines = ["no trace was written: the program ended before the agent could start, or said above why it did not"]
            return
        }
        lines = ["\(main.path): \(main.bytes) bytes"]
    }

    func print() {
        for line in lines { complain(line) }
    }
}
