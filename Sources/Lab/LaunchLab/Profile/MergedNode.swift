// Launches of two sets, laid over one another.
import Statistics

/// The same node in all launches of both sets; a launch that was never there counts as zero.
struct MergedNode {
    enum Side { case first, second }
    struct Pair {
        var first: Sample, second: Sample
        var difference: Double { second.median - first.median }
        var largest: Double { max(first.values.last ?? 0, second.values.last ?? 0) }
    }

    let key: CallNode.Key
    private let nodes: (first: [CallNode?], second: [CallNode?])
    let totals: Pair

    static func root(_ first: [CallNode], _ second: [CallNode]) -> MergedNode {
        MergedNode(CallNode.Key(.root, module: "", name: ""), first, second)
    }

    private init(_ key: CallNode.Key, _ first: [CallNode?], _ second: [CallNode?]) {
        self.key = key
        nodes = (first, second)
        totals = MergedNode.pair(first, second) { Double($0.total) }
    }

    private static func pair(_ first: [CallNode?], _ second: [CallNode?], _ value: (CallNode) -> Double) -> Pair {
        Pair(first: Sample(first.map { $0.map(value) ?? 0 }), second: Sample(second.map { $0.map(value) ?? 0 }))
    }
    /// Without children, but with what was waited for.
    var owns: Pair {
        MergedNode.pair(nodes.first, nodes.second) { node in
            Double(node.own + node.children.lazy.filter { $0.key.kind == .wait }.reduce(0) { $0 + $1.total })
        }
    }
    var counts: Pair { MergedNode.pair(nodes.first, nodes.second) { Double($0.count) } }
    func totals(without kinds: Set<CallNode.Kind>) -> Pair {
        MergedNode.pair(nodes.first, nodes.second) { node in
            Double(node.total - node.children.lazy.filter { kinds.contains($0.key.kind) }.reduce(0) { $0 + $1.total })
        }
    }

    /// In most of its launches.
    func isIn(_ side: Side) -> Bool {
        let there = side == .first ? nodes.first : nodes.second
        return there.count { $0 != nil } * 2 > there.count
    }

    /// In a fixed order.
    var children: [MergedNode] {
        let renumbered = renumbered
        var merged: [CallNode.Key: (first: [CallNode?], second: [CallNode?])] = [:]
        let empty = ([CallNode?](repeating: nil, count: nodes.first.count), [CallNode?](repeating: nil, count: nodes.second.count))
        for (index, node) in nodes.first.enumerated() {
            for child in node?.children ?? [] { merged[renumbered[child.key] ?? child.key, default: empty].first[index].add(child) }
        }
        for (index, node) in nodes.second.enumerated() {
            for child in node?.children ?? [] { merged[renumbered[child.key] ?? child.key, default: empty].second[index].add(child) }
        }
        return merged.map { MergedNode($0.key, $0.value.first, $0.value.second) }
            .sorted { ($0.key.module, $0.key.name, $0.key.kind.rawValue) < ($1.key.module, $1.key.name, $1.key.kind.rawValue) }
    }
}

extension MergedNode {
    /// Maps children without a name that only one side has to a common key, if the other side has such too: they may be the
    /// same ones in another build. They are compared together, and none of them is new or gone.
    private var renumbered: [CallNode.Key: CallNode.Key] {
        func unnamed(_ nodes: [CallNode?]) -> Set<CallNode.Key> {
            Set(nodes.lazy.flatMap { $0?.children ?? [] }.map(\.key).filter { $0.isUnnamed })
        }
        let first = unnamed(nodes.first), second = unnamed(nodes.second)
        let gone = first.subtracting(second), new = second.subtracting(first)
        let both = Set(gone.map(\.withoutName)).intersection(new.map(\.withoutName))
        return Dictionary(uniqueKeysWithValues: gone.union(new).filter { both.contains($0.withoutName) }.map { ($0, $0.withoutName) })
    }
}

extension CallNode? {
    /// Two children of one name: the same static function of two files, say.
    fileprivate mutating func add(_ other: CallNode) {
        guard var node = self else {
            self = other
            return
        }
        node.count += other.count
        node.total += other.total
        for child in other.children {
            if let index = node.children.firstIndex(where: { $0.key == child.key }) {
                var merged: CallNode? = node.children[index]
                merged.add(child)
                node.children[index] = merged!
            } else {
                node.children.append(child)
            }
        }
        self = node
    }
}
