// Sums that a call tree keeps for each distinct path of functions of each thread. A frame carries the number of its
// path: a call then costs one lookup in a hash table, whatever its depth.

/// Sums of one path. Ticks; wrapping, so that a damaged file cannot stop the reader.
struct PathNode: BitwiseCopyable {
    /// 0 for the path of a thread, which has no function.
    var parent: UInt32
    var row: UInt32
    var calls: UInt64 = 0
    /// Calls whose length is known.
    var timed: UInt64 = 0
    var total: UInt64 = 0
    var selfTime: Int64 = 0
    var minimum: UInt64 = .max
    var maximum: UInt64 = 0
    /// Calls still running at the end, left without returning, ended in a gap of the trace, and returned here but begun on
    /// another thread.
    var open: UInt32 = 0
    var unwound: UInt32 = 0
    var cut: UInt32 = 0
    var migrated: UInt32 = 0
    /// Calls of which only a part lies in the window.
    var part: UInt32 = 0
    /// Functions of the path.
    var length: UInt32

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
        part &+= other.part
    }
}

extension PathNode {
    /// The row of calls whose paths are too many to be distinguished.
    static var elsewhere: UInt32 { .max }
    static let mostPaths = 1 << 21
}

/// A function's calls below a path, whatever their arguments are.
private struct PathKey: Hashable {
    var parent: UInt32
    var row: UInt32
}

struct PathSums<Detail: PathDetail>: ~Copyable {
    /// A parent lies before its children. 0 is no path's.
    private(set) var nodes = PlainArray<PathNode>()
    /// In the order in which they were met.
    private(set) var threads: [(thread: UInt32, root: UInt32)] = []
    private var rootOfThread: [UInt32: UInt32] = [:]
    private var root: UInt32 = 0
    /// Open addressing; 0 is an empty bucket. At most half full.
    private var buckets: PlainArray<UInt32>
    private var bucketBits: UInt64 = 12
    /// Paths are `longest` at most, what is longer is `elsewhere`, where there would be more than `mostPaths` while reading, or more than
    /// `keptPaths` in the end. So which are distinguished depends on the calls alone, and not on who has read which of them.
    private let mostPaths: Int, keptPaths: Int
    private var longest: UInt32 = .max
    private var longestOfAdded: UInt32 = .max
    private var apart = 0
    private var isFull = false
    /// New numbers of the paths after each shortening, indexed by the old number. A frame's tag holds how many there had been.
    private var shortenings: [[UInt32]] = []
    private var generation: UInt64 = 0
    /// Numbers here of the paths of the reading that was added last, indexed by their numbers there.
    private var paths: [UInt32] = []

    private var rows: RowNumbers
    private var isEntryOnly: PlainArray<Bool>
    private var standIns = CountedStandIns()
    /// Calls that are counted and not recorded, for which none stands, by the path of their thread.
    private var rest: [(root: UInt32, row: UInt32, calls: UInt64)] = []
    var migratedCalls = Migrations()

    /// Calls of dlopen are paths of their own for each file that they bring.
    let files: LoadedFiles
    /// Its row. 0: no file was brought.
    let loading: UInt32
    private var thread: UInt32 = 0

    /// nil without `Detail.hasArguments`.
    let texts: ArgumentTexts?
    private var arguments: RecordedValues?
    /// Rows of calls with arguments that go on in another part of their thread.
    private var goingOn: [UInt32: [FrameKey: UInt32]] = [:]

    /// Calls did not nest: the total of a path is its own time and what lies below it, since a call may have gone on below another path.
    private(set) var isInterleaved = false
    private(set) var coverage: CallCoverage
    private(set) var calls: UInt64 = 0
    private(set) var orphans: UInt64 = 0

    /// Bit in the number of a frame's path: it is elsewhere, within another call that is, so that its time does not count again.
    private static var isWithin: UInt32 { 1 << 31 }

    /// - Parameters:
    ///   - mostPaths: 80 bytes each, and 8 in the hash table; each of the longest may have one more, for what goes on from there
    ///   - texts: of this reading, which is one worker's, in the order of time
    init(
        _ table: FunctionNames, _ spans: ThreadSpans, _ files: LoadedFiles, texts: ArgumentTexts? = nil, mostPaths: Int,
        keptPaths: Int? = nil
    ) {
        self.files = files
        self.texts = texts
        loading = files.row(in: table)
        coverage = CallCoverage(spans)
        rows = RowNumbers(table)
        isEntryOnly = PlainArray(repeating: false, count: table.rowCount)
        for row in 1..<max(table.rowCount, 1) { isEntryOnly[row] = table.rows[row - 1].isEntryOnly }
        buckets = PlainArray(repeating: 0, count: 1 << 12)
        self.mostPaths = mostPaths
        self.keptPaths = keptPaths ?? mostPaths * 3 / 4
        nodes.append(PathNode(parent: 0, row: 0, length: 0))
    }

    var unknownFunctions: [UInt32] { rows.unknownFunctions }

    // MARK: paths

    @inline(__always) private func bucket(_ parent: UInt32, _ row: UInt32) -> Int {
        // Fibonacci hashing: the upper bits of a product with 2^64 divided by the golden ratio.
        Int(((UInt64(parent) &<< 32 | UInt64(row)) &* 0x9e37_79b9_7f4a_7c15) &>> (64 &- bucketBits))
    }

    @inline(__always) private mutating func child(_ parent: UInt32, _ row: UInt32) -> UInt32 {
        var bucket = bucket(parent, row)
        while true {
            let node = buckets[bucket]
            if node == 0 { break }
            if nodes[Int(node)].row == row, nodes[Int(node)].parent == parent { return node }
            bucket = (bucket &+ 1) & (buckets.count &- 1)
        }
        return newChild(parent, row)
    }

    @inline(never) private mutating func newChild(_ parent: UInt32, _ row: UInt32) -> UInt32 {
        if nodes[Int(parent)].row == PathNode.elsewhere { return parent }
        let length = nodes[Int(parent)].length &+ 1
        if row != PathNode.elsewhere {
            if length > longest { return child(parent, PathNode.elsewhere) }
            apart += 1
            if apart > mostPaths, longest > 1 { isFull = true } // a thread's outermost calls are distinguished in any case
        }
        if nodes.count * 2 >= buckets.count { grow() }
        let node = UInt32(nodes.count)
        nodes.append(PathNode(parent: parent, row: row, length: length))
        insert(node)
        return node
    }

    private mutating func insert(_ node: UInt32) {
        var bucket = bucket(nodes[Int(node)].parent, nodes[Int(node)].row)
        while buckets[bucket] != 0 { bucket = (bucket &+ 1) & (buckets.count &- 1) }
        buckets[bucket] = node
    }

    private mutating func grow() {
        bucketBits += 1
        fillBuckets()
    }
    private mutating func fillBuckets() {
        buckets = PlainArray(repeating: 0, count: 1 << Int(bucketBits))
        for node in 1..<nodes.count where nodes[node].parent != 0 { insert(UInt32(node)) }
    }

    private mutating func rootNode(_ thread: UInt32) -> UInt32 {
        if let root = rootOfThread[thread] { return root }
        let root = UInt32(nodes.count)
        nodes.append(PathNode(parent: 0, row: 0, length: 0))
        threads.append((thread, root))
        rootOfThread[thread] = root
        return root
    }

    /// The path of a frame, the thread's own when there is none.
    @inline(__always) private func path(_ frame: Frame) -> UInt32 { number(frame) & ~Self.isWithin }

    /// The same, and whether it is within another call elsewhere.
    @inline(__always) private func number(_ frame: Frame) -> UInt32 {
        if frame.tag == 0 { return root }
        return _fastPath(frame.tag &>> 32 == generation) ? UInt32(truncatingIfNeeded: frame.tag) : shortened(frame.tag)
    }

    @inline(never) private func shortened(_ tag: UInt64) -> UInt32 {
        shortenings[Int(tag &>> 32)...].reduce(UInt32(truncatingIfNeeded: tag)) { number, numbers in
            numbers[Int(number & ~Self.isWithin)] | number & Self.isWithin
        }
    }

    // MARK: too many paths

    /// Precondition: nobody holds the number of a path but in a tag.
    @inline(never) private mutating func shorten() {
        isFull = false
        var counts = [0]
        for index in 1..<nodes.count where nodes[index].parent != 0 && nodes[index].row != PathNode.elsewhere {
            let length = Int(nodes[index].length)
            if length >= counts.count { counts += Array(repeating: 0, count: length + 1 - counts.count) }
            counts[length] += 1
        }
        var length = 0, count = 0
        while length + 1 < counts.count, count + counts[length + 1] <= keptPaths {
            length += 1
            count += counts[length]
        }
        let isWhole = length + 1 == counts.count
        let most = min(isWhole ? .max : UInt32(max(length, 1)), longestOfAdded)
        if most < longest { cut(to: most) }
    }

    private mutating func cut(to length: UInt32) {
        longest = length
        var kept = PlainArray<PathNode>(), numbers = [UInt32](repeating: 0, count: nodes.count)
        var others: [UInt32: UInt32] = [:] // node for what goes on from a path of that length, keyed by the path's number
        kept.append(nodes[0])
        apart = 0
        for index in 1..<nodes.count {
            var node = nodes[index]
            let parent = numbers[Int(node.parent)] & ~Self.isWithin
            if node.length <= length {
                numbers[index] = UInt32(kept.count)
                if node.parent != 0 { apart += 1 }
                node.parent = parent
                kept.append(node)
                continue
            }
            if node.length == length + 1 {
                if others[parent] == nil {
                    others[parent] = UInt32(kept.count)
                    kept.append(PathNode(parent: parent, row: PathNode.elsewhere, length: length + 1))
                }
                numbers[index] = others[parent]!
            } else {
                numbers[index] = parent | Self.isWithin
                node.total = 0 // its time is in that of a call which is there already
            }
            kept[Int(numbers[index] & ~Self.isWithin)].add(node)
        }
        nodes = kept
        for index in threads.indices { threads[index].root = numbers[Int(threads[index].root)] }
        for (thread, root) in threads { rootOfThread[thread] = root }
        root = numbers[Int(root)]
        fillBuckets()
        shortenings.append(numbers)
        generation += 1
    }

    /// When all readings are added up.
    mutating func finish() {
        if !rest.isEmpty { placeRest() }
        shorten()
    }

    /// Gives the calls for which none stands to that path of their thread on which most calls of the function are.
    private mutating func placeRest() {
        var roots = [UInt32](repeating: 0, count: nodes.count), counts: [PathKey: UInt64] = [:],
            best: [UInt64: (path: PathKey, calls: UInt64)] = [:]
        func key(_ root: UInt32, _ row: UInt32) -> UInt64 { UInt64(root) << 32 | UInt64(row) }
        let wanted = Set(rest.map { key($0.root, $0.row) })
        for index in 1..<nodes.count {
            let node = nodes[index]
            roots[index] = node.parent == 0 ? UInt32(index) : roots[Int(node.parent)]
            // Whatever their arguments are.
            let path = PathKey(parent: node.parent, row: functionRow(node.row)), place = key(roots[index], path.row)
            guard wanted.contains(place), node.parent != 0 else { continue }
            counts[path, default: 0] &+= node.calls
            if best[place].map({ $0.calls < counts[path]! }) ?? true { best[place] = (path, counts[path]!) }
        }
        for part in rest {
            let path = best[key(part.root, part.row)]?.path ?? PathKey(parent: part.root, row: part.row)
            let node = child(path.parent, path.row)
            nodes[Int(node)].calls &+= part.calls
        }
        rest = []
    }

    // MARK: times

    /// What a call has of the part of the thread that is being read. In each part it lies within what its caller has, and so do the totals.
    @inline(__always) private mutating func share(_ ticks: UInt64, _ node: UInt32, below parent: UInt32, isWithin: Bool) {
        nodes[Int(node)].selfTime &+= Int64(truncatingIfNeeded: ticks)
        nodes[Int(parent)].selfTime &-= Int64(truncatingIfNeeded: ticks)
        if _fastPath(!isWithin) { nodes[Int(node)].total &+= ticks }
    }

    /// A call of known length.
    @inline(__always) private mutating func time(_ duration: UInt64, _ node: UInt32) {
        nodes[Int(node)].timed &+= 1
        nodes[Int(node)].minimum = min(nodes[Int(node)].minimum, duration)
        nodes[Int(node)].maximum = max(nodes[Int(node)].maximum, duration)
    }

    @inline(never) private mutating func loadingRow(_ entered: UInt64) -> UInt32 {
        files.id(thread: thread, entered: entered).map { unknownRow($0) } ?? loading
    }

    /// The row of a call that begins or goes on: one for each text of its arguments, as far as these are recorded.
    @inline(never) private mutating func argumentRow(_ row: UInt32, going key: FrameKey? = nil) -> UInt32 {
        let values = arguments.take()
        if let key { return goingOn[thread]?[key] ?? row }
        guard let values, Int(row) < rows.knownCount, let id = texts?.id(row, values) else { return row }
        return unknownRow(id)
    }

    /// The row of the function whose calls a path has.
    private func functionRow(_ row: UInt32) -> UInt32 {
        guard Detail.hasArguments, row != PathNode.elsewhere, let id = rows.unknownFunction(row) else { return row }
        return texts?.entry(of: id)?.row ?? row
    }

    @inline(never) private mutating func unknownRow(_ function: UInt32) -> UInt32 {
        let row = rows.unknownRow(function)
        if Int(row) >= isEntryOnly.count { isEntryOnly.append(repeating: false, count: Int(row) + 1 - isEntryOnly.count) }
        return row
    }
}

extension PathSums: CallSink {
    static var wantsArguments: Bool { Detail.hasArguments }
    @inline(__always) mutating func nextArguments(_ values: RecordedValues?) { if Detail.hasArguments { arguments = values } }

    @inline(__always) mutating func row(of function: UInt32) -> UInt32 {
        let row = rows.known(function)
        return _fastPath(row != 0) ? row : unknownRow(function)
    }

    @inline(__always) mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if _slowPath(isFull) { shorten() }
        let below = path(parent)
        let row = frame.row == loading ? loadingRow(frame.enter) : frame.row
        let node = child(below, Detail.hasArguments ? argumentRow(row, going: isCall ? nil : frame.key) : row)
        frame.tag = generation &<< 32 | UInt64(_fastPath(node != below) ? node : node | Self.isWithin)
        guard isCall else { return }
        calls &+= 1
        nodes[Int(node)].calls &+= 1
        if _slowPath(frame.row == standIns.row) { stand(below, row) }
    }

    mutating func sampled(_ row: UInt32, _ calls: UInt64) { standIns.expect(row, calls) }
    mutating func takeStood() -> [UInt32: UInt64] { standIns.takeStood() }
    /// What calls that were only counted have passed is not known.
    @inline(never) private mutating func stand(_ parent: UInt32, _ row: UInt32) {
        let more = standIns.take(), node = child(parent, row)
        calls &+= more
        nodes[Int(node)].calls &+= more
    }
    mutating func counted(_ row: UInt32, _ calls: UInt64) {
        self.calls &+= calls
        rest.append((root, row, calls))
    }

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        coverage.add(frame.since, time, depth: depth)
        let number = number(frame), node = number & ~Self.isWithin
        share(time &- frame.since, node, below: path(parent), isWithin: number != node)
        if Detail.hasArguments {
            let row = nodes[Int(node)].row
            goingOn[thread, default: [:]][frame.key] = row == frame.row || row == PathNode.elsewhere ? nil : row
        }
    }

    @inline(__always) mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
        isOutermost: Bool, _ ending: Ending
    ) {
        let number = number(frame), node = number & ~Self.isWithin
        coverage.add(frame.since, time, depth: depth)
        if _slowPath(ending == .elsewhere) { isInterleaved = true }
        share(time > frame.since ? time &- frame.since : 0, node, below: path(parent), isWithin: number != node)
        if _fastPath(ending != .lost && ending != .part) { self.time(time > frame.began ? time &- frame.began : 0, node) }
        switch ending {
        case .returned: break
        case .unwound: nodes[Int(node)].unwound &+= 1
        case .lost: nodes[Int(node)].cut &+= 1
        case .open: nodes[Int(node)].open &+= 1
        case .part: nodes[Int(node)].part &+= 1
        case .elsewhere: break
        }
    }

    @inline(__always) mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int,
        parent: Frame, isOutermost: Bool
    ) {
        calls &+= 1
        let below = path(parent)
        let own = row == loading ? loadingRow(start) : row
        let node = child(below, Detail.hasArguments ? argumentRow(own) : own)
        nodes[Int(node)].calls &+= 1
        if _slowPath(row == standIns.row) { stand(below, own) }
        if _slowPath(isEntryOnly[Int(row)]) { return }
        coverage.add(start, end, depth: depth)
        share(end &- start, node, below: below, isWithin: node == below)
        time(end &- start, node)
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
        let node = child(root, row)
        nodes[Int(node)].migrated &+= 1 // its length is in the path where it began
    }

    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        moveSelf(overlap.length, from: path(frame), to: path(parent))
        coverage.remove(overlap, depth: depth)
        isInterleaved = true
    }

    private mutating func moveSelf(_ ticks: UInt64, from one: UInt32, to other: UInt32) {
        nodes[Int(one)].selfTime &-= Int64(truncatingIfNeeded: ticks)
        nodes[Int(other)].selfTime &+= Int64(truncatingIfNeeded: ticks)
    }

    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        nodes[Int(path(frame))].selfTime &-= Int64(truncatingIfNeeded: end &- begin)
    }
}

/// What a reading found of the states of paths and threads, in ticks.
struct SplitPaths {
    /// The time that nodes are to show: so are the lengths of single calls.
    var time: CallTime
    /// Indexed by the number of the path.
    var times: [SplitTimes]
    var lengths: [(minimum: UInt64, maximum: UInt64)]
    /// Own code, by thread.
    var own: [UInt32: OffCPUTicks]
}

extension SplitSums where Base: ~Copyable {
    /// - Parameter spans: when all is read
    func pathTimes<Detail>(_ time: CallTime, of trace: TraceFile, _ spans: ThreadSpans) -> SplitPaths where Base == PathSums<Detail> {
        func times(_ value: (PathNode) -> Int64, _ node: Int) -> StateTimes {
            let whole = value(wall.nodes[node]), waited = value(waiting.nodes[node])
            return StateTimes(whole: whole, waiting: waited, runnable: whole &- waited &- value(running.nodes[node]))
        }
        let nodes = 0..<wall.nodes.count
        var own: [UInt32: OffCPUTicks] = [:]
        for (thread, _) in wall.threads {
            if let span = spans[thread] { own[thread] = ownOffCPU(thread, span, in: trace.window) }
        }
        return SplitPaths(
            time: time,
            times: nodes.map { node in
                SplitTimes(selfTime: times(\.selfTime, node), total: times({ Int64(truncatingIfNeeded: $0.total) }, node))
            },
            lengths: nodes.map { index in
                let node =
                    switch time {
                    case .wall: wall.nodes[index]
                    case .running: running.nodes[index]
                    case .waiting: waiting.nodes[index]
                    }
                return (node.minimum, node.maximum)
            }, own: own)
    }
}

extension PathSums: StreamSink {
    mutating func begin(thread: UInt32) {
        root = rootNode(thread)
        self.thread = thread
        arguments = nil
        coverage.begin(thread: thread)
    }

    mutating func add(_ other: borrowing PathSums) {
        coverage.add(other.coverage)
        calls &+= other.calls
        orphans &+= other.orphans
        isInterleaved = isInterleaved || other.isInterleaved
        longestOfAdded = min(longestOfAdded, longest, other.longest, other.longestOfAdded)
        longest = .max // until all are there
        paths = Array(repeating: 0, count: other.nodes.count)
        for (thread, theirRoot) in other.threads { paths[Int(theirRoot)] = rootNode(thread) }
        for index in 1..<other.nodes.count {
            let node = other.nodes[index]
            if node.parent != 0 {
                let row = node.row == PathNode.elsewhere ? node.row : translate(node.row, from: other)
                paths[index] = child(paths[Int(node.parent)], row)
            }
            nodes[Int(paths[index])].add(node)
        }
        addMigratedCalls(of: other)
    }

    mutating func translate(_ frame: Frame, from other: borrowing PathSums) -> Frame {
        var frame = frame
        frame.row = translate(frame.row, from: other)
        if frame.tag != 0 {
            let number = other.number(frame)
            frame.tag = generation &<< 32 | UInt64(paths[Int(number & ~Self.isWithin)] | number & Self.isWithin)
        }
        return frame
    }

    mutating func translate(_ row: UInt32, from other: borrowing PathSums) -> UInt32 {
        other.rows.unknownFunction(row).map { unknownRow($0) } ?? row
    }
}
