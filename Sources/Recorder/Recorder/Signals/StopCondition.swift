/// Ends the program when something has happened: SIGTERM, and SIGKILL when that does not help.
package struct StopCondition {
    /// Asked now and then, with the path of the program's trace.
    package var isReached: (String) -> Bool
    /// From SIGTERM to SIGKILL.
    package var graceNanoseconds: UInt64

    package init(graceNanoseconds: UInt64 = 2_000_000_000, isReached: @escaping (String) -> Bool) {
        self.isReached = isReached
        self.graceNanoseconds = graceNanoseconds
    }
}
