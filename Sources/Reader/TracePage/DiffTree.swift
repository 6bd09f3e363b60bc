// The paths of both sides as columns of numbers, in preorder: those of `ViewTree`, and what was before.
import Presentation
import TraceAnalysis

struct DiffTree {
    private let diff: TreeDiff
    private let least: Double
    private let most: Int
    private let children: [[Int]]
    private let roots: [Int]
    /// For each path with what is below it, a time for each run, and the width it is drawn with. The width is the longer of
    /// both times of each path, added up: what is gone stays visible, and a callee is never wider than its caller.
    private let before: [[Double]], after: [[Double]], width: [Double]

    init(_ diff: TreeDiff, least: Double, most: Int) {
        (self.diff, self.least, self.most) = (diff, least, most)
        let paths = diff.paths
        var before = paths.map { $0.row.before.selfTime }, after = paths.map { $0.row.after.selfTime }
        var width = paths.map { max($0.row.before.medianSelf, $0.row.after.medianSelf, 0) }
        var children = [[Int]](repeating: [], count: paths.count), roots: [Int] = []
        for index in paths.indices.reversed() { // a parent stands before its children
            let parent = paths[index].parent
            guard parent >= 0 else {
                roots.append(index)
                continue
            }
            children[parent].append(index)
            for run in before[index].indices { before[parent][run] += before[index][run] }
            for run in after[index].indices { after[parent][run] += after[index][run] }
            width[parent] += width[index]
        }
        for index in children.indices where children[index].count > 1 { children[index].sort { (width[$0], $1) > (width[$1], $0) } }
        roots.sort { (width[$0], $1) > (width[$1], $0) }
        (self.before, self.after, self.width, self.children, self.roots) = (before, after, width, children, roots)
    }

    static func whole(_ number: Double) -> Int64 { Int64(exactly: number.rounded()) ?? 0 }

    private struct Columns {
        var texts: [[String]] = Array(repeating: [], count: 10)
        mutating func add(_ numbers: [Int64]) {
            for (column, number) in numbers.enumerated() { texts[column].append(String(number)) }
        }
    }

    func text(_ functions: inout FunctionNumbers) -> String {
        var columns = Columns(), names = ["all threads"]
        var numbers = [Int](repeating: -1, count: diff.functions.count)
        let total = roots.reduce(0) { $0 + width[$1] }, limit = self.limit(total)
        func sums(_ indices: [Int], _ times: [[Double]]) -> [Double] {
            guard let first = indices.first else { return [0] }
            return times[first].indices.map { run in indices.reduce(0) { $0 + times[$1][run] } }
        }
        /// Depth, function, calls, total, self, flags, width, and before: total, self, calls.
        func add(
            _ depth: Int, _ function: Int, _ before: TreeDiff.Side, _ after: TreeDiff.Side, _ calls: (Double, Double),
            _ own: (Double, Double), _ width: Double
        ) {
            let flags = TreeDiff.Row(before: before, after: after).isNoise == true ? Int64(NodeFlag.noise.rawValue) : 0
            columns.add([
                Int64(depth), Int64(function), Self.whole(calls.1), Self.whole(after.medianSelf), Self.whole(own.1), flags,
                Self.whole(width),
                Self.whole(before.medianSelf), Self.whole(own.0), Self.whole(calls.0),
            ])
        }
        func side(_ times: [Double]) -> TreeDiff.Side { TreeDiff.Side(calls: [], selfTime: times) }
        add(
            0, -1, side(sums(roots, before)), side(sums(roots, after)),
            (diff.whole.before.medianCalls, diff.whole.after.medianCalls), (0, 0), total)
        var waiting: [(depth: Int, siblings: ArraySlice<Int>)] = [(1, roots[...])]
        while let next = waiting.popLast() {
            guard let index = next.siblings.first else { continue }
            if width[index] < limit { // and so are those after it
                let rest = Array(next.siblings)
                var calls = (0.0, 0.0), count = 0, below = rest
                while let path = below.popLast() {
                    calls.0 += diff.paths[path].row.before.medianCalls
                    calls.1 += diff.paths[path].row.after.medianCalls
                    count += 1
                    below += children[path]
                }
                let width = rest.reduce(0) { $0 + self.width[$1] }
                guard width > 0 else { continue }
                names.append(counted(UInt64(count), "short path"))
                add(next.depth, -names.count, side(sums(rest, before)), side(sums(rest, after)), calls, (0, 0), width)
                continue
            }
            waiting.append((next.depth, next.siblings.dropFirst()))
            waiting.append((next.depth + 1, children[index][...]))
            let path = diff.paths[index]
            if numbers[path.function] < 0 {
                let row = diff.functions[path.function]
                numbers[path.function] = functions.number(
                    row.formerName.map { "\(row.function.name) (was \($0))" } ?? row.function.name, row.function.module)
            }
            add(
                next.depth, numbers[path.function], side(before[index]), side(after[index]),
                (path.row.before.medianCalls, path.row.after.medianCalls), (path.row.before.medianSelf, path.row.after.medianSelf),
                width[index])
        }
        let keys = ["depth", "fn", "calls", "total", "self", "flags", "width", "before", "selfBefore", "callsBefore"]
        return "{" + zip(keys, columns.texts).map { "\"\($0)\":[\($1.joined(separator: ","))],\n" }.joined()
            + "\"names\":\(JSON.array(names.map { .string($0) }).scriptText)}"
    }

    /// The least width that is drawn, so that no more than `most` are.
    private func limit(_ total: Double) -> Double {
        guard width.count > most else { return least * total }
        return max(least * total, width.sorted(by: >)[most - 1] + 1)
    }
}
