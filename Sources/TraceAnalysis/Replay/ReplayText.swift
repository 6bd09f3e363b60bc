// Lines of `tracer replay`, as text and as JSON. There may be millions of them.
import Presentation
import TraceFormat

package struct ReplayText {
    private let trace: TraceFile
    private let table: FunctionNames
    private let end: Ticks
    private let files: LoadedFiles
    private let short: ShortNames
    private let style: TextStyle
    private var labels: [UInt32: Label] = [:]

    /// "name(" and ") [module]"; of a name with its parameters nothing stands between.
    private struct Label {
        var name: [UInt8]
        var hasParameters: Bool
        var module: [UInt8]
    }

    /// - Parameter end: until when calls that are still open ran
    package init(_ trace: TraceFile, _ table: FunctionNames, until end: TraceEnd, names: NameStyle, _ style: TextStyle) {
        (self.trace, self.table, self.end, self.style) = (trace, table, end.ticks, style)
        files = LoadedFiles(trace)
        short = table.shortNames(names)
    }

    private mutating func label(_ function: UInt32) -> Label {
        if let label = labels[function] { return label }
        let name = table.name(of: function), shown = short[name.name]
        let label = Label(name: Array(shown.utf8), hasParameters: shown.hasSuffix(")"), module: Array(style.dim(" [\(name.module)]").utf8))
        labels[function] = label
        return label
    }

    package mutating func write(_ line: ReplayLine, of thread: TraceFile.ThreadID, to text: inout [UInt8]) {
        var start = text.count
        if line.start < trace.firstTicks {
            text.append(UInt8(ascii: "-"))
            text.append(seconds: trace.timeScale.nanoseconds(from: line.start, to: trace.firstTicks))
        } else {
            text.append(seconds: trace.timeScale.nanoseconds(from: trace.firstTicks, to: line.start))
        }
        text.align(from: start, width: 13)
        text.append(spaces: 2)
        start = text.count
        if let end = line.end {
            text.append(column: trace.timeScale.nanoseconds(from: line.start, to: end.time))
        } else if line.kind == .entered {
            text.append("entered")
        }
        text.align(from: start, width: 11)
        text.append(spaces: 2 + 2 * min(line.depth, 100))
        switch line.kind {
        case .missing(let count): text.append(style.alarm("-- \(counted(count, "chunk")) of this thread missing --"))
        default: write(labelOf: line, thread, to: &text)
        }
        let note = self.note(line)
        if line.isInherited {
            text.append("  " + style.alarm(note.map { "(entered before, \($0))" } ?? "(entered before)"))
        } else if let note {
            text.append("  " + style.alarm("(\(note))"))
        }
    }

    /// The function, and the file that the call loaded.
    private mutating func write(labelOf line: ReplayLine, _ thread: TraceFile.ThreadID, to text: inout [UInt8]) {
        guard let function = line.function else { return }
        let label = label(function), object = line.object.map { trace.metadata.object($0, of: function).text }
        text.append(contentsOf: label.name)
        if label.hasParameters {
            if let object { text.append(" " + object) }
        } else {
            text.append("(" + (object ?? "") + ")")
        }
        text.append(contentsOf: label.module)
        guard !files.isEmpty else { return }
        let file = files.file(
            table.name(of: function).name, thread: thread.index, from: line.start.raw, to: (line.end?.time ?? end).raw)
        if let file { text.append("  \(file)") }
    }

    package func json(_ line: ReplayLine, of thread: TraceFile.ThreadID) -> String {
        let kind =
            switch line.kind {
            case .call: "call"
            case .entered: "entered"
            case .orphan: "orphan"
            case .migrated: "migrated"
            case .missing: "missing"
            }
        let ended: String? = line.end.map {
            switch $0.how {
            case .returned: "returned"
            case .unwound: "unwound"
            case .lost: "lost"
            case .open: "open"
            }
        }
        let since = Int64(bitPattern: line.start.raw &- trace.firstTicks.raw) // a forked child's calls began before it
        let name = line.function.map { table.name(of: $0) }
        var fields: [(String, JSON)] = [
            ("tid", .unsigned(UInt64(thread.tid))), ("thread", .string(thread.name)), ("kind", .string(kind)),
            ("depth", .unsigned(UInt64(line.depth))), ("start_ns", .signed(trace.timeScale.signedNanoseconds(since))),
            ("duration_ns", .time(line.end.map { trace.timeScale.nanoseconds(from: line.start, to: $0.time) })),
            ("function", name.map { .string($0.name) } ?? .null), ("module", name.map { .string($0.module) } ?? .null),
            ("ended", ended.map { .string($0) } ?? .null),
        ]
        if let object = line.object, let function = line.function {
            fields.append(("object", trace.metadata.object(object, of: function).json))
        }
        if case .missing(let count) = line.kind { fields.append(("chunks", .unsigned(count))) }
        return JSON.object(fields).text(lines: 0)
    }

    private func note(_ line: ReplayLine) -> String? {
        switch (line.kind, line.end?.how) {
        case (.orphan, _): "returned; its entry is not in the file"
        case (.migrated, _): "began on another thread"
        case (_, .unwound): "left without returning"
        case (_, .lost): "its end is not in the file"
        case (_, .open): "still running"
        default: nil
        }
    }
}
