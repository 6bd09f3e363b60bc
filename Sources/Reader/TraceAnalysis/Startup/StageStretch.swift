// Stages as they lay in time, with the agent's start by itself: for what is drawn above threads, whose moments are as they were.
import Presentation

extension StartupTimeline {
    /// A stage, or a part of one before or after the agent's start, or that start.
    package struct StageStretch: Sendable, Equatable {
        package var name: String
        /// Nanoseconds since the beginning.
        package var time: Range<UInt64>
        /// Nanoseconds of the agent's own work in it; the rest of it is the program's.
        package var tracer: UInt64
        /// Not `time.count`, which is an Int: a damaged file may have any times.
        package var length: UInt64 { time.upperBound - time.lowerBound }

        init(_ name: String, _ time: Range<UInt64>, tracer: UInt64) {
            self.name = name
            self.time = time
            self.tracer = min(tracer, time.upperBound - time.lowerBound)
        }
    }

    package var stretches: [StageStretch] {
        stages.enumerated().flatMap { index, stage -> [StageStretch] in
            let begin = stage.start.count, end = index + 1 < stages.count ? stages[index + 1].start : total
            let all = begin..<max(end.count, begin)
            guard let agent = agentStart?.clamped(to: all), !agent.isEmpty else {
                return [StageStretch(stage.name, all, tracer: stage.tracerTime.count)]
            }
            let start = StageStretch("tracer's own start", agent, tracer: .max)
            return [
                StageStretch(stage.name, begin..<agent.lowerBound, tracer: 0), start,
                StageStretch(
                    stage.name, agent.upperBound..<all.upperBound, tracer: stage.tracerTime.without(Nanoseconds(start.length)).count),
            ].filter { !$0.time.isEmpty }
        }
    }
}
