// Locks are taken and released millions of times while nobody waits for them. Of such a pair of calls only the moment is kept: LockHistory
// needs it to know when an earlier hold has ended at the latest.
import TraceFormat

struct LockPairs: Sendable {
    /// A moment at which a thread had taken the lock.
    struct Taking: BitwiseCopyable, Sendable {
        var at: UInt64
        var thread: UInt32
    }
    private enum State {
        /// It is not known what the thread did with the lock before: in a part of the trace that another worker reads.
        case unknown
        /// Its last call on the lock took it for certain, or released it.
        case settled
        /// Its last call may have taken the lock, which the next one shows.
        case open
        /// Its last call took the lock, and is held back here.
        case taken(ThreadCall)
    }
    private struct Lock {
        /// When threads waited for it: in order, none touches another.
        var waits: [Range<UInt64>]
        /// First of `waits` that ends at or after the last moment that was asked for.
        var next = 0
        /// Number of the part that `state` is of.
        var part = 0
        var state = State.unknown
        /// Number of the part in which it came to be in `taken`.
        var listed = 0
        var takings: [Taking] = []

        /// True if somebody waited for it between these moments, both included.
        mutating func isAwaited(_ from: UInt64, _ to: UInt64) -> Bool {
            // Moments of a part are asked for in their order; another part may be earlier.
            if next > 0, waits[next - 1].upperBound >= from { next = bisect(waits.count) { waits[$0].upperBound < from } }
            while next < waits.count, waits[next].upperBound < from { next += 1 }
            return next < waits.count && waits[next].lowerBound <= to
        }
    }

    private let functions: [WaitingFunction?]
    private var locks: [Lock] = []
    private var numbers: [UInt64: Int] = [:]
    /// Locks that had a call held back in this part.
    private var taken: [Int] = []
    private var part = 1

    /// - Parameters:
    ///   - waits: by object, when threads waited for it, in any order
    ///   - functions: by row
    init(_ waits: [UInt64: [Range<UInt64>]], _ functions: [WaitingFunction?]) {
        self.functions = functions
        for (object, waits) in waits {
            numbers[object] = locks.count
            let merged = waits.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: [Range<UInt64>]()) { merged, one in
                if let last = merged.last, one.lowerBound <= last.upperBound {
                    merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, one.upperBound)
                } else {
                    merged.append(one)
                }
            }
            locks.append(Lock(waits: merged))
        }
    }

    func has(_ object: UInt64) -> Bool { numbers[object] != nil }

    /// Moments of pairs that were dropped, by object, in no order.
    var takings: [UInt64: [Taking]] { numbers.compactMapValues { locks[$0].takings.isEmpty ? nil : locks[$0].takings } }

    /// The calls of another part follow: `found` gets those that are held back.
    mutating func endPart(_ found: inout [ThreadCall]) {
        found += held
        taken = []
        part += 1
    }

    /// Calls that are held back.
    var held: [ThreadCall] {
        taken.compactMap { if locks[$0].part == part, case .taken(let call) = locks[$0].state { call } else { nil } }
    }

    /// Appends a call to `found`, unless it is of a pair that nobody needs. Calls of a thread come in the order of time.
    mutating func add(_ call: ThreadCall, to found: inout [ThreadCall]) {
        guard let number = numbers[call.call.argument], let function = functions[Int(call.call.row)] else { return found.append(call) }
        if locks[number].part != part { (locks[number].part, locks[number].state) = (part, .unknown) }
        let before = locks[number].state
        if function.act == .releases, call.isOver, case .taken(let taking) = before {
            locks[number].state = .settled
            if !locks[number].isAwaited(taking.call.enter, call.end) {
                return locks[number].takings.append(Taking(at: taking.end, thread: call.thread))
            }
            found.append(taking)
            return found.append(call)
        }
        if case .taken(let taking) = before { found.append(taking) }
        switch function.act {
        case .acquires where !function.isShared && call.isOver:
            if case .settled = before {
                locks[number].state = .taken(call)
                if locks[number].listed != part {
                    locks[number].listed = part
                    taken.append(number)
                }
                return
            }
            locks[number].state = .settled
        case .acquires, .releases: locks[number].state = .settled
        default: locks[number].state = .open
        }
        found.append(call)
    }

    mutating func add(_ other: LockPairs) {
        for number in locks.indices { locks[number].takings += other.locks[number].takings }
    }
}

extension [LockPairs.Taking] {
    /// In the order of time, each with the index of the next one of another thread.
    func chained() -> [(taking: LockPairs.Taking, nextOfOther: Int)] {
        let sorted = sorted { $0.at < $1.at }
        var result = sorted.map { (taking: $0, nextOfOther: sorted.count) }
        for index in sorted.indices.dropLast().reversed() {
            result[index].nextOfOther = sorted[index + 1].thread != sorted[index].thread ? index + 1 : result[index + 1].nextOfOther
        }
        return result
    }
}
