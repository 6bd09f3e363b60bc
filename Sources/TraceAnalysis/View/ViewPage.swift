// A trace as one HTML page that needs nothing else: style, script and data are in it.
//
// What is thinner than a pixel on a large screen is summed up beforehand, so that the page stays small however long the
// trace: of the call tree the paths below 1/20000 of the whole become one nameless node below their caller.
import CTraceLayout
import Symbols
import TraceFormat

public struct ViewPage {
    /// Paths that take less of the whole are summed up.
    static let leastShare = 1.0 / 20_000
    /// And no more than so many are kept, the largest.
    static let mostNodes = 120_000
    static let mostSlices = 60_000
    static let mostThreads = 64

    private let title: String
    private let facts: String
    private let executable: String
    private var notes: [String]
    private let duration: UInt64
    private let tree: CallTree
    private let threads: [(name: String, timeline: CallTimeline)]
    private let startup: JSON
    private let scale: TimeScale
    private let functionsOfSlots: (UInt32) -> (name: String, module: String)

    /// One process.
    public init(_ trace: TraceFile) {
        let metadata = trace.metadata
        title = trace.commandLine.isEmpty ? trace.program : ViewPage.shortened(trace.commandLine)
        tree = CallTree(trace)
        scale = trace.timeScale
        // With the start of the process where that was recorded: time begins at exec. In a damaged file perhaps at its end.
        let timeline = try? StartupTimeline(trace, symbolizer: Symbolizer())
        let origin = min(timeline.map { $0.origin.raw } ?? trace.firstTicks.raw, .max - 1), end = max(TraceEnd(trace).ticks.raw, origin + 1)
        duration = scale.nanoseconds(end - origin).count
        facts = ["pid \(trace.header.pid)", trace.startedAt, readable(Nanoseconds(duration)), counted(tree.calls, "call"),
                 counted(UInt64(trace.chunksOfThread.count), "thread")].compactMap { $0 }.joined(separator: ", ")
        executable = metadata.modules.min { $0.key < $1.key }?.value.name ?? ""
        notes = trace.warnings
        let largest = trace.chunksOfThread.sorted { ($0.count, $1.first?.thread ?? 0) > ($1.count, $0.first?.thread ?? 0) }.prefix(Self.mostThreads)
        if largest.count < trace.chunksOfThread.count { notes.append("timeline: the \(Self.mostThreads) busiest of \(trace.chunksOfThread.count) threads") }
        let names = Dictionary(tree.roots.compactMap { root in root.tid.map { ($0, root.name) } }, uniquingKeysWith: { first, _ in first })
        threads = largest.sorted { ($0.first?.thread ?? 0) < ($1.first?.thread ?? 0) }.map { chunks in
            let tid = chunks.first?.tid ?? 0
            let name = names[tid].flatMap { $0.isEmpty ? nil : $0 } ?? "thread"
            return ("\(name) \(tid)", CallTimeline(trace, chunks, from: origin, until: end, most: max(Self.mostSlices / largest.count, 1000)))
        }
        let deeper = threads.reduce(0) { $0 &+ $1.timeline.deeper }
        if deeper > 0 { notes.append("timeline: \(counted(deeper, "call")) deeper than \(CallTimeline.mostLevels) levels are not drawn") }
        startup = timeline.map(ViewPage.startup) ?? .null
        let table = FunctionTable(metadata)
        functionsOfSlots = { table.name(of: $0 &- 1) }
    }

    private static func shortened(_ commandLine: String) -> String {
        var words = commandLine.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        words[0] = basename(words[0])
        let text = String(words.joined(separator: " ").unicodeScalars.map { $0.value < 0x20 || $0.value == 0xfffd ? " " : Character($0) })
        return text.count > 120 ? text.prefix(119) + "…" : text
    }

    /// What stands above the threads: stages, constructors of any length worth a pixel, marks.
    private static func startup(_ timeline: StartupTimeline) -> JSON {
        func nanoseconds(_ time: Nanoseconds) -> JSON { .unsigned(time.count) }
        let stages = timeline.stages.enumerated().map { index, stage in
            // As long as they were, the agent's own work included: the threads below are, too.
            let end = index + 1 < timeline.stages.count ? timeline.stages[index + 1].start : timeline.total
            return JSON.object([("name", .string(stage.name)), ("at", nanoseconds(stage.start)),
                                ("length", .unsigned(end.count > stage.start.count ? end.count - stage.start.count : 0))])
        }
        let constructors = timeline.constructors.sorted { $1.total < $0.total }.prefix(2000).sorted { $0.start < $1.start }.map { run in
            JSON.object([("name", .string(run.name.name)), ("module", .string(run.name.module)), ("at", nanoseconds(run.start)), ("length", nanoseconds(run.total))])
        }
        let marks = timeline.marks.prefix(1000).map { JSON.object([("name", .string($0.name)), ("at", nanoseconds($0.at))]) }
        return .object([("stages", .array(stages)), ("constructors", .array(constructors)), ("marks", .array(marks))])
    }

    public var html: String { Self.document(data) }

    /// A page about `data`, which docs/view.md describes.
    static func document(_ data: String) -> String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>tracer</title>
        <style>
        \(style)
        </style></head><body>
        \(body)
        <script>const DATA = \(data);</script>
        <script>
        \(script)
        </script></body></html>

        """
    }

    // MARK: - Data

    private var data: String {
        var functions = FunctionNumbers()
        let treeText = ViewTree(tree, least: Self.leastShare, most: Self.mostNodes).text(&functions)
        let lanes = threads.map { lane(name: $0.name, $0.timeline, &functions) }.joined(separator: ",\n")
        let table = rows(&functions)
        func json(_ text: String) -> String { ViewPage.safe(JSON.string(text).text(lines: 0)) }
        return """
            {"title":\(json(title)),"facts":\(json(facts)),"executable":\(json(executable)),
            "notes":\(ViewPage.safe(JSON.array(notes.map { .string($0) }).text(lines: 0))),"duration":\(duration),
            "startup":\(ViewPage.safe(startup.text(lines: 0))),
            "tree":\(treeText),
            "threads":[\(lanes)],
            "table":\(table),
            "functions":\(functions.text)}
            """
    }

    private func lane(name: String, _ timeline: CallTimeline, _ functions: inout FunctionNumbers) -> String {
        var slices = "", numbers: [UInt32: Int] = [:]
        for slice in timeline.slices {
            let number: Int
            if let known = numbers[slice.slot] {
                number = known
            } else {
                let function = functionsOfSlots(slice.slot)
                number = functions.number(function.name, function.module)
                numbers[slice.slot] = number
            }
            slices += "\(slices.isEmpty ? "" : ",")\(scale.nanoseconds(slice.start).count),\(scale.nanoseconds(slice.length).count),\(number),\(slice.depth)"
        }
        let dense = timeline.densities.map {
            "\(scale.nanoseconds($0.start).count),\(scale.nanoseconds($0.length).count),\($0.depth),\($0.share)"
        }.joined(separator: ",")
        return "{\"name\":\(ViewPage.safe(JSON.string(name).text(lines: 0))),\"calls\":\(timeline.calls),\"levels\":\(timeline.levels),\"slices\":[\(slices)],\"dense\":[\(dense)]}"
    }

    /// Of each function, all paths together: calls, total of the outermost, self, longest.
    private func rows(_ functions: inout FunctionNumbers) -> String {
        struct Row {
            var calls: UInt64 = 0, total: UInt64 = 0, maximum: UInt64 = 0
            var selfTime: Int64 = 0
        }
        var rows = [Row](repeating: Row(), count: tree.functions.count)
        var open = [Int](repeating: 0, count: tree.functions.count)
        var path: [Int] = []
        for (index, node) in tree.nodes.enumerated() {
            while let last = path.last, tree.nodes[last].end <= index {
                open[tree.nodes[last].function] -= 1
                path.removeLast()
            }
            guard node.function >= 0 else { continue }
            rows[node.function].calls &+= node.calls
            rows[node.function].selfTime &+= node.selfTime
            rows[node.function].maximum = max(rows[node.function].maximum, node.maximum ?? 0)
            if open[node.function] == 0 { rows[node.function].total &+= node.total }
            open[node.function] += 1
            path.append(index)
        }
        let texts = rows.indices.filter { rows[$0].calls > 0 }.map { index in
            let row = rows[index], function = tree.functions[index]
            return "[\(functions.number(function.name, function.module)),\(row.calls),\(row.total),\(row.selfTime),\(row.maximum)]"
        }
        return "[" + texts.joined(separator: ",") + "]"
    }

    /// JSON inside a script element: "</script" must not appear in it.
    static func safe(_ json: String) -> String { json.replacing("<", with: "\\u003c") }
}

/// Functions as the page numbers them.
struct FunctionNumbers {
    private struct Key: Hashable {
        var name: String, module: String
    }
    private var numbers: [Key: Int] = [:]
    private var all: [Key] = []

    mutating func number(_ name: String, _ module: String) -> Int {
        let key = Key(name: name, module: module)
        if let known = numbers[key] { return known }
        numbers[key] = all.count
        all.append(key)
        return all.count - 1
    }

    var text: String {
        "[" + all.map { "[" + ViewPage.safe(JSON.string($0.name).text(lines: 0)) + "," + ViewPage.safe(JSON.string($0.module).text(lines: 0)) + "]" }.joined(separator: ",\n") + "]"
    }
}
