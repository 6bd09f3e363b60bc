// A program may copy a part of its stack away, run something else in its place, and copy it back (greenlet, and with it gevent;
// stacklets; continuations of language runtimes). Then a frame that lies below the stack pointer, and for all that anyone can
// see was left for good, returns after all. Where it returns to is in its label; only its event has ended, as unwound. The
// first such return says what this thread is doing: from then on its frames are treated like those of an unknown stack, each
// with a record apart until it returns itself, which is right in any order, and slower.
import CSupport

/// Modules that are known to do this: every thread is treated so from the moment that one is there, which it asks before it takes
/// a frame for dead.
enum StackCopying {
    nonisolated(unsafe) private(set) static var isExpected = false
    private static let prefixes: InlineArray<_, StaticString> = [
        "_greenlet." // Python's greenlet, under gevent and eventlet
    ]

    static func note(module path: CText) {
        let name = baseName(path)
        for n in 0..<prefixes.count where rest(of: name, after: prefixes[n]) != nil {
            isExpected = true
        }
    }
}
