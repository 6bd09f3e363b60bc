// The user's lists of functions (Variables.include, exclude), applied when a slot is bound: an excluded function keeps its slot and costs
// nothing. A pattern is MODULE!FUNCTION, or one glob that is tried on both; '*' and '?' as in a shell. Names are
// those of the symbol table (mangled); the module is the file name of the library that defines the function.
import CSupport

enum NameFilter {
    nonisolated(unsafe) static var include: CText?
    nonisolated(unsafe) static var exclude: CText?
    /// No calls through slots are recorded, whatever the lists say.
    nonisolated(unsafe) static var leavesSlots = false
    /// What has been chosen since, from outside, of the functions that the lists admit. ModuleLock is held.
    nonisolated(unsafe) static var later = LaterNames()
    /// Calls of these functions say that the program is ready.
    nonisolated(unsafe) static var ready: CText?

    @inline(__always) static func saysReady(function: CText, path: CText) -> Bool {
        ready.map { anyMatches($0, function, baseName(path)) } ?? false
    }

    static var admitsAll: Bool { include == nil && exclude == nil }
    @inline(__always) static func admits(function: CText, path: CText) -> Bool {
        if admitsAll { return true }
        return admits(function, baseName(path))
    }
    private static func admits(_ function: CText, _ module: CText) -> Bool {
        if let include, !anyMatches(include, function, module) { return false }
        if let exclude, anyMatches(exclude, function, module) { return false }
        return true
    }
    /// A function whose name is only found when the trace is read goes by its address.
    static func admits(address: UInt64, path: CText) -> Bool {
        TextBuffer.with(address: address) { admits(function: $0, path: path) }
    }
    /// Lists name functions by their addresses as linked, too.
    static func admits(function: CText, at address: UInt64, path: CText) -> Bool {
        if admitsAll { return true }
        let module = baseName(path)
        if let include, !anyMatches(include, function, module, at: address) { return false }
        if let exclude, anyMatches(exclude, function, module, at: address) { return false }
        return true
    }
    @inline(never) static func anyMatches(_ list: CText, _ function: CText, _ module: CText, at address: UInt64) -> Bool {
        forEachPattern(list) { start, bang, end in
            names(start + (bang &+ 1), end &- bang &- 1, function, at: address)
                ? bang < 0 || Glob.matches(start, bang, module) : bang < 0 && Glob.matches(start, end, module)
        }
    }
    @inline(never) static func names(_ pattern: CText, _ count: Int, _ function: CText, at address: UInt64) -> Bool {
        Glob.matches(pattern, count, function) || isAddress(pattern, count, address)
    }
    /// The text is 0x and this address, whatever zeros it begins with and however its digits are written.
    @inline(never) static func isAddress(_ text: CText, _ count: Int, _ address: UInt64) -> Bool {
        if count < 3 || text[0] != 0x30 || text[1] != 0x78 { return false }
        var value: UInt64 = 0
        for n in 2..<count {
            let letter = text[n] | 0x20
            switch letter {
            case 0x30...0x39: value = value &<< 4 | UInt64(letter &- 0x30)
            case 0x61...0x66: value = value &<< 4 | UInt64(letter &- 0x57)
            default: return false
            }
        }
        return value == address
    }

    static func anyMatches(_ list: CText, _ function: CText, _ module: CText) -> Bool {
        forEachPattern(list) { start, bang, end in
            bang < 0
                ? Glob.matches(start, end, function) || Glob.matches(start, end, module)
                : Glob.matches(start, bang, module) && Glob.matches(start + (bang &+ 1), end &- bang &- 1, function)
        }
    }

    /// True when `test` is of one of them. Of each where it begins, and from there its `!`, or -1, and its end.
    @inline(__always) static func forEachPattern(_ list: CText, _ test: (CText, Int, Int) -> Bool) -> Bool {
        var start = list
        while true {
            var end = 0, bang = -1
            while start[end] != 0 && start[end] != 0x3a {
                if start[end] == 0x21 && bang < 0 { bang = end }
                end &+= 1
            }
            if end > 0 && test(start, bang, end) { return true }
            if start[end] == 0 { return false }
            start += end &+ 1
        }
    }
}

/// Lists as those of the settings, which `tracer control` has given while the process ran (ChosenCalls.swift). Each may be nil.
struct LaterNames: BitwiseCopyable {
    var functions: CText?
    var include: CText?
    var exclude: CText?

    /// All that are recorded by slots stay so.
    var admitsAllSlots: Bool { include == nil && exclude == nil }
    var admitsAll: Bool { admitsAllSlots && functions == nil }

    /// Returns true if the function is recorded: by the name of a slot, and the module that defines it.
    func admits(function: CText, path: CText) -> Bool {
        let module = baseName(path)
        if let include, !NameFilter.anyMatches(include, function, module) { return false }
        if let exclude, NameFilter.anyMatches(exclude, function, module) { return false }
        return true
    }
    /// Returns true if a function that records its calls itself is recorded: by its name, or its address as linked. `functions` is another matter
    /// (EntryFilter).
    func admits(function: CText, at address: UInt64, path: CText) -> Bool {
        let module = baseName(path)
        if let include, !NameFilter.anyMatches(include, function, module, at: address) { return false }
        if let exclude, NameFilter.anyMatches(exclude, function, module, at: address) { return false }
        return true
    }
}
