// How many calls a thread had begun at moments that are known before its events are read: where constructors and loads
// begin and end. Between any two of them it is known how many calls were recorded, and about what that cost.
import TraceFormat

struct CallMoments {
    /// Ascending, each once.
    private let moments: [UInt64]
    /// Calls that began from each moment to the next.
    private var after: [UInt64]
    /// Before each moment; made by `sum`.
    private var before: [UInt64] = []
    /// The moment after which the latest call began: the next one is there, too, nearly always.
    private var latest = 0
    /// All that were added.
    private(set) var count: UInt64 = 0

    init(_ moments: some Sequence<UInt64>) {
        self.moments = Set(moments).sorted()
        after = [UInt64](repeating: 0, count: self.moments.count)
    }

    mutating func add(at time: UInt64) {
        count &+= 1
        if !isAfter(latest, time) {
            guard let index = index(of: time) else { return }
            latest = index
        }
        after[latest] &+= 1
    }

    /// When all are added.
    mutating func sum() {
        before = [0]
        before.reserveCapacity(after.count + 1)
        for count in after { before.append(before.last! &+ count) }
    }

    /// Calls that began between two of the moments. Another one is taken for the last before it.
    func calls(from: Ticks, to: Ticks) -> UInt64 {
        let first = number(before: from), last = number(before: to)
        return last > first ? last &- first : 0
    }

    private func number(before time: Ticks) -> UInt64 { index(of: time.raw).map { before[$0] } ?? 0 }

    private func isAfter(_ index: Int, _ time: UInt64) -> Bool {
        index < moments.count && moments[index] <= time && (index + 1 == moments.count || time < moments[index + 1])
    }

    /// Index of the last moment that is not later.
    private func index(of time: UInt64) -> Int? {
        let next = bisect(moments.count) { moments[$0] <= time }
        return next == 0 ? nil : next - 1
    }
}
