// To which addresses the agent's labels return (docs/internals/trampoline.md, "Labels"), read in the process while it lives. An address
// has its label for the life of the process, unless its code is unmapped.
import Glibc

package final class ReturnLabels {
    private let pid: pid_t
    private var memory: ProcessMemory?
    private var known: [UInt64: UInt64] = [:]
    /// Most addresses kept: with more labels in use the agent may have reused some.
    private static let most = 1 << 16

    package init(pid: pid_t) { self.pid = pid }

    /// A forked child has its parent's.
    init(pid: pid_t, of parent: ReturnLabels) {
        self.pid = pid
        known = parent.known
    }

    /// - Parameter word: where in memory it stands
    /// - Returns: nil when it was not asked in time
    func address(at word: UInt64) -> UInt64? {
        if let known = known[word] { return known }
        open()
        guard let address = memory?.word(word), address != 0 else { return nil }
        if known.count < Self.most { known[word] = address }
        return address
    }

    /// The agent is there.
    func open() { if memory == nil { memory = ProcessMemory(pid: pid) } }

    func forget() { known.removeAll(keepingCapacity: true) }
}
