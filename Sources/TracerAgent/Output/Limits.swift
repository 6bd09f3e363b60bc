// Limits of what the trace keeps, by the settings of the user.

enum Limits {
    /// Calls that took less are not kept.
    nonisolated(unsafe) static var minimumTicks: UInt64 = 0
    /// Levels of recorded calls; 0: no limit.
    nonisolated(unsafe) static var maximumDepth: UInt32 = 0
    /// Size limit of the file; 0: no limit.
    nonisolated(unsafe) static var fileBytes: UInt64 = 0
    nonisolated(unsafe) static var mode = Variables.mode.standard
    /// The last bytes are kept, not the first.
    static var isRing: Bool { mode == .ring }
}
