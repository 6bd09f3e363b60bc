// Data that the script of a page finds as `DATA`. Its names are those of Resources/schema.mjs.
import Presentation
import TraceAnalysis

package struct PageData {
    var title: String, facts: String, executable: String
    /// Losses of the traces, one line each; `notes`: what else is not in the page.
    var losses: [String]
    var notes: [String]
    var duration: UInt64
    /// Range that the timeline shows at first, in nanoseconds since its beginning.
    var shown: Range<UInt64>?
    var startup: JSON
    /// JSON, as it is in the page; may have megabytes.
    var tree: String
    /// nil: there is no timeline.
    var threads: [String]?
    /// Number of threads in the traces: the page may have fewer.
    var threadCount: Int
    /// JSON, too.
    var samples: String
    var table: String, functions: String
    var isServed: Bool

    var text: String {
        """
        {"title":\(JSON.string(title).scriptText),"facts":\(JSON.string(facts).scriptText),"executable":\(JSON.string(executable).scriptText),
        "losses":\(JSON.array(losses.map { .string($0) }).scriptText),
        "notes":\(JSON.array(notes.map { .string($0) }).scriptText),"duration":\(duration),"shown":\(shown.map { "{\"from\":\($0.lowerBound),\"to\":\($0.upperBound)}" } ?? "null"),
        "startup":\(startup.scriptText),
        "tree":\(tree),
        "threads":\(threads.map { "[\($0.joined(separator: ",\n"))]" } ?? "null"),
        "threadCount":\(threadCount),"served":\(isServed),
        "samples":\(samples),
        "table":\(table),
        "functions":\(functions)}
        """
    }
}

extension PageData {
    /// A page without a timeline.
    package init(title: String, facts: String, notes: [String], tree: String, table: String, functions: String) {
        self.init(
            title: title, facts: facts, executable: "", losses: [], notes: notes, duration: 0, startup: .null, tree: tree, threadCount: 0,
            samples: "null", table: table, functions: functions, isServed: false)
    }
}

extension JSON {
    /// Inside a script element, where "</script" must not appear.
    var scriptText: String { text(lines: 0).replacing("<", with: "\\u003c") }
}
