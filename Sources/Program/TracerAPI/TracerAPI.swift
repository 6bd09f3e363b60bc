// Marks and spans for Swift programs. A program that uses this runs anywhere: without the agent each call is one load and
// a branch (CSupport/include/tracer.h). All may be called from any thread.
import CTracerAPI

/// Calls by which a program informs the agent about itself. Without an agent they do nothing.
public enum Tracer {
    /// Records from here on, in all threads (with TRACER_START=off nothing is recorded before).
    @inlinable @inline(__always) public static func start() { tracer_api_start() }
    /// Records no new calls from here on.
    @inlinable @inline(__always) public static func stop() { tracer_api_stop() }
    /// The file says that it is complete up to now.
    @inlinable @inline(__always) public static func flush() { tracer_api_flush() }
    /// A point in time on this thread. `tracer startup` measures up to the mark "ready".
    @inlinable @inline(__always) public static func mark(_ name: StaticString) { tracer_api_mark(text(name)) }
    /// The program is ready: `tracer startup` measures up to here.
    @inlinable @inline(__always) public static func ready() { tracer_api_mark("ready") }
    /// A stretch of this thread's time begins. It should end in the function call in which it began, as ``withSpan(_:_:)`` sees to.
    @inlinable @inline(__always) public static func begin(_ name: StaticString) { tracer_api_begin(text(name)) }
    /// Ends the innermost open span of the name; without one nothing happens.
    @inlinable @inline(__always) public static func end(_ name: StaticString) { tracer_api_end(text(name)) }
    /// Wants a snapshot of the trace, as it is now: of the last seconds, where `tracer record --keep` records the program. The name says
    /// why, and stands in the trace as a mark.
    @inlinable @inline(__always) public static func snapshot(_ name: StaticString) { tracer_api_snapshot(text(name)) }
    /// What can be changed while the program is recorded.
    public enum Setting: Sendable {
        /// Calls that take less are not kept; 0: all are.
        case minimum(nanoseconds: UInt64)
        /// Levels of calls that are recorded, 1 or more.
        case depth(UInt32)
    }
    /// Changes a setting from here on, in all threads; each takes note of a depth within a millisecond of calls.
    /// - Returns: false if it cannot be changed: the program is not recorded, or `--min-ms` or `--max-depth`, respectively, was not given at the
    ///   start.
    @discardableResult
    @inlinable @inline(__always) public static func set(_ setting: Setting) -> Bool {
        switch setting {
        case .minimum(let nanoseconds): tracer_api_set(TRACER_MINIMUM, nanoseconds) != 0
        case .depth(let levels): tracer_api_set(TRACER_DEPTH, UInt64(levels)) != 0
        }
    }

    /// Literals end in a NUL.
    @inlinable @inline(__always) static func text(_ name: StaticString) -> UnsafePointer<CChar>? {
        name.hasPointerRepresentation ? UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self) : nil
    }
}

/// `body` is shown like a call of this name. It is not async: a span belongs to one thread.
@inlinable @inline(__always)
public func withSpan<Result, Failure: Error>(_ name: StaticString, _ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    Tracer.begin(name)
    defer { Tracer.end(name) }
    return try body()
}
