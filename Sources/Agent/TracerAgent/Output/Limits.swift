// Limits of what the trace keeps, by the settings of the user.

enum Limits {
    /// Calls that took less are not kept; 0: all are.
    nonisolated(unsafe) static var minimumTicks: UInt64 = 0
    /// Short calls are filtered, so an enter is held back until the call is long enough.
    static var hasTimeFilter: Bool { minimumTicks > 0 }
    /// Levels of recorded calls; 0: no limit.
    nonisolated(unsafe) static var maximumDepth: UInt32 = 0
    /// Size limit of the file; 0: no limit.
    nonisolated(unsafe) static var fileBytes: UInt64 = 0
    /// A ring keeps what is younger, as far as `fileBytes` allow; 0: the last `fileBytes`.
    nonisolated(unsafe) static var keptTicks: UInt64 = 0
    /// Nanoseconds that are kept beyond what the user asks for: until a snapshot has been copied.
    static var keptBeyond: UInt64 { 1_000_000_000 }
    nonisolated(unsafe) static var mode = Variables.mode.standard
    /// The last bytes are kept, not the first.
    static var isRing: Bool { mode == .ring }
}
