// The options of `tracer record`, one for each environment variable of the agent, checked here so that a bad value is
// an error before anything starts. An option that was not given leaves the variable as the user's environment has it.

public struct Settings: Sendable {
    public enum Mode: String, Sendable, CaseIterable { case full, ring }

    public var output: String?
    public var maximumDepth: String?
    public var minimumMilliseconds: String?
    public var include: [String] = []
    public var exclude: [String] = []
    public var maximumSize: String?
    public var mode: String?
    public var children: Bool?
    public var start: String?
    /// The function whose first call means that the program is ready.
    public var ready: String?
    public var quiet = false

    public init() {}

    /// What the agent reads, in the order of the manual. Throws a `Refusal` for the first bad value. TRACER_OUT is
    /// not among them: see `outputTemplate`.
    public func variables() throws(Refusal) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = []
        if let text = maximumDepth {
            guard let depth = UInt32(digits: text), depth <= 1_000_000 else {
                throw .usage("--max-depth \(text): give a whole number of calls up to 1000000; 0 is no limit")
            }
            result.append(("TRACER_MAXDEPTH", String(depth)))
        }
        if let text = minimumMilliseconds {
            guard Settings.isDecimal(text) else {
                throw .usage("--min-ms \(text): give milliseconds as a decimal number, such as 0.5")
            }
            result.append(("TRACER_MINMS", text))
        }
        if let joined = try Settings.globs(include, option: "--include") { result.append(("TRACER_INCLUDE", joined)) }
        if let joined = try Settings.globs(exclude, option: "--exclude") { result.append(("TRACER_EXCLUDE", joined)) }
        if let text = maximumSize {
            guard Settings.bytes(text) != nil else {
                throw .usage("--max-size \(text): give a size such as 512K, 64M or 2G, at least \(Settings.smallestSize / 1024)K; 0 is no limit")
            }
            result.append(("TRACER_MAXSIZE", text))
        }
        if let text = mode {
            guard let mode = Mode(rawValue: text) else {
                throw .usage("--mode \(text): give full (keep everything) or ring (keep the end)")
            }
            result.append(("TRACER_MODE", mode.rawValue))
        }
        if let children { result.append(("TRACER_CHILDREN", children ? "on" : "off")) }
        if let text = start {
            guard text == "on" || text == "off" else {
                throw .usage("--start \(text): give on, or off to wait until the program calls tracer_start()")
            }
            result.append(("TRACER_START", text))
        }
        if let text = ready {
            guard !text.isEmpty else { throw .usage("--ready: give the name of a function") }
            result.append(("TRACER_READY", text))
        }
        if quiet { result.append(("TRACER_QUIET", "on")) }
        return result
    }

    /// The option, else the variable, else the agent's default.
    public func outputTemplate(environment: (String) -> String?, currentDirectory: String) throws(Refusal) -> OutputTemplate {
        try OutputTemplate(output ?? environment("TRACER_OUT").flatMap { $0.isEmpty ? nil : $0 } ?? OutputTemplate.standard,
                           currentDirectory: currentDirectory)
    }

    /// A header page and one small chunk.
    static let smallestSize: UInt64 = 64 * 1024

    /// "64M" in bytes; nil when it is not a size or too small to hold a trace.
    static func bytes(_ text: String) -> UInt64? {
        var text = text
        if text.count > 1, text.last == "B" || text.last == "b", text.dropLast().last?.isNumber == false { text.removeLast() }
        let shifts: [Character: UInt64] = ["K": 10, "k": 10, "M": 20, "m": 20, "G": 30, "g": 30]
        let shift = text.last.flatMap { shifts[$0] }
        guard let number = UInt64(digits: shift == nil ? text : String(text.dropLast())) else { return nil }
        let (size, tooLarge) = number.multipliedReportingOverflow(by: 1 << (shift ?? 0))
        return tooLarge || size > 0 && size < smallestSize || number >= 1 << (shift == nil ? 40 : 20) ? nil : size
    }

    /// Digits with at most one point, and small enough to be a time: no exponent, no sign, no locale.
    static func isDecimal(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.contains(where: { !$0.isEmpty }) else { return false }
        return parts.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
            && parts[0].utf8.count <= 9 && (parts.count == 1 || (1...18).contains(parts[1].utf8.count))
    }

    private static func globs(_ patterns: [String], option: String) throws(Refusal) -> String? {
        guard !patterns.isEmpty else { return nil }
        for pattern in patterns {
            // ':' separates globs in the variable, so "a:b" is two. "std::*" is none: names are the linker's.
            if pattern.split(separator: ":", omittingEmptySubsequences: false).contains(where: \.isEmpty) {
                let hint = pattern.contains("::") ? "globs match the linker's names, so std:: is written _ZNSt*" : "a glob is empty"
                throw .usage("\(option) \"\(pattern)\": \(hint)")
            }
        }
        return patterns.joined(separator: ":")
    }
}

extension FixedWidthInteger {
    /// Plain decimal digits only: no sign, no blanks.
    init?(digits text: some StringProtocol) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        self.init(text, radix: 10)
    }
}
