// Options that say which calls are recorded, and how much of them, in a program that is started as in one that runs.
import ArgumentParser
import Recorder
import TraceFormat

struct CallOptions: ParsableArguments {
    @Option(help: .setting(Variables.maximumDepth))
    var maxDepth: String?
    @Option(help: .setting(Variables.minimumTime))
    var minMs: String?
    @Flag(help: .setting(Variables.callSites))
    var callSites = false
    @Option(help: .setting(Variables.include))
    var include: [String] = []
    @Option(help: .setting(Variables.exclude))
    var exclude: [String] = []
    @Option(help: .setting(Variables.maximumSize))
    var maxSize: String?

    /// One of them is given.
    var isAny: Bool { maxDepth != nil || minMs != nil || callSites || !include.isEmpty || !exclude.isEmpty || maxSize != nil }

    func set(in options: inout RecordOptions) {
        options.set(Variables.maximumDepth, maxDepth)
        options.set(Variables.minimumTime, minMs.map { Self.milliseconds($0) })
        if callSites { options.set(Variables.callSites, true) }
        options.set(Variables.include, include)
        options.set(Variables.exclude, exclude)
        options.set(Variables.maximumSize, maxSize)
    }

    /// "5ms" and "20us" as the number of milliseconds that the agent takes; other text as it is, for the agent's rules to accept or refuse.
    private static func milliseconds(_ text: String) -> String {
        guard Double(text) == nil, let length = TimeLength(argument: text) else { return text }
        let (whole, rest) = length.nanoseconds.count.quotientAndRemainder(dividingBy: 1_000_000)
        return "\(whole).\(String(1_000_000 + rest).dropFirst())"
    }
}
