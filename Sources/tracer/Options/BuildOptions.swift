// Two builds of one program, launched alternately: tracer order --check.
import ArgumentParser
import Glibc
import LaunchLab
import Presentation

struct BuildOptions: ParsableArguments {
    @Flag(help: "Instead, launch two builds alternately and compare page faults of text and launch times, warm and from disk.")
    var check = false
    @Option(help: ArgumentHelp("With --check: the old build.", valueName: "program"), completion: .file())
    var old: String?
    @Option(help: ArgumentHelp("With --check: the new build.", valueName: "program"), completion: .file())
    var new: String?
    @Option(name: [.customShort("n"), .long], help: "With --check: launches of each build per figure. (default: 20)")
    var runs: Int?
    @Flag(help: "With --check: measure until the program ends by itself.")
    var toExit = false
    @Option(help: ArgumentHelp("With --check: give up when a launch takes longer. (default: 30)", valueName: "seconds"))
    var timeout: Double?
    @Option(help: ArgumentHelp("With --check: pin the launches to this CPU.", valueName: "number"))
    var cpu: Int?
    @Option(help: ArgumentHelp("With --check: shell command to run before each launch.", valueName: "command"))
    var setup: String?
    @Option(help: ArgumentHelp("With --check: shell command to run after each launch.", valueName: "command"))
    var teardown: String?
    @Argument(
        parsing: .postTerminator, help: ArgumentHelp("With --check, after --: arguments for both programs.", valueName: "argument"))
    var arguments: [String] = []

    func validate() throws {
        guard check else {
            let given: [(String, Bool)] = [
                ("--old", old != nil), ("--new", new != nil), ("-n", runs != nil), ("--to-exit", toExit), ("--timeout", timeout != nil),
                ("--cpu", cpu != nil), ("--setup", setup != nil), ("--teardown", teardown != nil), ("-- ARGUMENTS", !arguments.isEmpty),
            ]
            if let first = given.first(where: \.1) { throw ValidationError("\(first.0) needs --check --old PROGRAM --new PROGRAM") }
            return
        }
        guard old?.isEmpty == false, new?.isEmpty == false else {
            throw ValidationError("--check compares two builds: give --old PROGRAM and --new PROGRAM")
        }
        if let runs, runs < 1 || runs > 10_000 { throw ValidationError("-n takes 1 to 10000 launches") }
        if let timeout, !(timeout > 0 && timeout <= 3600) { throw ValidationError("--timeout takes seconds, at most 3600") }
        if let cpu, !(0..<1024).contains(cpu) { throw ValidationError("--cpu takes the number of a CPU, from 0") }
    }

    private var plan: LaunchPlan {
        var plan = LaunchPlan()
        if let runs { plan.runs = runs }
        if let timeout { plan.controls.timeout = timeout }
        plan.controls.cpu = cpu
        plan.controls.runsToExit = toExit
        plan.setup = setup
        plan.teardown = teardown
        plan.seed = UInt64.random(in: 0 ... .max)
        return plan
    }

    /// Launches both. What cannot be measured ends with status 2, or 126 and 127 as `tracer record`.
    func compare(_ body: (BuildComparison, BuildSeries, _ runs: Int) throws -> Void) throws {
        let plan = plan
        try orFail(status: 2) {
            let subjects = try [old!, new!].map { try LaunchSubject(bare: LaunchCommand(words: [$0] + arguments), controls: plan.controls) }
            guard !subjects[0].isSameFile(as: subjects[1]) else {
                throw CommandFailure("--old \(old!) and --new \(new!) are the same file", status: 2)
            }
            var series = BuildSeries(plan, old: subjects[0], new: subjects[1])
            series.progress = showLaunches()
            let (old, new) = try series.run()
            try body(BuildComparison(old: old, new: new), series, plan.runs)
        }
    }
}
