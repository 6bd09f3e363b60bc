// What the script of a page finds as `DATA`. Its names are those of Resources/schema.mjs.
import Presentation
import TraceAnalysis

struct PageData {
    var title: String, facts: String, executable = ""
    /// What the traces do not have against the user's will; what else is not in the page.
    var losses: [String] = []
    var notes: [String]
    var duration: UInt64 = 0
    /// What the timeline shows at first, in nanoseconds since its beginning.
    var shown: Range<UInt64>?
    var startup = JSON.null
    /// JSON as it will stand there: megabytes, perhaps.
    var tree: String
    /// nil: there is no timeline.
    var threads: [String]?
    /// Of the traces: the page may have fewer.
    var threadCount = 0
    /// JSON as well.
    var samples = "null"
    var table: String, functions: String
    var isServed = false

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

extension JSON {
    /// Inside a script element, where "</script" must not appear.
    var scriptText: String { text(lines: 0).replacing("<", with: "\\u003c") }
}
