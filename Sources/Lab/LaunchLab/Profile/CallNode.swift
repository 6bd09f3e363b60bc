// A node of the tree that a launch is.

/// A length in nanoseconds. Signed, since these are subtracted from one another.
package typealias NanosecondCount = Int64

/// A function as it was called along one path, merged over all calls there; or a stage, or a library.
package struct CallNode: Sendable {
    package enum Kind: String, Decodable, Sendable { case root, stage, library, constructor, dlopen, lazy, item, call, wait }
    /// Identifies the same thing in two builds: no folders, and no addresses except for functions without a name.
    package struct Key: Hashable, Sendable {
        package var kind: Kind
        /// The module; for a start-up item its stage, "stage 1".
        package var module: String
        package var name: String
        package init(_ kind: Kind, module: String, name: String) { (self.kind, self.module, self.name) = (kind, module, name) }

        /// Called by its offset in its module, or its address in memory: another build has it elsewhere.
        var isUnnamed: Bool { name.hasPrefix(module + "+0x") || name.hasPrefix("0x") }
        /// All of its kind and module that no symbol names.
        var withoutName: Key { Key(kind, module: module, name: "(without a name)") }
    }

    package var key: Key
    package var count: Int
    /// With everything inside.
    package var total: NanosecondCount
    package var children: [CallNode]
    /// Recorded calls made in it that have no nodes of their own.
    package var hiddenCalls = 0

    package init(_ key: Key, count: Int, total: NanosecondCount, children: [CallNode] = []) {
        (self.key, self.count, self.total, self.children) = (key, count, total, children)
    }

    /// Without its children.
    package var own: NanosecondCount { total - children.reduce(0) { $0 + $1.total } }

    private var recordedCount: Int { key.kind == .call ? count : 0 }
    var tracedCalls: Int { recordedCount + hiddenCalls + children.reduce(0) { $0 + $1.tracedCalls } }

    /// Returns the node without the cost of recording its calls: `callCost` nanoseconds each, of which `insideShare` lies in
    /// the length of the call and the rest in its caller's.
    package func without(callCost: Double, insideShare: Double) -> CallNode {
        take(callCost * insideShare, callCost * (1 - insideShare)).node
    }

    /// Takes cost that a node is too short for from its caller: `insideShare` was measured with a function that does nothing.
    private func take(_ inside: Double, _ outside: Double) -> (node: CallNode, left: Double) {
        var node = self, cost = Double(recordedCount) * inside + Double(hiddenCalls) * (inside + outside)
        node.children = children.map { child in
            let (child, left) = child.take(inside, outside)
            cost += left + Double(child.recordedCount) * outside
            return child
        }
        let taken = min(cost, Double(max(own, 0)))
        node.total = own - NanosecondCount(taken) + node.children.reduce(0) { $0 + $1.total }
        return (node, cost - taken)
    }

    /// Returns the node with all times multiplied by `factor`: 2 gives those of a machine half as fast.
    package func scaled(by factor: Double) -> CallNode {
        var node = self
        node.total = NanosecondCount((Double(total) * factor).rounded())
        node.children = children.map { $0.scaled(by: factor) }
        return node
    }

    package func all(_ kind: Kind) -> [CallNode] { (key.kind == kind ? [self] : []) + children.flatMap { $0.all(kind) } }
}
