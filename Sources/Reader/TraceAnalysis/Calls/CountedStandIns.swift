// Recorded calls that stand for others of their function, which the agent has counted and not recorded: which they are, and for how many.

struct CountedStandIns {
    /// The row of the next call that stands for others, 0 none, and for how many.
    private(set) var row: UInt32 = 0
    private var calls: UInt64 = 0
    /// Calls for which those stand that came, by row, since `takeStood`.
    private var stood: [UInt32: UInt64] = [:]

    /// Another one before it has come, of a signal handler, takes its place: then nobody stands for the first one's calls.
    mutating func expect(_ row: UInt32, _ calls: UInt64) { (self.row, self.calls) = (row, calls) }

    /// Returns for how many calls the one stands that has come. Precondition: it is of `row`.
    mutating func take() -> UInt64 {
        stood[row, default: 0] &+= calls
        row = 0
        return calls
    }

    mutating func takeStood() -> [UInt32: UInt64] {
        row = 0
        defer { stood = [:] }
        return stood
    }
}
