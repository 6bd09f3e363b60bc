// What a call tree keeps of the calls: sums for each distinct path of functions, of each thread. A frame carries the
// number of its path, so that a call costs one look into a hash table, whatever its depth.

/// Sums of one path. Ticks; wrapping, so that a damaged file cannot stop the reader.
struct PathNode: BitwiseCopyable {
    /// 0 for the path of a thread, which has no function.
    var parent: UInt32
    var slot: UInt32
    var calls: UInt64 = 0
    /// Calls whose length is known.
    var timed: UInt64 = 0
    var total: UInt64 = 0
    var selfTime: Int64 = 0
    var minimum: UInt64 = .max
    var maximum: UInt64 = 0
    /// Of the calls: still running at the end, left without returning, ended in a missing stretch, returned here and
    /// begun on another thread.
    var open: UInt32 = 0
    var unwound: UInt32 = 0
    var cut: UInt32 = 0
    var migrated: UInt32 = 0

    mutating func add(_ other: PathNode) {
        calls &+= other.calls
        timed &+= other.timed
        total &+= other.total
        selfTime &+= other.selfTime
        minimum = min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        open &+= other.open
        unwound &+= other.unwound
        cut &+= other.cut
        migrated &+= other.migrated
    }
}

struct PathSums: ~Copyable {
    /// A parent lies before its children. 0 is nobody's.
    private(set) var nodes = PlainArray<PathNode>()
    /// In the order in which they were met.
    private(set) var threads: [(thread: UInt32, root: UInt32)] = []
    private var rootOfThread: [UInt32: UInt32] = [:]
    private var root: UInt32 = 0
    /// Open addressing; 0 is an empty place. At most half full.
    private var places: PlainArray<UInt32>
    private var placeBits: UInt64 = 12
    private var mostPaths: Int
    /// By number of a path in the reading that was added last: its number here.
    private var paths: [UInt32] = []

    private var slots: FunctionSlots
    private var isTail: PlainArray<Bool>
    private var migrated = Migrations()

    private(set) var calls: UInt64 = 0
    private(set) var orphans: UInt64 = 0
    private(set) var lost: UInt64 = 0

    /// The slot of calls whose paths are too many to be told apart.
    static var elsewhere: UInt32 { .max }

    /// - Parameter mostPaths: 72 bytes each, and 8 in the hash table. Beyond it each path has one more, for all others.
    init(_ table: FunctionTable, mostPaths: Int = 1 << 21) {
        slots = FunctionSlots(table)
        isTail = PlainArray(repeating: false, count: table.slotCount)
        for slot in 1 ..< max(table.slotCount, 1) { isTail[slot] = table.rows[slot - 1].isTail }
        places = PlainArray(repeating: 0, count: 1 << 12)
        self.mostPaths = mostPaths
        nodes.append(PathNode(parent: 0, slot: 0))
    }

    var strangers: [UInt32] { slots.strangers }

    // MARK: paths

    @inline(__always) private func place(_ parent: UInt32, _ slot: UInt32) -> Int {
        // Fibonacci hashing: the upper bits of a product with 2^64 divided by the golden ratio.
        Int(((UInt64(parent) &<< 32 | UInt64(slot)) &* 0x9e37_79b9_7f4a_7c15) &>> (64 &- placeBits))
    }

    @inline(__always) private mutating func child(_ parent: UInt32, _ slot: UInt32) -> UInt32 {
        var place = place(parent, slot)
        while true {
            let node = places[place]
            if node == 0 { break }
            if nodes[Int(node)].slot == slot, nodes[Int(node)].parent == parent { return node }
            place = (place &+ 1) & (places.count &- 1)
        }
        return newChild(parent, slot)
    }

    @inline(never) private mutating func newChild(_ parent: UInt32, _ slot: UInt32) -> UInt32 {
        if nodes[Int(parent)].slot == Self.elsewhere { return parent }
        if nodes.count >= mostPaths, slot != Self.elsewhere { return child(parent, Self.elsewhere) }
        if nodes.count * 2 >= places.count { grow() }
        let node = UInt32(nodes.count)
        nodes.append(PathNode(parent: parent, slot: slot))
        insert(node)
        return node
    }

    private mutating func insert(_ node: UInt32) {
        var place = place(nodes[Int(node)].parent, nodes[Int(node)].slot)
        while places[place] != 0 { place = (place &+ 1) & (places.count &- 1) }
        places[place] = node
    }

    private mutating func grow() {
        placeBits += 1
        places = PlainArray(repeating: 0, count: 1 << Int(placeBits))
        for node in 1 ..< nodes.count where nodes[node].parent != 0 { insert(UInt32(node)) }
    }

    private mutating func rootNode(_ thread: UInt32) -> UInt32 {
        if let root = rootOfThread[thread] { return root }
        let root = UInt32(nodes.count)
        nodes.append(PathNode(parent: 0, slot: 0))
        threads.append((thread, root))
        rootOfThread[thread] = root
        return root
    }

    /// The path of a frame, the thread's own when there is none.
    @inline(__always) private func path(_ frame: Frame) -> UInt32 {
        frame.tag == 0 ? root : UInt32(truncatingIfNeeded: frame.tag)
    }

    // MARK: times

    @inline(__always) private mutating func time(_ duration: UInt64, _ node: UInt32, below parent: UInt32, isWhole: Bool) {
        nodes[Int(node)].selfTime &+= Int64(truncatingIfNeeded: duration)
        nodes[Int(parent)].selfTime &-= Int64(truncatingIfNeeded: duration)
        // Elsewhere there are calls within calls, whose time counts once.
        if _fastPath(node != parent) { nodes[Int(node)].total &+= duration }
        guard isWhole else { return }
        nodes[Int(node)].timed &+= 1
        nodes[Int(node)].minimum = min(nodes[Int(node)].minimum, duration)
        nodes[Int(node)].maximum = max(nodes[Int(node)].maximum, duration)
    }

    @inline(never) private mutating func strangerSlot(_ function: UInt32) -> UInt32 {
        let slot = slots.strangerSlot(function)
        if Int(slot) >= isTail.count { isTail.append(repeating: false, count: Int(slot) + 1 - isTail.count) }
        return slot
    }
}

extension PathSums: CallSink {
    @inline(__always) mutating func slot(of function: UInt32) -> UInt32 {
        let slot = slots.known(function)
        return _fastPath(slot != 0) ? slot : strangerSlot(function)
    }

    @inline(__always) mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let node = child(path(parent), frame.slot)
        frame.tag = UInt64(node)
        guard isCall else { return }
        calls &+= 1
        nodes[Int(node)].calls &+= 1
    }

    @inline(__always) mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
                                           isOutermost: Bool, _ ending: Ending) {
        let node = path(frame)
        self.time(time > frame.enter ? time &- frame.enter : 0, node, below: path(parent), isWhole: ending != .lost)
        switch ending {
        case .returned: break
        case .unwound: nodes[Int(node)].unwound &+= 1
        case .lost: nodes[Int(node)].cut &+= 1
        case .open: nodes[Int(node)].open &+= 1
        }
    }

    @inline(__always) mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int,
                                         parent: Frame, isOutermost: Bool) {
        calls &+= 1
        let below = path(parent)
        let node = child(below, slot)
        nodes[Int(node)].calls &+= 1
        if _slowPath(isTail[Int(slot)]) { return }
        time(end &- start, node, below: below, isWhole: true)
    }

    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migrated.insert(slot, enter: start)
        let node = child(root, slot)
        nodes[Int(node)].migrated &+= 1
        time(end &- start, node, below: 0, isWhole: true)
    }

    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) { lost &+= count }
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) {}
    mutating func unknown() {}
}

extension PathSums: StreamSink {
    mutating func begin(thread: UInt32) { root = rootNode(thread) }

    mutating func add(_ other: borrowing PathSums) {
        calls &+= other.calls
        orphans &+= other.orphans
        lost &+= other.lost
        mostPaths = .max // that of each reading was kept
        paths = Array(repeating: 0, count: other.nodes.count)
        for (thread, theirRoot) in other.threads { paths[Int(theirRoot)] = rootNode(thread) }
        for index in 1 ..< other.nodes.count {
            let node = other.nodes[index]
            if node.parent != 0 {
                let slot = node.slot == Self.elsewhere ? node.slot : translate(node.slot, from: other)
                paths[index] = child(paths[Int(node.parent)], slot)
            }
            nodes[Int(paths[index])].add(node)
        }
        var union = migrated
        union.formUnion(other.migrated) { translate($0, from: other) }
        migrated = union
    }

    mutating func translate(_ frame: Frame, from other: borrowing PathSums) -> Frame {
        var frame = frame
        frame.slot = translate(frame.slot, from: other)
        frame.tag = UInt64(paths[Int(frame.tag)])
        return frame
    }

    private mutating func translate(_ slot: UInt32, from other: borrowing PathSums) -> UInt32 {
        other.slots.stranger(slot).map { strangerSlot($0) } ?? slot
    }

    func hasMigrated(_ frame: Frame) -> Bool { migrated.contains(frame.slot, enter: frame.enter) }
}
