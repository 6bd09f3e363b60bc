// The environment variables of the agent (Variables.swift), as this process has them. Values are copied: a program may overwrite its
// environment (setproctitle), and a forked child reads them again.
import CSupport

struct Settings {
    var output = Variables.output.standard
    var maximumDepth = Variables.maximumDepth.standard
    var minimumNanoseconds = Variables.minimumTime.standard
    var include = Variables.include.standard
    var exclude = Variables.exclude.standard
    var functions = Variables.functions.standard
    var minimumSize = Variables.minimumSize.standard
    var keepsHot = Variables.keepsHot.standard
    var callSites = Variables.callSites.standard
    var arguments = Variables.arguments.standard
    var ready = Variables.ready.standard
    var sizeLimit = Variables.maximumSize.standard
    var mode = Variables.mode.standard
    var keptNanoseconds = Variables.keep.standard
    var triggers = Variables.triggers.standard
    var children = Variables.children.standard
    var startsOn = Variables.start.standard
    var quiet = Variables.quiet.standard
    var usesCache = Variables.cache.standard
    var keepsAgent = Variables.keepsAgent.standard
    var clock = Variables.clock.standard
    var session = Variables.session.standard
    /// Time of this image's exec, in nanoseconds, from the process that started it; nil: not given.
    var execTime: UInt64?

    /// Absolute, as the XDG Base Directory Specification asks; the first of several, as getenv(3).
    var cacheHome: CText?
    var home: CText?

    /// `environment` is main's third argument, or libc's `environ`, which may be nil. Complaints come once the file is open, so they are
    /// returned.
    mutating func read(_ environment: UnsafeMutablePointer<CText?>?, into store: inout TextBuffer) -> Complaints {
        var complaints = Complaints()
        var index = 0
        while let entry = environment?[index] {
            index &+= 1
            if rest(of: entry, after: Variables.prefix) != nil {
                read(entry, &complaints)
            } else if let folder = assignment(entry, to: "XDG_CACHE_HOME"), cacheHome == nil, folder[0] == 0x2f {
                cacheHome = Settings.keep(folder, &store)
            } else if let folder = assignment(entry, to: "HOME"), home == nil, folder[0] == 0x2f {
                home = Settings.keep(folder, &store)
            }
        }
        output = Settings.keep(output, &store)
        if let include { self.include = Settings.keep(include, &store) }
        if let exclude { self.exclude = Settings.keep(exclude, &store) }
        if let functions { self.functions = Settings.keep(functions, &store) }
        if let arguments { self.arguments = Settings.keep(arguments, &store) }
        if let ready { self.ready = Settings.keep(ready, &store) }
        if let triggers { self.triggers = Settings.keep(triggers, &store) }
        if mode == .ring && sizeLimit == 0 { sizeLimit = keptNanoseconds == 0 ? Variables.ringSize : Variables.keptSize }
        return complaints
    }

    private mutating func read(_ entry: CText, _ complaints: inout Complaints) {
        if let value = Variables.exec.value(of: entry) { return readExec(value) }
        if let value = Variables.session.value(of: entry) {
            if let stamp = Variables.session.read(value) { session = stamp }
            return
        }
        _ =
            Settings.read(Variables.output, entry, &output, &complaints)
            || Settings.read(Variables.maximumDepth, entry, &maximumDepth, &complaints)
            || Settings.read(Variables.minimumTime, entry, &minimumNanoseconds, &complaints)
            || Settings.read(Variables.include, entry, &include, &complaints)
            || Settings.read(Variables.exclude, entry, &exclude, &complaints)
            || Settings.read(Variables.functions, entry, &functions, &complaints)
            || Settings.read(Variables.minimumSize, entry, &minimumSize, &complaints)
            || Settings.read(Variables.keepsHot, entry, &keepsHot, &complaints)
            || Settings.read(Variables.callSites, entry, &callSites, &complaints)
            || Settings.read(Variables.arguments, entry, &arguments, &complaints)
            || Settings.read(Variables.ready, entry, &ready, &complaints)
            || Settings.read(Variables.maximumSize, entry, &sizeLimit, &complaints)
            || Settings.read(Variables.mode, entry, &mode, &complaints)
            || Settings.read(Variables.keep, entry, &keptNanoseconds, &complaints)
            || Settings.read(Variables.triggers, entry, &triggers, &complaints)
            || Settings.read(Variables.children, entry, &children, &complaints)
            || Settings.read(Variables.keepsAgent, entry, &keepsAgent, &complaints)
            || Settings.read(Variables.start, entry, &startsOn, &complaints)
            || Settings.read(Variables.quiet, entry, &quiet, &complaints)
            || Settings.read(Variables.cache, entry, &usesCache, &complaints)
            || Settings.read(Variables.clock, entry, &clock, &complaints)
    }

    /// True when the entry is this variable, whatever its value is.
    @inline(__always) private static func read<Grammar>(
        _ variable: Variable<Grammar>, _ entry: CText, _ setting: inout Grammar.Value,
        _ complaints: inout Complaints
    ) -> Bool {
        guard let value = variable.value(of: entry) else { return false }
        if let read = variable.read(value) { setting = read } else { complaints.add(variable.name, value, variable.form) }
        return true
    }

    /// It is true once, of this image in this process. So it is wiped where it stands: what this process starts, or becomes
    /// by another exec, must not take it for its own.
    private mutating func readExec(_ value: CText) {
        guard let stamp = Variables.exec.read(value) else { return }
        if stamp.pid == UInt64(Process.pid) && stamp.nanoseconds != 0 { execTime = stamp.nanoseconds }
        Variables.ExecStamp.clear(UnsafeMutablePointer(mutating: value))
    }

    private static func keep(_ value: CText, _ store: inout TextBuffer) -> CText {
        let start = store.start + store.count
        store.append(contentsOf: value)
        store.append(0)
        return CText(start)
    }
}

/// Settings that could not be understood: reported once each, the default is used.
struct Complaints {
    private var names = InlineArray<8, StaticString>(repeating: "")
    private var forms = InlineArray<8, StaticString>(repeating: "")
    private var values = InlineArray<8, CText?>(repeating: nil)
    private var count = 0

    @inline(never) mutating func add(_ name: StaticString, _ value: CText, _ form: StaticString) {
        if count == 8 { return }
        names[count] = name
        values[count] = value
        forms[count] = form
        count &+= 1
    }
    func report() {
        for n in 0..<count {
            Message.warn {
                $0.append(names[n])
                $0.append("=")
                $0.append(contentsOf: values[n]!)
                $0.append(" is invalid and ignored: give ")
                $0.append(forms[n])
            }
        }
    }
}

extension Settings {
    /// As they took effect: NAME=VALUE, NUL after each.
    func describe(_ text: inout TextBuffer) {
        func entry(_ name: StaticString, _ value: (inout TextBuffer) -> Void) {
            Settings.append(name, &text)
            value(&text)
            text.append(0)
        }
        entry(Variables.output.name) { $0.append(contentsOf: output) }
        entry(Variables.maximumDepth.name) { $0.append(decimal: UInt64(maximumDepth)) }
        entry(Variables.minimumTime.name) { Settings.append(milliseconds: minimumNanoseconds, &$0) }
        if let functions { entry(Variables.functions.name) { $0.append(contentsOf: functions) } }
        if minimumSize > 0 { entry(Variables.minimumSize.name) { $0.append(decimal: UInt64(minimumSize)) } }
        if keepsHot { entry(Variables.keepsHot.name) { $0.append(Variables.Switch.word(keepsHot)) } }
        if callSites { entry(Variables.callSites.name) { $0.append(Variables.Switch.word(callSites)) } }
        if let arguments { entry(Variables.arguments.name) { $0.append(contentsOf: arguments) } }
        if let include { entry(Variables.include.name) { $0.append(contentsOf: include) } }
        if let exclude { entry(Variables.exclude.name) { $0.append(contentsOf: exclude) } }
        if let ready { entry(Variables.ready.name) { $0.append(contentsOf: ready) } }
        entry(Variables.maximumSize.name) { $0.append(decimal: sizeLimit) }
        entry(Variables.mode.name) { $0.append(Variables.ModeName.word(mode)) }
        if keptNanoseconds > 0 { entry(Variables.keep.name) { Settings.append(milliseconds: keptNanoseconds, &$0) } }
        if let triggers { entry(Variables.triggers.name) { $0.append(contentsOf: triggers) } }
        entry(Variables.children.name) { $0.append(Variables.Switch.word(children)) }
        if keepsAgent { entry(Variables.keepsAgent.name) { $0.append(Variables.Switch.word(keepsAgent)) } }
        entry(Variables.start.name) { $0.append(Variables.Switch.word(startsOn)) }
        if !usesCache { entry(Variables.cache.name) { $0.append(Variables.Switch.word(usesCache)) } }
        entry(Variables.clock.name) { $0.append(Variables.ClockName.word(clock)) }
    }
    @inline(never) private static func append(milliseconds nanoseconds: UInt64, _ text: inout TextBuffer) {
        text.append(decimal: nanoseconds / 1_000_000)
        var rest = nanoseconds % 1_000_000
        if rest == 0 { return }
        text.append(0x2e)
        while rest > 0 {
            text.append(UInt8(0x30 &+ rest / 100_000))
            rest = rest % 100_000 &* 10
        }
    }
    @inline(never) private static func append(_ name: StaticString, _ text: inout TextBuffer) {
        text.append(name)
        text.append(0x3d)
    }
}
