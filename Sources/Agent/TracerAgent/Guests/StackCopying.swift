// A program may copy a part of its stack away, run something else in its place, and copy it back (greenlet, and with it gevent;
// stacklets; continuations of language runtimes). Then a frame below the stack pointer returns, although it seemed to have been left for
// good. Its label has the return address; only its event has ended, as unwound. The first such return shows that the thread copies its
// stack: from then on its frames are handled like those of an alternate stack, each with a record of its own until it returns, which is
// right in any order, and slower.
import CSupport

/// Modules that are known to do this: once one is loaded, the frames of all threads are handled so.
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
