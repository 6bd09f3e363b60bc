// Every environment variable of the agent: name, unit, default, and what a wrong value gets. `tracer record` has an
// option for each. Values are copied: a program may overwrite its environment (setproctitle), and a forked child
// reads them again.
import CSupport

struct Settings {
    /// TRACER_OUT: file name template. %p process id, %e program, %% a percent sign.
    var output: CText?
    /// TRACER_MAXDEPTH: levels of recorded calls; 0 = no limit.
    var maximumDepth: UInt32 = 0
    /// TRACER_MINMS: decimal milliseconds; calls that took less are not kept.
    var minimumNanoseconds: UInt64 = 0
    /// TRACER_INCLUDE, TRACER_EXCLUDE: globs separated by ':', each FUNCTION, MODULE or MODULE!FUNCTION.
    var include: CText?
    var exclude: CText?
    /// TRACER_MAXSIZE: bytes, with K, M or G; 0 = no limit.
    var sizeLimit: UInt64 = 0
    /// TRACER_MODE: full, or ring = keep the last TRACER_MAXSIZE bytes.
    var ring = false
    /// TRACER_CHILDREN: 1, or 0 = only the first process.
    var children = true
    /// TRACER_START: on, or off until tracer_start().
    var startsOn = true
    /// TRACER_QUIET: 1 = say nothing on standard error.
    var quiet = false
    /// TRACER_CLOCK: monotonic forces the fallback clock; auto.
    var forcesMonotonic = false
    /// TRACER_SESSION: set by `tracer record`: 16 hex digits, '-', the recorder's process id.
    var session: UInt64 = 0
    var recorder: UInt64 = 0

    /// TRACER_READY: globs of functions, like TRACER_INCLUDE; the first call of one says that the program is ready.
    var ready: CText?
    /// TRACER_EXEC: set by `tracer` in the child, just before it calls execve: CLOCK_MONOTONIC in nanoseconds, '-', process id.
    var execTime: UInt64?

    static let ringDefault: UInt64 = 64 << 20

    /// `environment` is main's third argument. Complaints come once the file is open, so they are returned.
    mutating func read(_ environment: UnsafeMutablePointer<CText?>, into store: inout TextBuffer) -> Complaints {
        var complaints = Complaints()
        var index = 0
        while let entry = environment[index] {
            index &+= 1
            guard let variable = rest(of: entry, after: "TRACER_"), let value = Settings.value(of: variable) else {
                continue
            }
            if rest(of: variable, after: "OUT=") != nil {
                if value[0] != 0 { output = Settings.keep(value, &store) }
            } else if rest(of: variable, after: "MAXDEPTH=") != nil {
                if let n = Settings.decimal(value), n <= 1_000_000 { maximumDepth = UInt32(n) }
                else { complaints.add("TRACER_MAXDEPTH", value, "a whole number of levels up to 1000000, 0 = no limit") }
            } else if rest(of: variable, after: "MINMS=") != nil {
                if let n = Settings.milliseconds(value) { minimumNanoseconds = n }
                else { complaints.add("TRACER_MINMS", value, "milliseconds such as 0.5") }
            } else if rest(of: variable, after: "INCLUDE=") != nil {
                if value[0] != 0 { include = Settings.keep(value, &store) }
            } else if rest(of: variable, after: "EXCLUDE=") != nil {
                if value[0] != 0 { exclude = Settings.keep(value, &store) }
            } else if rest(of: variable, after: "MAXSIZE=") != nil {
                if let n = Settings.size(value), n == 0 || n >= 65536 { sizeLimit = n }
                else { complaints.add("TRACER_MAXSIZE", value, "bytes such as 500M or 2G, at least 64K, 0 = no limit") }
            } else if rest(of: variable, after: "MODE=") != nil {
                if equal(value, literal: "ring") { ring = true }
                else if !equal(value, literal: "full") { complaints.add("TRACER_MODE", value, "full or ring") }
            } else if rest(of: variable, after: "CHILDREN=") != nil {
                if let on = Settings.flag(value) { children = on }
                else { complaints.add("TRACER_CHILDREN", value, "1 or 0") }
            } else if rest(of: variable, after: "START=") != nil {
                if let on = Settings.flag(value) { startsOn = on }
                else { complaints.add("TRACER_START", value, "on or off") }
            } else if rest(of: variable, after: "QUIET=") != nil {
                if let on = Settings.flag(value) { quiet = on }
                else { complaints.add("TRACER_QUIET", value, "1 or 0") }
            } else if rest(of: variable, after: "CLOCK=") != nil {
                if equal(value, literal: "monotonic") { forcesMonotonic = true }
                else if !equal(value, literal: "auto") { complaints.add("TRACER_CLOCK", value, "auto or monotonic") }
            } else if rest(of: variable, after: "READY=") != nil {
                if value[0] != 0 { ready = Settings.keep(value, &store) }
            } else if rest(of: variable, after: "EXEC=") != nil {
                readExec(value)
            } else if rest(of: variable, after: "SESSION=") != nil {
                readSession(value)
            }
        }
        if ring && sizeLimit == 0 { sizeLimit = Settings.ringDefault }
        return complaints
    }

    /// It is true once, of this image in this process. So it is wiped where it stands: what this process starts, or becomes
    /// by another exec, must not take it for its own.
    private mutating func readExec(_ value: CText) {
        guard let (time, count) = Settings.digits(value), value[count] == 0x2d,
              let pid = Settings.decimal(value + (count &+ 1)) else { return }
        if pid == UInt64(agent.pid) && time != 0 { execTime = time }
        for n in 0..<count { UnsafeMutablePointer(mutating: value)[n] = 0x30 }
    }

    private mutating func readSession(_ value: CText) {
        var number: UInt64 = 0, n = 0
        while n < 16, let digit = Settings.hexDigit(value[n]) {
            number = number &<< 4 | digit
            n &+= 1
        }
        if n == 16, value[16] == 0x2d, let pid = Settings.decimal(value + 17) {
            session = number
            recorder = pid
        }
    }

    private static func value(of variable: CText) -> CText? {
        var n = 0
        while variable[n] != 0 {
            if variable[n] == 0x3d { return variable + (n &+ 1) }
            n &+= 1
        }
        return nil
    }
    private static func keep(_ value: CText, _ store: inout TextBuffer) -> CText {
        let start = store.start + store.count
        store.append(contentsOf: value)
        store.append(0)
        return CText(start)
    }
    private static func hexDigit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case 0x30...0x39: UInt64(byte &- 0x30)
        case 0x61...0x66: UInt64(byte &- 0x61 &+ 10)
        default: nil
        }
    }
    static func decimal(_ text: CText) -> UInt64? {
        guard let (number, count) = digits(text), text[count] == 0 else { return nil }
        return number
    }
    /// Leading digits; nil when there is none or more than 18.
    private static func digits(_ text: CText) -> (number: UInt64, count: Int)? {
        var number: UInt64 = 0, n = 0
        while text[n] >= 0x30 && text[n] <= 0x39 {
            if number >= 100_000_000_000_000_000 { return nil } // 18 digits; zeros in front do not count
            number = number &* 10 &+ UInt64(text[n] &- 0x30)
            n &+= 1
        }
        return n == 0 ? nil : (number, n)
    }
    /// Nanoseconds of decimal milliseconds; digits beyond the nanosecond are ignored.
    private static func milliseconds(_ text: CText) -> UInt64? {
        var whole: UInt64 = 0, n = 0
        if text[0] != 0x2e {
            guard let (number, count) = digits(text), number < 1_000_000_000 else { return nil }
            (whole, n) = (number, count)
        }
        var nanoseconds = whole &* 1_000_000
        if text[n] == 0x2e {
            n &+= 1
            var unit: UInt64 = 100_000
            if text[n] == 0 { return nil }
            while text[n] >= 0x30 && text[n] <= 0x39 {
                nanoseconds = nanoseconds &+ unit &* UInt64(text[n] &- 0x30)
                unit /= 10
                n &+= 1
            }
        }
        return text[n] == 0 ? nanoseconds : nil
    }
    private static func size(_ text: CText) -> UInt64? {
        guard let (number, count) = digits(text), number < 1 << 40 else { return nil }
        var n = count, shift: UInt64 = 0
        switch text[n] {
        case 0x4b, 0x6b: shift = 10
        case 0x4d, 0x6d: shift = 20
        case 0x47, 0x67: shift = 30
        default: return text[n] == 0 ? number : nil
        }
        n &+= 1
        if text[n] == 0x42 || text[n] == 0x62 { n &+= 1 }
        return text[n] == 0 && number < 1 << 20 ? number &<< shift : nil
    }
    private static func flag(_ text: CText) -> Bool? {
        if equal(text, literal: "1") || equal(text, literal: "on") || equal(text, literal: "yes") { return true }
        if equal(text, literal: "0") || equal(text, literal: "off") || equal(text, literal: "no") { return false }
        return nil
    }
}

/// Settings that could not be understood: reported once each, the default is used.
struct Complaints {
    private var names = InlineArray<8, StaticString>(repeating: "")
    private var forms = InlineArray<8, StaticString>(repeating: "")
    private var values = InlineArray<8, CText?>(repeating: nil)
    private var count = 0

    mutating func add(_ name: StaticString, _ value: CText, _ form: StaticString) {
        if count == 8 { return }
        names[count] = name
        values[count] = value
        forms[count] = form
        count &+= 1
    }
    func report() {
        for n in 0..<count {
            Message.say {
                $0.append(names[n])
                $0.append("=")
                $0.append(contentsOf: values[n]!)
                $0.append(" is not understood and ignored: give ")
                $0.append(forms[n])
            }
        }
    }
}

extension Settings {
    /// As they took effect: NAME=VALUE, NUL after each.
    func describe(_ text: inout TextBuffer) {
        func entry(_ name: StaticString, _ value: (inout TextBuffer) -> Void) {
            text.append(name)
            value(&text)
            text.append(0)
        }
        entry("TRACER_OUT=") { $0.append(contentsOf: output ?? CText(StaticString("tracer.%e.%p.trace").utf8Start)) }
        entry("TRACER_MAXDEPTH=") { $0.append(decimal: UInt64(maximumDepth)) }
        entry("TRACER_MINMS=") {
            $0.append(decimal: minimumNanoseconds / 1_000_000)
            var rest = minimumNanoseconds % 1_000_000
            if rest == 0 { return }
            $0.append(0x2e)
            while rest > 0 {
                $0.append(UInt8(0x30 &+ rest / 100_000))
                rest = rest % 100_000 &* 10
            }
        }
        if let include { entry("TRACER_INCLUDE=") { $0.append(contentsOf: include) } }
        if let exclude { entry("TRACER_EXCLUDE=") { $0.append(contentsOf: exclude) } }
        if let ready { entry("TRACER_READY=") { $0.append(contentsOf: ready) } }
        entry("TRACER_MAXSIZE=") { $0.append(decimal: sizeLimit) }
        entry("TRACER_MODE=") { $0.append(ring ? "ring" : "full") }
        entry("TRACER_CHILDREN=") { $0.append(children ? "1" : "0") }
        entry("TRACER_START=") { $0.append(startsOn ? "on" : "off") }
        entry("TRACER_CLOCK=") { $0.append(forcesMonotonic ? "monotonic" : "auto") }
    }
}
