// Lines of `tracer replay`, as text and as JSON. There may be millions of them.
import Presentation
import TraceFormat

package struct ReplayText {
    private let trace: TraceFile
    private let table: FunctionNames
    private let end: Ticks
    private let files: LoadedFiles
    private let descriptors: DescriptorNames?
    private let short: ShortNames
    private let style: TextStyle
    private var captions: [UInt32: Caption] = [:]

    /// "name(" and ") [module]"; of a name with its parameters nothing stands between.
    private struct Caption {
        var name: [UInt8]
        var hasParameters: Bool
        var module: [UInt8]
    }

    /// - Parameters:
    ///   - end: until when calls that are still open ran
    ///   - descriptors: what they are open on; nil: nothing is known of that
    package init(
        _ trace: TraceFile, _ table: FunctionNames, until end: TraceEnd, names: NameStyle, _ descriptors: DescriptorNames?,
        _ style: TextStyle
    ) {
        (self.trace, self.table, self.end, self.style) = (trace, table, end.ticks, style)
        files = LoadedFiles(trace)
        self.descriptors = descriptors
        short = table.shortNames(names)
    }

    private mutating func caption(_ function: UInt32) -> Caption {
        if let caption = captions[function] { return caption }
        let name = table.name(of: function), shown = short[name.name]
        let caption = Caption(
            name: Array(shown.utf8), hasParameters: shown.hasSuffix(")"), module: Array(style.dim(" [\(name.module)]").utf8))
        captions[function] = caption
        return caption
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
        default: write(captionOf: line, thread, to: &text)
        }
        let note = self.note(line)
        if line.isInherited {
            text.append("  " + style.alarm(note.map { "(entered before, \($0))" } ?? "(entered before)"))
        } else if let note {
            text.append("  " + style.alarm("(\(note))"))
        }
    }

    /// The function, and the file that the call loaded.
    private mutating func write(captionOf line: ReplayLine, _ thread: TraceFile.ThreadID, to text: inout [UInt8]) {
        guard let function = line.function else { return }
        let caption = caption(function), values = arguments(of: line)?.text
        let object = values ?? line.object.map { trace.metadata.object($0, of: function).text }
        text.append(contentsOf: caption.name)
        if caption.hasParameters {
            if let object { text.append(" " + object) }
        } else {
            text.append("(" + (object ?? "") + ")")
        }
        if let (value, errno) = result(of: line) {
            text.append(" = " + value.text + (errno.map { " " + $0 } ?? ""))
        }
        text.append(contentsOf: caption.module)
        guard !files.isEmpty else { return }
        let file = files.file(
            table.name(of: function).name, thread: thread.index, from: line.start.raw, to: (line.end?.time ?? end).raw)
        if let file { text.append("  \(file)") }
    }

    private func arguments(of line: ReplayLine) -> NamedArguments? {
        trace.metadata.arguments(line.arguments, line.result, descriptors, from: line.start.raw)
    }
    private func result(of line: ReplayLine) -> (value: ArgumentValue, errno: String?)? {
        trace.metadata.result(line.result, descriptors, at: line.end?.time.raw)
    }

    package func json(_ line: ReplayLine, of thread: TraceFile.ThreadID) -> String { record(line, of: thread).json.text(lines: 0) }
    func record(_ line: ReplayLine, of thread: TraceFile.ThreadID) -> ReplayedLine {
        let since = Int64(bitPattern: line.start.raw &- trace.firstTicks.raw) // a forked child's calls began before it
        return ReplayedLine(
            line: line, thread: thread, start: trace.timeScale.signedNanoseconds(since),
            duration: line.end.map { trace.timeScale.nanoseconds(from: line.start, to: $0.time) },
            name: line.function.map { table.name(of: $0) },
            object: line.function.flatMap { function in line.object.map { trace.metadata.object($0, of: function) } },
            arguments: arguments(of: line), result: result(of: line))
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

/// A line of `tracer replay --json`, with what only the trace knows of it already looked up: there are millions of lines.
package struct ReplayedLine: Record {
    fileprivate var line: ReplayLine
    fileprivate var thread: TraceFile.ThreadID
    /// Since the beginning of the trace.
    fileprivate var start: Int64
    fileprivate var duration: Nanoseconds?
    fileprivate var name: (name: String, module: String)?
    fileprivate var object: CallObject?
    fileprivate var arguments: NamedArguments?
    fileprivate var result: (value: ArgumentValue, errno: String?)?

    private var openOn: NamedArguments? {
        NamedArguments(values: (arguments?.values ?? []) + (result.map { [("result", $0.value)] } ?? [])).openOn
    }

    private enum Kind: String, JSONChoice { case call, entered, orphan, migrated, missing }

    private var kind: Kind {
        switch line.kind {
        case .call: .call
        case .entered: .entered
        case .orphan: .orphan
        case .migrated: .migrated
        case .missing: .missing
        }
    }
    private var missingChunks: UInt64? { if case .missing(let count) = line.kind { count } else { nil } }

    package static let members = declare {
        Member("tid") { $0.thread.tid }
        Member("thread", "its name") { $0.thread.name }
        Member("kind") { $0.kind }
        Member("depth", "open calls around it") { $0.line.depth }
        Member("time_ns", "since the beginning of the trace; negative for a call that a forked child has from its parent") { $0.start }
        Member("duration_ns") { $0.duration }
        Member("name", "of the function") { $0.name?.name }
        Member("module") { $0.name?.module }
        Member("ended", "null where it has no end of its own") { $0.line.end?.how }
        Member.optional("object", CallObject.meaning) { $0.object }
        Member.optional("arguments", "their values by their names; missing where none are recorded") { $0.arguments }
        Member.optional("result", "missing where none is recorded") { $0.result?.value }
        Member.optional(
            "open_on", "what descriptors among the arguments, and `result`, are open on, by their names; those of which it is known"
        ) {
            $0.openOn
        }
        Member.optional("errno", "why the call failed; missing where it did not") { $0.result?.errno }
        Member.optional("chunks", "how many are missing, with kind missing") { $0.missingChunks }
    }
}
