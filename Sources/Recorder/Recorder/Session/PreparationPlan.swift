// How far ahead of the program the file is prepared. Arithmetic only: the plan is given what is used and answers what
// to prepare next and when to look again.

package struct PreparationPlan {
    /// Prepared at once at the beginning, and kept by a program that makes few calls.
    package static let smallestLead: UInt64 = 2 << 20
    /// A fifth of a second at the fastest a thread can record.
    package static let largestLead: UInt64 = 64 << 20
    /// Prepared in one go, then published: the program has the benefit of the first part while the rest is on its way.
    package static let step: UInt64 = 1 << 20
    package static let busyNanoseconds: UInt64 = 1_000_000
    package static let idleNanoseconds: UInt64 = 100_000_000

    package private(set) var lead = smallestLead
    package private(set) var interval = busyNanoseconds
    package private(set) var prepared: UInt64
    /// 0 none.
    let sizeLimit: UInt64
    private var lastUsed: UInt64

    /// `used` is where the next chunk of the program goes, `prepared` how far the file is prepared already.
    package init(used: UInt64, prepared: UInt64, sizeLimit: UInt64) {
        self.prepared = max(used, prepared).roundedUp(to: PreparationPlan.pageBytes)
        self.sizeLimit = sizeLimit
        lastUsed = used
    }

    static let pageBytes: UInt64 = 4096

    /// To be called at each look. The range to prepare now, nil when there is enough; ask again after each range.
    package mutating func nextRange(used: UInt64, freeBytes: () -> UInt64) -> Range<UInt64>? {
        if used != lastUsed {
            // More than half of the lead went in one interval: the program is faster than we look.
            if used > lastUsed, used - lastUsed > lead / 2 || used >= prepared {
                lead = min(lead * 2, PreparationPlan.largestLead)
            }
            lastUsed = used
            interval = PreparationPlan.busyNanoseconds
        }
        // The program has allocated itself what it has passed: preparation fell behind.
        prepared = max(prepared, used.roundedUp(to: PreparationPlan.pageBytes))
        var goal = used.roundedUp(to: PreparationPlan.pageBytes) + lead
        // Begin only when a quarter is missing, so that a slow program does not have a page prepared at each look.
        var least = min(lead / 4, PreparationPlan.step)
        if sizeLimit > 0, goal > sizeLimit {
            goal = sizeLimit / PreparationPlan.pageBytes * PreparationPlan.pageBytes
            least = 1
        }
        guard goal > prepared, goal - prepared >= least || isCatchingUp else {
            isCatchingUp = false
            return nil
        }
        // The disk is the program's, too: never more than an eighth of what is free at once.
        let affordable = freeBytes() / 8 / PreparationPlan.pageBytes * PreparationPlan.pageBytes
        let outstanding = prepared - min(used, prepared)
        guard affordable > outstanding else {
            isCatchingUp = false
            return nil
        }
        isCatchingUp = true
        return prepared..<prepared + min(goal - prepared, PreparationPlan.step, affordable - outstanding)
    }

    private var isCatchingUp = false

    package mutating func didPrepare(upTo end: UInt64) { prepared = max(prepared, end) }

    /// To be called when a look found nothing to do: looks become rarer while the program records nothing.
    package mutating func rest() { interval = min(interval * 2, PreparationPlan.idleNanoseconds) }
}

extension UInt64 {
    func roundedUp(to alignment: UInt64) -> UInt64 { (self + alignment - 1) / alignment * alignment }
}
