// The event loops of a thread, found by its waits: which waits are a loop's own, and so which turns it made.
import TraceFormat

package struct LoopTurn: Sendable, Equatable {
    /// What a turn ended with.
    package enum End: String, CaseIterable, Sendable {
        /// The loop's next wait.
        case wait
        /// The loop was left: the function that had its waits returned, or its thread ended.
        case left
        /// `exit`, `execve` or similar.
        case exit
        /// Nothing: the process, or what is recorded of it, ended first.
        case open
    }

    /// Index of the thread in the trace.
    package var thread: UInt32
    /// Ticks from the return of a wait to what the turn ended with.
    package var begin: UInt64
    package var end: UInt64
    package var ended: End
}

struct EventLoops: Sendable {
    /// In the order of time.
    private(set) var turns: [LoopTurn] = []
    /// Waits of the loops.
    private(set) var waits = 0
    /// Rows of the functions in which they wait.
    private(set) var rows: Set<UInt32> = []
    /// Turns that are not in `turns`: what happened in a part of them is not known.
    private(set) var lost = 0

    /// A thread that waits at a place so often comes back there (IdleWaits.swift has the same rule).
    static let leastReturns = 3

    /// Numbers of loops by place; nil: its waits are a part of a turn.
    private var loopOfPlace: [Int?] = []
    /// Loops that are one with another, by number.
    private var others: [Int] = []
    private var countOfLoop: [Int] = []

    /// - Parameters:
    ///   - thread: its index in the trace
    ///   - end: of the thread, and how it left calls open then
    ///   - returned: when main returned, if it is the main thread, and did
    ///   - holes: moments at which chunks go on after missing ones
    init(_ found: ThreadWaits, thread: UInt32, end: CallEnds.End, returned: UInt64?, holes: [UInt64]) {
        findLoops(found)
        let unknown = TimeWindow(found.gaps + holes.lazy.filter { $0 > 0 }.map { $0 - 1..<$0 })
        var latest: (wait: LoopWait, loop: Int)?
        var before: LoopWait?
        func add(_ turn: LoopTurn, to loops: inout EventLoops) {
            if !unknown.isEmpty, unknown.length(from: turn.begin, to: turn.end) > 0 {
                loops.lost += 1
            } else {
                loops.turns.append(turn)
            }
        }
        let loopOfPlace = loopOfPlace.map { loop in loop.map { root($0) }.flatMap { countOfLoop[$0] >= Self.leastReturns ? $0 : nil } }
        for (place, loop) in loopOfPlace.enumerated() where loop != nil { rows.insert(found.places[place].row) }
        turns.reserveCapacity(found.waits.count)
        for wait in found.waits {
            guard let loop = loopOfPlace[Int(wait.place)] else { continue }
            waits += 1
            if let latest, latest.loop == loop {
                if latest.wait.how == .returned {
                    add(LoopTurn(thread: thread, begin: latest.wait.end, end: wait.begin, ended: .wait), to: &self)
                } else {
                    lost += 1
                }
            }
            before = latest?.loop == loop ? latest?.wait : nil
            latest = (wait, loop)
        }
        guard let (wait, _) = latest, wait.how == .returned, let before else { return }
        var turn = LoopTurn(thread: thread, begin: wait.end, end: max(end.time, wait.end), ended: end.how == .unwound ? .left : .open)
        if let returned, returned >= wait.end, returned < turn.end { (turn.end, turn.ended) = (returned, .left) }
        // The loop has been left with the innermost call that has two waits of it, or by a call without return.
        let leaves = found.leaves.lazy.filter { $0.isEnd ? $0.enter >= wait.end : $0.enter <= before.begin && $0.at >= wait.end }
        if let leave = leaves.min(by: { $0.at < $1.at }), leave.at <= turn.end {
            (turn.end, turn.ended) = (leave.at, leave.isEnd ? .exit : .left)
        }
        if turn.begin < turn.end { add(turn, to: &self) }
    }

    private func root(_ loop: Int) -> Int {
        var loop = loop
        while others[loop] != loop { loop = others[loop] }
        return loop
    }

    private mutating func join(_ one: Int, _ other: Int) {
        let (one, other) = (root(one), root(other))
        if one == other { return }
        others[max(one, other)] = min(one, other)
        countOfLoop[min(one, other)] += countOfLoop[max(one, other)]
    }

    /// From the outermost places to the innermost: a place is a loop's unless it lies in the turns of one further out, or beside it.
    private mutating func findLoops(_ found: ThreadWaits) {
        var waitsOf = [[Int]](repeating: [], count: found.places.count)
        for (index, wait) in found.waits.enumerated() { waitsOf[Int(wait.place)].append(index) }
        loopOfPlace = [Int?](repeating: nil, count: found.places.count)
        var outer: [Int] = [] // indices of the waits of loops further out, in order
        for (_, places) in Dictionary(grouping: found.places.indices, by: { found.places[$0].depth }).sorted(by: { $0.key < $1.key }) {
            var peers: [Int] = []
            for place in places.sorted(by: { (waitsOf[$1].count, waitsOf[$0][0]) < (waitsOf[$0].count, waitsOf[$1][0]) }) {
                let own = waitsOf[place]
                if let around = around(own, outer, found) ?? peers.first(where: { Self.isInFewTurns(own, of: waitsOf[$0]) }) {
                    // A nested wait that is the loop's own, or that of a loop which a callback runs, ends a turn as others do.
                    if isOfLoop(place, around, found) { add(place, own.count, to: loopOfPlace[around]) }
                    continue
                }
                add(place, own.count, to: nil)
                for peer in peers where Self.takeTurns(own, waitsOf[peer]) { join(loopOfPlace[place]!, loopOfPlace[peer]!) }
                peers.append(place)
            }
            let isNew = places.filter { loopOfPlace[$0] != nil }
            let all = isNew.count == 1 ? waitsOf[isNew.first!] : isNew.flatMap { waitsOf[$0] }.sorted()
            outer = outer.isEmpty ? all : Self.merged(outer, all)
        }
    }

    /// Any of the waits lies between two of the others: all by their indices.
    private static func isAny(of waits: [Int], within others: [Int]) -> Bool {
        let next = bisect(waits.count) { waits[$0] <= others[0] }
        return next < waits.count && waits[next] < others[others.count - 1]
    }

    /// The waits of two places come in turns: it is one loop that waits at both.
    private static func takeTurns(_ one: [Int], _ other: [Int]) -> Bool { isAny(of: one, within: other) && isAny(of: other, within: one) }

    /// A loop beside these waits, further out by no call, made them in a few of its turns.
    private static func isInFewTurns(_ waits: [Int], of loop: [Int]) -> Bool {
        loop.count > 2 * waits.count && loop[0] < waits[0] && waits[waits.count - 1] < loop[loop.count - 1]
    }

    private mutating func add(_ place: Int, _ count: Int, to loop: Int?) {
        if let loop {
            countOfLoop[root(loop)] += count
            loopOfPlace[place] = loop
        } else {
            loopOfPlace[place] = others.count
            others.append(others.count)
            countOfLoop.append(count)
        }
    }

    /// The place of a loop further out in whose turns these waits lie; nil: there is none.
    private func around(_ waits: [Int], _ outer: [Int], _ found: ThreadWaits) -> Int? {
        let next = bisect(outer.count) { outer[$0] < waits[0] }
        func place(_ index: Int) -> Int { Int(found.waits[outer[index]].place) }
        if next < outer.count, outer[next] < waits[waits.count - 1] { return place(next) }
        // All of them lie in one turn. Where they are more than the waits around them, those are of the program's start and its end.
        guard next > 0, next < outer.count, let before = loopOfPlace[place(next - 1)], let after = loopOfPlace[place(next)],
            root(before) == root(after), countOfLoop[root(before)] >= waits.count
        else { return nil }
        return place(next)
    }

    private func isOfLoop(_ place: Int, _ outer: Int, _ found: ThreadWaits) -> Bool {
        let one = found.places[place], other = found.places[outer]
        if one.loops > other.loops { return true }
        if one.object != noArgument, other.object != noArgument { return one.object == other.object }
        return one.row == other.row && one.caller == other.caller && one.caller != 0
    }

    private static func merged(_ one: [Int], _ other: [Int]) -> [Int] {
        var all: [Int] = [], index = 0
        all.reserveCapacity(one.count + other.count)
        for element in one {
            while index < other.count, other[index] < element {
                all.append(other[index])
                index += 1
            }
            all.append(element)
        }
        return all + other[index...]
    }
}
