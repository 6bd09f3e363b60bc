// What one launch was made of, from exec to ready: the part of a trace that launches are compared by. It is a tree that
// holds all of the launch's time: stages, below them libraries with their constructors, and the calls on the way to ready.

/// A length in nanoseconds. Signed, since these are subtracted from one another.
public typealias NanosecondCount = Int64

public struct LaunchProfile: Sendable {
    public struct Library: Equatable, Sendable {
        /// The file's name without its folder: builds live in different places.
        public var name: String
        public var relocations: Int
        public init(name: String, relocations: Int) { (self.name, self.relocations) = (name, relocations) }
    }

    /// Its children are the stages, in order, one after the other.
    public var tree: CallNode
    public var readyReason: String
    public var libraries: [Library]
    public var minorFaults: Int, majorFaults: Int
    /// What the agent itself took; not part of the stages.
    public var tracerTime: NanosecondCount
    /// Until ready; nil: they were not watched, or the kernel does not tell.
    public var diskFaults: [DiskFault]?
    /// Of what recording a call costs, what is in the call's own length, as the agent has measured it; where it could not,
    /// about what it is on the machines that were measured.
    public var insideShare = 0.4

    public init(tree: CallNode, readyReason: String, libraries: [Library], minorFaults: Int, majorFaults: Int,
                tracerTime: NanosecondCount) {
        self.tree = tree
        self.readyReason = readyReason
        self.libraries = libraries
        self.minorFaults = minorFaults
        self.majorFaults = majorFaults
        self.tracerTime = tracerTime
    }

    public var stages: [CallNode] { tree.children }
    public var total: NanosecondCount { tree.total }
    public var relocations: Int { libraries.reduce(0) { $0 + $1.relocations } }
    public func duration(of stage: String) -> NanosecondCount? { stages.first { $0.key.name == stage }?.total }

    /// With the library that each belongs to, wherever in the tree.
    public var constructors: [CallNode] { tree.all(.constructor) }
}

/// A function as it was called along one path, merged over all calls there; or a stage, or a library.
public struct CallNode: Sendable {
    public enum Kind: String, Codable, Sendable { case root, stage, library, constructor, dlopen, lazy, call }
    /// What is the same thing in two builds: no folders, and no addresses but those of functions without a name.
    public struct Key: Hashable, Sendable {
        public var kind: Kind
        public var module: String
        public var name: String
        public init(_ kind: Kind, module: String, name: String) { (self.kind, self.module, self.name) = (kind, module, name) }

        /// Called by its place in its module, or in memory: another build has it elsewhere.
        var isUnnamed: Bool { name.hasPrefix(module + "+0x") || name.hasPrefix("0x") }
        /// All of its kind and module that no symbol names.
        var withoutName: Key { Key(kind, module: module, name: "(without a name)") }
    }

    public var key: Key
    public var count: Int
    /// With everything inside.
    public var total: NanosecondCount
    public var children: [CallNode]
    /// Traced calls made in it that have no nodes of their own.
    public var hiddenCalls = 0

    public init(_ key: Key, count: Int, total: NanosecondCount, children: [CallNode] = []) {
        (self.key, self.count, self.total, self.children) = (key, count, total, children)
    }

    /// Without its children.
    public var own: NanosecondCount { total - children.reduce(0) { $0 + $1.total } }

    private var recordedCount: Int { key.kind == .call ? count : 0 }
    var tracedCalls: Int { recordedCount + hiddenCalls + children.reduce(0) { $0 + $1.tracedCalls } }

    /// Without what recording its calls has cost: so many nanoseconds each, of which this share is in the length of the call
    /// and the rest is its caller's.
    func without(callCost: Double, insideShare: Double) -> CallNode { take(callCost * insideShare, callCost * (1 - insideShare)).node }

    /// What a node is too short for is taken from its caller: the share is of a function that does nothing.
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

    /// As it would be on a machine that is so many times as fast.
    func scaled(by factor: Double) -> CallNode {
        var node = self
        node.total = NanosecondCount((Double(total) * factor).rounded())
        node.children = children.map { $0.scaled(by: factor) }
        return node
    }

    func all(_ kind: Kind) -> [CallNode] { (key.kind == kind ? [self] : []) + children.flatMap { $0.all(kind) } }
}
