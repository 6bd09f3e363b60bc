import ArgumentParser
import Glibc
import Recorder

struct Record: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Start a program under the agent and record its calls.",
        usage: "tracer record [options] [--] PROGRAM [ARGUMENT …]",
        discussion: """
            The program keeps its input, output and exit status (128 + n when signal n ended it). 126 and 127: it \
            could not be traced or started; 2: usage. Each option sets the environment variable named with it; one \
            that is already set stays in force without the option.
            """)

    @Option(name: .shortAndLong, help: ArgumentHelp(
        "Trace file; %p is the pid, %e the program. TRACER_OUT, default \(OutputTemplate.standard).", valueName: "file"))
    var output: String?
    @Option(help: ArgumentHelp("Record calls to this depth only. TRACER_MAXDEPTH.", valueName: "calls"))
    var maxDepth: String?
    @Option(help: ArgumentHelp("Forget calls that are shorter. TRACER_MINMS.", valueName: "milliseconds"))
    var minMs: String?
    @Option(help: ArgumentHelp("Record only matching functions or modules; repeatable. TRACER_INCLUDE.", valueName: "glob"))
    var include: [String] = []
    @Option(help: ArgumentHelp("Leave matching functions or modules alone; repeatable. TRACER_EXCLUDE.", valueName: "glob"))
    var exclude: [String] = []
    @Option(help: ArgumentHelp("Largest trace file, such as 64M or 2G. TRACER_MAXSIZE.", valueName: "size"))
    var maxSize: String?
    @Option(help: ArgumentHelp("full keeps everything, ring the end. TRACER_MODE.", valueName: "full|ring"))
    var mode: String?
    @Flag(inversion: .prefixedNo, help: "Record the processes it starts, too; on unless told otherwise. TRACER_CHILDREN.")
    var children: Bool?
    @Option(help: ArgumentHelp("off waits until the program calls tracer_start(). TRACER_START.", valueName: "on|off"))
    var start: String?
    @Flag(help: "No summary, and no messages of the agent. TRACER_QUIET.")
    var quiet = false
    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("The program and its arguments.", valueName: "program"))
    var command: [String] = []

    func run() throws {
        var command = command
        if command.first == "--" {
            command.removeFirst()
        } else if let first = command.first, first == "--help" || first == "-h" {
            throw CleanExit.helpRequest(self) // captured, as everything that is not an option above
        } else if let first = command.first, first.hasPrefix("-") {
            throw CommandFailure(message: "record has no option \(first): see tracer record --help", status: 2)
        }
        guard !command.isEmpty else {
            throw CommandFailure(message: "record needs a program: tracer record [options] PROGRAM [ARGUMENT …]", status: 2)
        }
        var settings = Settings()
        settings.output = output
        settings.maximumDepth = maxDepth
        settings.minimumMilliseconds = minMs
        settings.include = include
        settings.exclude = exclude
        settings.maximumSize = maxSize
        settings.mode = mode
        settings.children = children
        settings.start = start
        settings.quiet = quiet
        // The same arguments as the kernel gave them: a String repairs what is not UTF-8.
        let raw = CommandLine.unsafeArgv.suffix(command.count, of: Int(CommandLine.argc))
        let result: RecordingResult
        do {
            result = try RecordingRun(command: raw, settings: settings).run()
        } catch {
            throw CommandFailure(message: error.message, status: error.status)
        }
        if !quiet { RecordSummary(result).print() }
        throw CommandFailure(message: "", status: result.status)
    }
}

extension UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> {
    /// The last `count` of the `total` C strings, each with its NUL.
    func suffix(_ count: Int, of total: Int) -> [[CChar]] {
        (Swift.max(0, total - count)..<total).compactMap { index in
            self[index].map { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
        }
    }
}
