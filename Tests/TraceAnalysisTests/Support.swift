import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

typealias Step = TraceBuilder.Step

let plain = TextStyle(isColoured: false)

func jsonObject(_ text: some StringProtocol) throws -> [String: Any] {
    try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
}

/// A directory that is removed, with its files, when the test lets go of it.
final class TemporaryDirectory {
    let path = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path + "/tracer-test-\(UUID().uuidString)"

    init(_ files: [String: [UInt8]] = [:]) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for (name, bytes) in files { write(name, bytes) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ bytes: [UInt8]) { FileManager.default.createFile(atPath: path + "/" + name, contents: Data(bytes)) }
}

/// A file that is removed when the test lets go of it.
final class TemporaryFile {
    let path: String

    init(_ bytes: [UInt8]) {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("tracer-test-\(UUID().uuidString).trace").path
        FileManager.default.createFile(atPath: path, contents: Data(bytes))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var bytes: [UInt8] { Array(FileManager.default.contents(atPath: path) ?? Data()) }

    func write(_ bytes: some Collection<UInt8>) { FileManager.default.createFile(atPath: path, contents: Data(bytes)) }
}

struct Loaded {
    let file: TemporaryFile
    let trace: TraceFile
    let run: RunSummary
    var summary: Summary { run.summary }

    init(_ bytes: [UInt8], workers: Int = 1) throws {
        file = TemporaryFile(bytes)
        trace = try TraceFile(path: file.path)
        run = RunSummary([trace], path: file.path, workers: workers)
    }

    /// The demo whose thread does this.
    init(_ steps: [Step], workers: Int = 1) throws { try self.init(demo(steps).bytes(), workers: workers) }

    subscript(_ name: String) -> FunctionSummary? { summary.functions.first { $0.name == name } }

    var rows: [String] { summary.rows }

    var totals: [String: UInt64] { Dictionary(uniqueKeysWithValues: summary.functions.map { ($0.name, $0.total.count) }) }

    /// The replay as text: depth as indentation, name, duration in ticks (one tick is one nanosecond), ending.
    func lines(thread: UInt32 = 0, deepest: Int = 0, window: Int = 1 << 16) throws -> [String] {
        var lines: [String] = []
        let table = FunctionNames(trace.metadata)
        try trace.replay(thread: thread, until: TraceEnd(trace), deepest: deepest, limit: 0, window: window, table) { line in
            var text = String(repeating: " ", count: line.depth)
            switch line.kind {
            case .call: text += table.name(of: line.function!).name
            case .entered: text += table.name(of: line.function!).name + " entered"
            case .orphan: text += table.name(of: line.function!).name + " orphan"
            case .migrated: text += table.name(of: line.function!).name + " migrated"
            case .missing(let count): text += "missing \(count)"
            }
            if let end = line.end {
                text += " \(end.time.raw - line.start.raw)"
                if end.how != .returned { text += " \(end.how)" }
            }
            lines.append(line.isInherited ? text + " inherited" : text)
            return true
        }
        return lines
    }
}

extension Summary {
    /// Each function by name, with its calls, total and self time.
    var rows: [String] { functions(by: .name).map { "\($0.name) \($0.calls) \($0.total.count) \($0.selfTime)" } }
}

/// main = 1, a = 2, b = 3, c = 4, and setjmp = 5, of which only entries are recorded. One thread, 0, with tid = pid.
func demo(_ body: (inout TraceBuilder, Int) -> Void) -> TraceBuilder {
    var builder = TraceBuilder()
    builder.module(0, "/usr/lib/libdemo.so.1", buildID: [0xde, 0xad])
    for (id, name) in [(1, "main"), (2, "a"), (3, "b"), (4, "c")] as [(UInt32, String)] { builder.function(id, name) }
    builder.function(5, "setjmp", isEntryOnly: true)
    let thread = builder.thread()
    body(&builder, thread)
    return builder
}

func demo(isRing: Bool = false, _ steps: [Step]) -> TraceBuilder {
    demo { builder, thread in
        if isRing { builder.header.mode = UInt32(TRACE_MODE_RING) }
        builder.steps(thread, steps)
    }
}

let start: UInt64 = 1_000_000

/// A pseudo-random program: nested calls, recursion, unwinding, resumed frames and tails. The same seed, the same calls.
func program(
    seed: UInt64, events: Int, wordsPerChunk: Int = .max, framesPerChunk: Int = .max, areUnsettled: Bool = false, hasResumes: Bool = true
) -> TraceBuilder {
    demo { builder, thread in
        builder.limit(thread, words: wordsPerChunk, frames: framesPerChunk, areUnsettled: areUnsettled)
        var random = Xorshift(seed: seed | 1)
        func next(_ bound: UInt64) -> UInt64 { random.next() % bound }
        var clock = start
        var open: [UInt32] = []
        for _ in 0..<events {
            clock += 1 + next(50)
            switch next(20) {
            case 0..<6 where open.count < 12:
                let function = UInt32(next(4)) + 1
                builder.enter(thread, function, at: clock)
                open.append(function)
            case 6..<11 where !open.isEmpty:
                builder.exit(thread, open.removeLast(), at: clock)
            case 11 where open.count > 2:
                builder.unwind(thread, 2, at: clock)
                open.removeLast(2)
            case 12 where hasResumes && open.count > 2 && Set(open).count == open.count:
                builder.exit(thread, open.remove(at: 1), at: clock)
            case 13:
                builder.complete(thread, 5, from: clock, to: clock)
            case 14:
                clock += 20_000_000 // beyond the reach of a base
            default:
                let duration = 1 + next(1000)
                builder.complete(thread, UInt32(next(4)) + 1, from: clock, to: clock + duration)
                clock += duration
            }
        }
    }
}
