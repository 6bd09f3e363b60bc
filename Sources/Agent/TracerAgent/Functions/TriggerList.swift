// The user's list of functions whose long calls ask for a snapshot (Variables.triggers). A pattern is FUNCTION or MODULE!FUNCTION, as in NameFilter.
import CSupport

enum TriggerList {
    /// Variables.triggers; nil: there are none.
    nonisolated(unsafe) static var text: CText?

    /// Number of the first trigger that names the function, from 1 on; 0: none does. May be called where no thread is known.
    @inline(__always) static func number(function: CText, path: CText) -> UInt8 { text == nil ? 0 : find(function, baseName(path)) }
    @inline(never) private static func find(_ function: CText, _ module: CText) -> UInt8 {
        let event = Event(toldBy: function)
        var found: UInt8 = 0
        _ = forEach { n, pattern, count, _ in
            var bang = 0
            while bang < count && pattern[bang] != 0x21 { bang &+= 1 }
            let isNamed =
                bang == count
                ? Glob.matches(pattern, count, function)
                : Glob.matches(pattern, bang, module) && Glob.matches(pattern + (bang &+ 1), count &- bang &- 1, function)
            let isOne = isNamed || event != .call && event == Event(pattern: pattern)
            if isOne { found = UInt8(truncatingIfNeeded: n &+ 1) }
            return isOne
        }
        return found
    }
    /// What a trigger is about.
    enum Event: UInt32 {
        case call = 0 // how long the function's calls take
        case stall = 0x100 // TRACE_REQUEST_STALL
        case exception = 0x200 // TRACE_REQUEST_EXCEPTION

        /// The event that calls of the function tell of.
        fileprivate init(toldBy function: CText) {
            func isOne(_ name: StaticString) -> Bool { equal(function, literal: name) }
            // poll(2), select(2), epoll_wait(2); with _FORTIFY_SOURCE libc's debug/poll_chk.c. `tracer stalls` knows others, too (LoopFunction.swift).
            if isOne("poll") || isOne("ppoll") || isOne("__poll_chk") || isOne("__ppoll_chk") || isOne("select") || isOne("pselect")
                || isOne("epoll_wait") || isOne("epoll_pwait") || isOne("epoll_pwait2")
            {
                self = .stall
            } else {
                self = isOne("_Unwind_RaiseException") ? .exception : .call
            }
        }
        init(pattern: CText) {
            func isOne(_ name: StaticString) -> Bool { rest(of: pattern, after: name).map { $0[0] == 0x3e } ?? false } // '>'
            self = isOne(Variables.Triggers.stall) ? .stall : isOne(Variables.Triggers.exception) ? .exception : .call
        }
    }

    /// True when `test` is of one: its index, its glob and the bytes of that, its time. As Variables.Triggers has checked them.
    static func forEach(_ test: (Int, CText, Int, UInt64) -> Bool) -> Bool {
        guard var text else { return false }
        for n in 0..<Variables.Triggers.most {
            guard let (count, nanoseconds, next) = Variables.Triggers.first(text) else { return false }
            if test(n, text, count, nanoseconds) { return true }
            if text[next] == 0 { return false }
            text += next &+ 1
        }
        return false
    }
}
