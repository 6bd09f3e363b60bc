// Start-up items (tracer.h): spans whose names the runner of the program has made. What an item waited for follows from when
// the others ended: its thread had nothing to do until the last one that it comes after was over.
import Presentation
import TraceFormat

package struct StartupItem: Sendable {
    /// An item's facts, as the name of its span gives them.
    package struct Registration: Sendable, Hashable {
        package var stage: Int
        package var name: String
        /// Names of the items that it comes after.
        package var after: [String]

        /// "startup item database (stage 1, after config, log)"; nil: a span of the program's own. The agent cuts a long one.
        package init?(_ span: String) {
            guard span.hasPrefix(Self.prefix), let facts = span.ranges(of: Self.stageMark).last else { return nil }
            var words = span[facts.upperBound...].split(separator: ", ", omittingEmptySubsequences: false).map(String.init)
            if span.hasSuffix(")") { words[words.count - 1].removeLast() } else if words.count > 1 { words.removeLast() }
            guard let stage = Int(words[0]) else { return nil }
            self.stage = stage
            name = String(span[..<facts.lowerBound].dropFirst(Self.prefix.count))
            after = words.dropFirst().enumerated().map { $0 == 0 && $1.hasPrefix("after ") ? String($1.dropFirst(6)) : $1 }
        }

        private static let prefix = "startup item ", stageMark = " (stage "

        /// "stage 1"
        package var stageText: String { "stage \(stage)" }
    }

    package var registration: Registration
    package var tid: UInt32
    package var isOnMain: Bool
    package var start: Nanoseconds
    /// With the items that it has run itself; up to the end of the start-up when it was not over by then.
    package var total: Nanoseconds
    /// The tracer's own time from its beginning to its end, which is not in `total`.
    package var tracer: Nanoseconds
    /// Without these.
    package var own: Nanoseconds
    /// Recorded calls made on its thread, without those of items that it has run, and about what recording them took.
    package var calls: UInt64
    package var recording: Nanoseconds
    package var isOver: Bool
    /// For which item its thread waited before it could begin, and how long.
    package var wait: (name: String, duration: Nanoseconds)?

    /// Returns the items that began before the end of the start-up, in the order in which they began.
    static func all(_ context: StartupContext, mainThread: UInt32) -> [StartupItem] {
        let clock = context.clock, functions = context.trace.metadata.functions
        var items: [StartupItem] = []
        var begins: [Int: Ticks] = [:], ends: [String: [Ticks]] = [:]
        var threads: [UInt32: Thread] = [:]
        for span in context.calls.spans {
            guard let registration = functions[span.function].flatMap({ Registration($0.rawName) }) else { continue }
            let isOver = span.end.map { $0 <= context.end } ?? false
            let end = min(span.end ?? context.end, context.end), total = clock.net(span.begin, end, on: span.thread)
            let stageBegin = begins[registration.stage, default: span.begin]
            begins[registration.stage] = stageBegin
            var thread = threads[span.thread] ?? Thread(free: stageBegin)
            thread.leave(before: span.begin)
            if let outer = thread.open.last?.item { // its time and calls are not counted twice
                items[outer].own = items[outer].own.without(total)
                items[outer].calls &-= min(span.calls &+ 1, items[outer].calls)
            }
            // The item that it waited for: the last predecessor that ended before this began.
            let last = registration.after.compactMap { name in
                ends[name]?.last { $0 <= span.begin }.map { (name: name, end: $0) }
            }.max { $0.end < $1.end }
            let free = max(thread.free, stageBegin)
            items.append(
                StartupItem(
                    registration: registration, tid: context.tid(span.thread), isOnMain: span.thread == mainThread,
                    start: clock.since(span.begin),
                    total: total, tracer: clock.scale.nanoseconds(clock.agentTicks(span.begin, end)), own: total, calls: span.calls,
                    recording: Nanoseconds(0), isOver: isOver,
                    wait: last.flatMap { $0.end > free ? ($0.name, clock.wall(free, $0.end)) : nil }))
            thread.free = span.begin
            thread.open.append((items.count - 1, end))
            threads[span.thread] = thread
            if isOver {
                let index = ends[registration.name, default: []].lastIndex { $0 <= end }.map { $0 + 1 } ?? 0
                ends[registration.name, default: []].insert(end, at: index)
            }
        }
        for index in items.indices { items[index].recording = context.recording(items[index].calls) }
        return items
    }

    /// Items running on a thread at the current moment, innermost last, and since when nothing else has begun or ended on it.
    private struct Thread {
        var free: Ticks
        var open: [(item: Int, end: Ticks)] = []

        mutating func leave(before moment: Ticks) {
            while let last = open.last, last.end <= moment {
                free = max(free, last.end)
                open.removeLast()
            }
        }
    }
}
