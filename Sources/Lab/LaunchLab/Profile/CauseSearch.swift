// Why one set of launches takes longer than another.
//
// Every launch is a tree that holds all of its time: stages, in them constructors and the loading of libraries, in those
// the calls. Where the trees differ, the difference of a node is its own part plus what its children add, so one can walk
// down from the root and stop where the reason is:
//
//   - a node that only one of the two has is the reason itself: new, or gone;
//   - a node that is entered more often below the same parent is the reason: called more often (or less);
//   - a node whose own part, without its children, accounts for a difference: slower (or faster). Waits of
//     the thread in it belong to that part, and are named with the reason.
//
// The time of one reason never lies inside that of another, so the shares add up, and the remainder is reported as unexplained.
// Two things that belong together are one reason: a library that is new is the reason for its constructors, for the calls
// into it, and for what mapping and relocating take longer.
import Foundation
import Statistics

package struct CauseSearch {
    /// A cause counts when the rank test gives it less than this: stricter than for one question, since every node of the
    /// tree asks it.
    package static let probability = 0.01
    /// And when it matters: less than this share of the whole difference is not worth a line.
    static let share = 0.01
    /// Nor less than this share of the launch.
    static let least = 0.0005

    package static func attribute(from first: [LaunchProfile], to second: [LaunchProfile], probability: Double = CauseSearch.probability)
        -> Attribution
    {
        let totals = (Sample(first.map { Double($0.total) }).median, Sample(second.map { Double($0.total) }).median)
        let difference = totals.1 - totals.0
        let root = MergedNode.root(first.map(\.tree), second.map(\.tree))
        var search = CauseSearch(first.count, second.count, probability, floor: max(abs(difference) * share, totals.0 * least))
        search.visit(root, path: [])
        search.gather(LibraryChange.between(first, second))
        // Libraries are counted, not timed: a new one is reported however little time it takes.
        var causes = search.found.values.filter { abs($0.difference) >= search.floor || $0.kind == .library && $0.change == .new }
        for index in causes.indices where difference != 0 { causes[index].share = causes[index].difference / difference }
        causes.sort { a, b in
            if (a.share < 0) != (b.share < 0) { return b.share < 0 } // causes that work against the difference come last
            let (sizeA, sizeB) = (abs(a.difference), abs(b.difference))
            return sizeA != sizeB ? sizeA > sizeB : a.name < b.name
        }
        return Attribution(difference: difference, causes: causes)
    }

    private let limit: Double
    private let floor: Double
    private var found: [CallNode.Key: Cause] = [:]

    /// With few runs no order of them is improbable enough; then the clearest order there is will do.
    private init(_ first: Int, _ second: Int, _ probability: Double, floor: Double) {
        let orders = exp(lgamma(Double(first + second + 1)) - lgamma(Double(first + 1)) - lgamma(Double(second + 1)))
        limit = max(probability, 2 / orders * 1.001)
        self.floor = floor
    }

    private mutating func visit(_ node: MergedNode, path: [String]) {
        let path = node.key.kind == .root ? path : path + [node.key.name]
        let total = node.totals
        guard total.largest >= floor / 4 else { return }
        if node.key.kind != .root, node.key.kind != .stage {
            if !node.isIn(.first) || !node.isIn(.second) {
                if isDifferent(total) { name(node, total, node.isIn(.second) ? .new : .gone, path) }
                return
            }
            // The number of calls is exact, however noisy their times are.
            if let change = changeOfCount(node), abs(total.difference) >= floor / 4 {
                name(node, total, change, path)
                return
            }
        }
        if [.constructor, .lazy, .item].contains(node.key.kind) {
            // One thing to its author; what it called is in its own report. What it loaded is not its own, nor are items that it ran.
            let inner = node.children.filter { [.dlopen, .item].contains($0.key.kind) }, pair = node.totals(without: [.dlopen, .item])
            if isDifferent(pair) { name(node, pair, pair.difference > 0 ? .slower : .faster, path) }
            for child in inner { visit(child, path: path) }
            return
        }
        let own = node.owns
        if isDifferent(own) { name(node, own, own.difference > 0 ? .slower : .faster, path) }
        for child in node.children where child.key.kind != .wait { visit(child, path: path) }
    }

    /// Entered more often, not because the parent was, and by enough to explain a good part of what it costs more. Where
    /// each call takes another time as well, on a busier machine or since the further ones are of another kind, the
    /// number has its part at the mean of the two times: then the parts of number and time add up to the difference.
    private func changeOfCount(_ node: MergedNode) -> Cause.Change? {
        let (before, after) = (node.counts.first.median, node.counts.second.median)
        guard before > 0, after > 0, before != after, RankTest.probability(node.counts.first, node.counts.second) < limit
        else { return nil }
        let each = (node.totals.first.median / before + node.totals.second.median / after) / 2
        let difference = node.totals.difference
        guard abs((after - before) * each) >= abs(difference) / 3, (after > before) == (difference > 0) else { return nil }
        return after > before ? .calledMoreOften : .calledLessOften
    }

    private func isDifferent(_ pair: MergedNode.Pair) -> Bool {
        let difference = pair.difference
        guard difference != 0, abs(difference) >= floor / 4 else { return false }
        return RankTest.probability(pair.first, pair.second) < limit
    }

    private mutating func name(_ node: MergedNode, _ pair: MergedNode.Pair, _ change: Cause.Change, _ path: [String]) {
        let difference = pair.difference
        var cause =
            found[node.key]
            ?? Cause(
                kind: node.key.kind, name: node.key.name, module: node.key.module, difference: 0, share: 0, change: change,
                path: path, callsBefore: 0, callsAfter: 0)
        if abs(difference) > abs(cause.difference) { (cause.path, cause.change, cause.waiting) = (path, change, waiting(node, difference)) }
        cause.difference += difference
        cause.before += pair.first.median
        cause.after += pair.second.median
        cause.callsBefore += node.counts.first.median
        cause.callsAfter += node.counts.second.median
        found[node.key] = cause
    }

    /// Returns the wait that accounts for more than half of the difference; nil: none does.
    private func waiting(_ node: MergedNode, _ difference: Double) -> String? {
        let waits = node.children.filter { $0.key.kind == .wait }.map { (name: $0.key.name, difference: $0.totals.difference) }
        let most = waits.max { abs($0.difference) < abs($1.difference) }
        return most.flatMap { difference != 0 && $0.difference / difference > 0.5 ? $0.name : nil }
    }

    /// Attributes to a library everything that came or went with it. If loading all libraries takes longer, that is shared
    /// among the new ones, if it takes less, among those that are gone: in proportion to their relocations.
    private mutating func gather(_ changes: [LibraryChange]) {
        guard !changes.isEmpty else { return }
        for change in changes {
            let key = CallNode.Key(.library, module: change.name, name: change.name)
            let parts = found.filter { $0.key.module == change.name && $0.value.change == change.kind && $0.key.kind != .stage }
            var cause =
                found[key]
                ?? Cause(
                    kind: .library, name: change.name, module: change.name, difference: 0, share: 0,
                    change: change.kind, path: [change.name], callsBefore: change.kind == .new ? 0 : 1,
                    callsAfter: change.kind == .new ? 1 : 0)
            cause.difference = parts.values.reduce(0) { $0 + $1.difference }
            for part in parts.keys { found[part] = nil }
            found[key] = cause
        }
        defer {
            for change in changes {
                let key = CallNode.Key(.library, module: change.name, name: change.name)
                guard let difference = found[key]?.difference else { continue }
                (found[key]!.before, found[key]!.after) = change.kind == .new ? (0, difference) : (-difference, 0)
            }
        }
        for (key, loading) in found where key.kind == .stage && key.module == CauseSearch.loading {
            let responsible = changes.filter { ($0.kind == .new) == (loading.difference > 0) }
            let all = responsible.reduce(0) { $0 + $1.relocations + 1 }
            guard all > 0 else { continue }
            for change in responsible {
                let part = loading.difference * Double(change.relocations + 1) / Double(all)
                found[CallNode.Key(.library, module: change.name, name: change.name)]!.difference += part
            }
            found[key] = nil
        }
    }
    /// Marks, as its module, the stage in which libraries are mapped and relocated.
    package static let loading = "libraries"
}
