// Says which functions were recorded when, where that was changed meanwhile (`tracer control PID filter`).
import Presentation
import TraceFormat

extension TraceFile {
    /// Not all functions that could be recorded were, all the time.
    package var hasChoices: Bool { !metadata.choices.isEmpty }

    /// One text for each time that functions were chosen anew.
    var choiceTexts: [String] {
        metadata.choices.sorted { $0.moment < $1.moment }.map { choice in
            let since = readable(timeScale.nanoseconds(from: firstTicks, to: max(firstTicks, choice.moment)))
            return choice.lists.isEmpty
                ? "from \(since) on all functions were recorded again (tracer control)"
                : "from \(since) on only some functions were recorded: \(choice.lists.text) (tracer control)"
        }
    }
}

extension RunSummary {
    /// nil: all functions were recorded all the time.
    var choiceNote: String? {
        let count = processes.reduce(0) { $1.images.reduce($0) { $0 + $1.choiceCount } }
        return count == 0
            ? nil
            : "which functions were recorded was changed \(count == 1 ? "meanwhile" : "\(grouped(UInt64(count))) times"): tracer info says when (tracer control)"
    }
}
