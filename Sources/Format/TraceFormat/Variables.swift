// Every environment variable of the agent, each declared once: its name, what its values look like, what holds without it, and the option
// of `tracer record` that sets it. The agent (Embedded Swift) reads them, `tracer record` has its options, their help and their checks from
// here; both compile this file. Nothing here allocates.
//
// TRACER_LOADER, which libtracer-audit.so reads, is not the agent's: see loader_notes.h.

/// Syntax of a variable's values.
public protocol VariableGrammar {
    associatedtype Value
    /// `text` ends in a NUL. nil: it is no such value.
    static func read(_ text: UnsafePointer<UInt8>) -> Value?
}

public struct Variable<Grammar: VariableGrammar> {
    public let name: StaticString
    /// The value in force when it is not set.
    public let standard: Grammar.Value
    /// Completes "give …".
    public let form: StaticString
    #if !hasFeature(Embedded)
    /// Option of `tracer record` or `tracer startup`; empty: there is none.
    public let option: StaticString
    /// In the help of the option: what it does, and what its value is called.
    public let help: StaticString
    public let valueName: StaticString
    #endif

    @inlinable @inline(__always) init(
        _ name: StaticString, _ grammar: Grammar.Type, _ standard: Grammar.Value, form: StaticString,
        option: StaticString = "", _ valueName: StaticString = "", help: StaticString = ""
    ) {
        self.name = name
        self.standard = standard
        self.form = form
        #if !hasFeature(Embedded)
        self.option = option
        self.valueName = valueName
        self.help = help
        #endif
    }

    @inlinable public func read(_ text: UnsafePointer<UInt8>) -> Grammar.Value? { Grammar.read(text) }

    /// The value, if `entry` of an environment (NAME=VALUE, ends in a NUL) is this variable.
    @inline(__always) func value(of entry: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>? { assignment(entry, to: name) }
}

#if !hasFeature(Embedded)
extension Variable {
    public func read(_ text: String) -> Grammar.Value? {
        text.utf8CString.withUnsafeBytes { read($0.baseAddress!.assumingMemoryBound(to: UInt8.self)) }
    }
}
#endif

/// Names of argument plans, in the cache.
public enum ArgumentPlanName {
    /// Begins that of a plan that nobody has asked for: what the agent cannot record of it is not worth a line.
    @inlinable public static var byDefault: StaticString { "default-" }
}

public enum Variables {
    /// Prefix of all names.
    @inlinable public static var prefix: StaticString { "TRACER_" }

    /// The trace file.
    @inlinable public static var output: Variable<FileTemplate> {
        Variable(
            "TRACER_OUT", FileTemplate.self, StaticString("tracer.%e.%p.trace").utf8Start,
            form: "a file name; %p is the process id, %e the program, %% a percent sign",
            option: "--output", "file", help: "Trace file; %p is the pid, %e the program.")
    }
    /// Levels of recorded calls; 0: no limit.
    @inlinable public static var maximumDepth: Variable<Depth> {
        Variable(
            "TRACER_MAXDEPTH", Depth.self, 0, form: "a whole number of calls up to 1000000; 0 is no limit",
            option: "--max-depth", "calls", help: "Record calls only down to this depth.")
    }
    /// Calls that took less are not kept.
    @inlinable public static var minimumTime: Variable<Milliseconds> {
        Variable(
            "TRACER_MINMS", Milliseconds.self, 0, form: "milliseconds, such as 0.5",
            option: "--min-ms", "time", help: "Drop calls shorter than this: 0.5 (milliseconds), 20us.")
    }
    /// These functions record their calls themselves, by their first bytes; nil: calls through slots alone are recorded.
    @inlinable public static var functions: Variable<Globs> {
        Variable(
            "TRACER_FUNCTIONS", Globs.self, nil, form: "globs separated by ':', each FUNCTION of the program or MODULE!FUNCTION",
            option: "--functions", "glob",
            help: "Also record every call of these functions of the program, or of MODULE!FUNCTION: '*', '*!*'; repeatable.")
    }
    /// But those that are smaller than this number of bytes and run no code but their own.
    @inlinable public static var minimumSize: Variable<Depth> {
        Variable(
            "TRACER_MINSIZE", Depth.self, 0, form: "a whole number of bytes up to 1000000",
            option: "--min-size", "bytes", help: "With --functions: skip smaller functions that call nothing.")
    }
    /// They do so also when they are called very often and are very short.
    @inlinable public static var keepsHot: Variable<Switch> {
        Variable(
            "TRACER_KEEPHOT", Switch.self, false, form: "on or off", option: "--keep-hot",
            help: """
                With --functions: keep recording short functions that are called very often, although recording takes most of their time.
                """)
    }
    /// The address that each call returns to is recorded with it.
    @inlinable public static var callSites: Variable<Switch> {
        Variable(
            "TRACER_CALLSITES", Switch.self, false, form: "on or off", option: "--call-sites",
            help: "Also record the call site of each call: 8 bytes more per call.")
    }
    /// The argument plan (arguments_layout.h): functions whose calls are recorded with their arguments and results; nil: there is none.
    @inlinable public static var arguments: Variable<AbsolutePath> {
        Variable(
            "TRACER_ARGUMENTS", AbsolutePath.self, nil, form: "the absolute path of a file that tracer record --arguments has made",
            option: "--arguments", "functions",
            help:
                "Also record arguments and results of these: globs of functions that are known or have debug information, or prototypes, f(path: string, n: int) -> int; repeatable."
        )
    }
    /// Only these functions are recorded …
    @inlinable public static var include: Variable<Globs> {
        Variable(
            "TRACER_INCLUDE", Globs.self, nil, form: "globs separated by ':', each FUNCTION, MODULE or MODULE!FUNCTION",
            option: "--include", "glob", help: "Record only matching functions or modules; repeatable.")
    }
    /// … and of them all but these.
    @inlinable public static var exclude: Variable<Globs> {
        Variable(
            "TRACER_EXCLUDE", Globs.self, nil, form: "globs separated by ':', each FUNCTION, MODULE or MODULE!FUNCTION",
            option: "--exclude", "glob", help: "Do not record matching functions or modules; repeatable.")
    }
    /// Largest size of the trace file, in bytes; 0: no limit, in ring mode `ringSize`.
    @inlinable public static var maximumSize: Variable<ByteCount> {
        Variable(
            "TRACER_MAXSIZE", ByteCount.self, 0, form: "a size such as 512K, 64M or 2G, at least 64K; 0 is no limit",
            option: "--max-size", "size", help: "Largest trace file, such as 64M or 2G.")
    }
    @inlinable public static var ringSize: UInt64 { 64 << 20 }
    @inlinable public static var mode: Variable<ModeName> {
        Variable(
            "TRACER_MODE", ModeName.self, .full,
            form: "full (keep everything), ring (keep the end) or counts (which functions were called)",
            option: "--mode", "full|ring|counts",
            help: "full keeps everything, ring keeps the end, counts keeps only which functions were called (with --functions).")
    }
    /// In ring mode: what is younger than this many nanoseconds is kept, within `maximumSize`, and no thread takes the place of another one's; 0:
    /// the last bytes are kept, whosever they are.
    @inlinable public static var keep: Variable<Milliseconds> {
        Variable(
            "TRACER_KEEP", Milliseconds.self, 0, form: "milliseconds, such as 5000",
            option: "--keep", "time", help: "Keep the last seconds of every thread, such as 5s: a ring of up to --max-size (256M).")
    }
    @inlinable public static var keptSize: UInt64 { 256 << 20 }
    /// Functions whose long calls ask for a snapshot; nil: there are none.
    @inlinable public static var triggers: Variable<Triggers> {
        Variable(
            "TRACER_TRIGGERS", Triggers.self, nil, form: "FUNCTION>NANOSECONDS or MODULE!FUNCTION>NANOSECONDS, separated by ':'",
            option: "--when", "condition",
            help:
                "Record only calls with such values: 'malloc(size >= 1M)'. With --keep, also 'FUNCTION > 50ms': copy what is kept to a file of its own then; repeatable."
        )
    }
    /// The processes that the program starts are recorded, too.
    @inlinable public static var children: Variable<Switch> {
        Variable(
            "TRACER_CHILDREN", Switch.self, true, form: "on or off", option: "--children",
            help: "Also record the processes it starts; on by default.")
    }
    /// They get the agent back where somebody has removed it from their environment, or set another LD_PRELOAD.
    @inlinable public static var keepsAgent: Variable<Switch> {
        Variable(
            "TRACER_KEEPAGENT", Switch.self, false, form: "on or off", option: "--keep-agent",
            help: "Also record programs that are executed with another LD_PRELOAD, or with none: adds the agent to their environment.")
    }
    /// Findings in libraries are remembered for the next start.
    @inlinable public static var cache: Variable<Switch> {
        Variable(
            "TRACER_CACHE", Switch.self, true, form: "on or off", option: "--cache",
            help: "Cache what was found in libraries for the next start, in ~/.cache/tracer; on by default.")
    }
    /// The first call of one of these functions says that the program is ready.
    @inlinable public static var ready: Variable<Globs> {
        Variable("TRACER_READY", Globs.self, nil, form: "the name of a function", option: "--ready")
    }
    /// Recording begins with the program, not with tracer_start().
    @inlinable public static var start: Variable<Switch> {
        Variable(
            "TRACER_START", Switch.self, true, form: "on, or off to wait until the program calls tracer_start()",
            option: "--start", "on|off", help: "off: wait until the program calls tracer_start().")
    }
    /// Nothing is said on standard error.
    @inlinable public static var quiet: Variable<Switch> {
        Variable(
            "TRACER_QUIET", Switch.self, false, form: "on or off", option: "--quiet", help: "No summary, and no messages from the agent.")
    }
    @inlinable public static var clock: Variable<ClockName> { Variable("TRACER_CLOCK", ClockName.self, .auto, form: "auto or monotonic") }

    /// Stamp by which `tracer record` recognises the files of one run, and its child.
    @inlinable public static var session: Variable<SessionStamp> {
        Variable(
            "TRACER_SESSION", SessionStamp.self, SessionStamp(number: 0, recorder: 0, namespace: 0),
            form: "16 hexadecimal digits, '-', a process id, '-', a namespace")
    }
    /// When exec was called, and by which process (docs/reference/format.md, PHASE).
    @inlinable public static var exec: Variable<ExecStamp> {
        Variable(
            "TRACER_EXEC", ExecStamp.self, ExecStamp(nanoseconds: 0, pid: 0), form: "nanoseconds of CLOCK_MONOTONIC, '-', a process id")
    }
}

extension Variables {
    /// A path whose last part may hold %p, %e and %%. Empty is as good as not set.
    public enum FileTemplate: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>? { text[0] == 0 ? Variables.output.standard : text }
    }

    /// Patterns, as NameFilter matches them; nil: none.
    public enum Globs: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>?? { .some(text[0] == 0 ? nil : text) }
    }

    /// At most 32, each a pattern and how long its calls may take. A pattern that no function's name fits is of other events: `stall`,
    /// `exception`.
    public enum Triggers: VariableGrammar {
        /// A turn of the main thread's event loop took longer: the time between two calls of a function that it waits in.
        @inlinable public static var stall: StaticString { "(stall)" }
        /// An exception was raised.
        @inlinable public static var exception: StaticString { "(exception)" }

        public static func read(_ text: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>?? {
            if text[0] == 0 { return .some(nil) }
            var rest = text
            for _ in 0..<most {
                guard let (_, _, next) = first(rest) else { return .none }
                if rest[next] == 0 { return .some(text) }
                rest += next &+ 1
            }
            return .none
        }
        @inlinable public static var most: Int { 32 }

        /// Returns the bytes of the pattern that the text begins with, its time, and where its ':' or the text's NUL is. nil: it is none.
        public static func first(_ text: UnsafePointer<UInt8>) -> (pattern: Int, nanoseconds: UInt64, end: Int)? {
            var count = 0
            while text[count] != 0x3e { // '>'
                if text[count] == 0 || text[count] == 0x3a { return nil }
                count &+= 1
            }
            guard count > 0, let (nanoseconds, digits) = Digits.leading(text + (count &+ 1)) else { return nil }
            let end = count &+ 1 &+ digits
            return text[end] == 0 || text[end] == 0x3a ? (count, nanoseconds, end) : nil
        }
    }

    /// Empty is as good as not set.
    public enum AbsolutePath: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UnsafePointer<UInt8>?? {
            if text[0] == 0 { return .some(nil) }
            return text[0] == 0x2f ? .some(text) : .none
        }
    }

    public enum Depth: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UInt32? {
            guard let number = Digits.all(text), number <= 1_000_000 else { return nil }
            return UInt32(number)
        }
    }

    /// Decimal milliseconds, in nanoseconds; digits beyond these are ignored.
    public enum Milliseconds: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UInt64? {
            var whole: UInt64 = 0, n = 0
            if text[0] != 0x2e {
                guard let (number, count) = Digits.leading(text), number < 1_000_000_000 else { return nil }
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
    }

    /// Bytes, or with K, M, G (and B after it) binary multiples of them. 0, or space for a header page and one small chunk.
    public enum ByteCount: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> UInt64? {
            guard let size = size(text), size == 0 || size >= 65536 else { return nil }
            return size
        }
        private static func size(_ text: UnsafePointer<UInt8>) -> UInt64? {
            guard let (number, count) = Digits.leading(text), number < 1 << 40 else { return nil }
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
    }

    public enum Switch: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> Bool? {
            if equal(text, literal: "on") || equal(text, literal: "1") || equal(text, literal: "yes") { return true }
            if equal(text, literal: "off") || equal(text, literal: "0") || equal(text, literal: "no") { return false }
            return nil
        }
        @inlinable public static func word(_ isOn: Bool) -> StaticString { isOn ? "on" : "off" }
    }

    public enum RecordingMode: Sendable {
        /// Everything is kept …
        case full
        /// … or the last `maximumSize` bytes …
        case ring
        /// … or which functions were called at all.
        case counts
    }

    public enum ModeName: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> RecordingMode? {
            equal(text, literal: "full") ? .full : equal(text, literal: "ring") ? .ring : equal(text, literal: "counts") ? .counts : nil
        }
        @inlinable public static func word(_ mode: RecordingMode) -> StaticString {
            switch mode {
            case .full: "full"
            case .ring: "ring"
            case .counts: "counts"
            }
        }
    }

    public enum ClockChoice: Sendable {
        /// The CPU's counter, where it can be used …
        case auto
        /// … or CLOCK_MONOTONIC in any case.
        case monotonic
    }

    public enum ClockName: VariableGrammar {
        public static func read(_ text: UnsafePointer<UInt8>) -> ClockChoice? {
            equal(text, literal: "auto") ? .auto : equal(text, literal: "monotonic") ? .monotonic : nil
        }
        @inlinable public static func word(_ clock: ClockChoice) -> StaticString { clock == .monotonic ? "monotonic" : "auto" }
    }

    /// 16 hexadecimal digits, '-', the recorder's process id, '-', the inode of the namespace in which that counts.
    public struct SessionStamp: VariableGrammar, Sendable {
        public var number: UInt64
        public var recorder: UInt64
        /// 0 unknown.
        public var namespace: UInt64
        @inlinable public static var numberDigits: Int { 16 }

        @inlinable init(number: UInt64, recorder: UInt64, namespace: UInt64) {
            self.number = number
            self.recorder = recorder
            self.namespace = namespace
        }

        public static func read(_ text: UnsafePointer<UInt8>) -> SessionStamp? {
            var number: UInt64 = 0, n = 0
            while n < numberDigits, let digit = Digits.hexadecimal(text[n]) {
                number = number &<< 4 | digit
                n &+= 1
            }
            guard n == numberDigits, text[n] == 0x2d, let (pid, count) = Digits.leading(text + (n &+ 1)), text[n &+ 1 &+ count] == 0x2d,
                let namespace = Digits.all(text + (n &+ count &+ 2))
            else { return nil }
            return SessionStamp(number: number, recorder: pid, namespace: namespace)
        }
    }

    /// Nanoseconds of CLOCK_MONOTONIC, '-', a process id. Whoever calls exec writes them over as many zeros as a value may have.
    public struct ExecStamp: VariableGrammar, Sendable {
        public var nanoseconds: UInt64
        public var pid: UInt64
        @inlinable public static var nanosecondDigits: Int { 18 }
        @inlinable public static var pidDigits: Int { 10 }

        @inlinable init(nanoseconds: UInt64, pid: UInt64) {
            self.nanoseconds = nanoseconds
            self.pid = pid
        }

        public static func read(_ text: UnsafePointer<UInt8>) -> ExecStamp? {
            guard let (time, count) = Digits.leading(text), text[count] == 0x2d, let pid = Digits.all(text + (count &+ 1)) else {
                return nil
            }
            return ExecStamp(nanoseconds: time, pid: pid)
        }
        /// With zeros for the time it stays a value, and is no image's.
        public static func clear(_ text: UnsafeMutablePointer<UInt8>) {
            var n = 0
            while text[n] >= 0x30 && text[n] <= 0x39 {
                text[n] = 0x30
                n &+= 1
            }
        }
    }
}

/// Plain digits: no sign, no blanks, no locale.
enum Digits {
    /// nil when there is none, or more than 18; zeros in front do not count.
    static func leading(_ text: UnsafePointer<UInt8>) -> (number: UInt64, count: Int)? {
        var number: UInt64 = 0, n = 0
        while text[n] >= 0x30 && text[n] <= 0x39 {
            if number >= 100_000_000_000_000_000 { return nil }
            number = number &* 10 &+ UInt64(text[n] &- 0x30)
            n &+= 1
        }
        return n == 0 ? nil : (number, n)
    }
    static func all(_ text: UnsafePointer<UInt8>) -> UInt64? {
        guard let (number, count) = leading(text), text[count] == 0 else { return nil }
        return number
    }
    static func hexadecimal(_ byte: UInt8) -> UInt64? {
        switch byte {
        case 0x30...0x39: UInt64(byte &- 0x30)
        case 0x61...0x66: UInt64(byte &- 0x61 &+ 10)
        default: nil
        }
    }
}
