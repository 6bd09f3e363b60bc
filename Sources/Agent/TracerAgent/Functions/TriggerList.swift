// The user's list of functions whose long calls ask for a snapshot (Variables.triggers). A pattern is FUNCTION or MODULE!FUNCTION, as in NameFilter.
import CSupport

enum TriggerList {
    /// Variables.triggers; nil: there are none.
    nonisolated(unsafe) static var text: CText?

    /// Number of the first trigger that names the function, from 1 on; 0: none does. May be called where no thread is known.
    @inline(__always) static func number(function: CText, path: CText) -> UInt8 { text == nil ? 0 : find(function, baseName(path)) }
    @inline(never) private static func find(_ function: CText, _ module: CText) -> UInt8 {
        var found: UInt8 = 0
        _ = forEach { n, pattern, count, _ in
            var bang = 0
            while bang < count && pattern[bang] != 0x21 { bang &+= 1 }
            let isOne =
                bang == count
                ? Glob.matches(pattern, count, function)
                : Glob.matches(pattern, bang, module) && Glob.matches(pattern + (bang &+ 1), count &- bang &- 1, function)
            if isOne { found = UInt8(truncatingIfNeeded: n &+ 1) }
            return isOne
        }
        return found
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
