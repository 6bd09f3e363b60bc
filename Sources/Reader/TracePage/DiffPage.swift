// Two sets of runs as one HTML page: the flame graph of both, red where it got slower and blue where it got faster, and
// the table of functions. The page is that of `tracer view` without a timeline, since there is no common one.
import Presentation
import TraceAnalysis

package struct DiffPage {
    private let diff: TreeDiff
    private let title: String
    private let facts: String
    private let notes: [String]

    /// - Parameters:
    ///   - title: what ran
    ///   - facts: which runs are compared
    ///   - notes: what makes the comparison doubtful
    package init(_ diff: TreeDiff, title: String, facts: String, notes: [String]) {
        (self.diff, self.title, self.facts, self.notes) = (diff, title, facts, notes)
    }

    package var html: String {
        var functions = FunctionNumbers()
        let tree = DiffTree(diff, least: ViewPage.leastShare, most: ViewPage.mostNodes).text(&functions)
        let table = rows(&functions)
        let isNoiseKnown = diff.whole.isNoise != nil
        let notes = self.notes + (isNoiseKnown ? [] : ["one run on each side: noise cannot be estimated"])
        return ViewPage.document(PageData(title: title, facts: facts, notes: notes, tree: tree, table: table, functions: functions.text))
    }

    /// A `comparedRow` of schema.mjs for each function; a total and a longest call are not compared.
    private func rows(_ functions: inout FunctionNumbers) -> String {
        "["
            + diff.functions.map { row in
                let (before, after) = (row.row.before, row.row.after)
                let name = row.formerName.map { "\(row.function.name) (was \($0))" } ?? row.function.name
                return
                    "[\(functions.number(name, row.function.module)),\(DiffTree.whole(after.medianCalls)),0,\(DiffTree.whole(after.medianSelf)),0,"
                    + "\(DiffTree.whole(before.medianSelf)),\(DiffTree.whole(before.medianCalls)),\(row.row.isNoise == true ? 1 : 0)]"
            }.joined(separator: ",") + "]"
    }
}
