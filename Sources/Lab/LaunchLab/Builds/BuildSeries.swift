// Two builds of one program, launched alternately without the agent: first warm, then from disk. A launch that is timed is only timed,
// since whoever counts takes time, too.
import ELF
import Presentation
import Statistics

package struct BuildSeries {
    private let plan: LaunchPlan
    private let subjects: [LaunchSubject]
    private let runner: LaunchRunner
    private var random: SplitMix
    package private(set) var watch = MachineWatch()
    /// The moment at which both are ready, in the new build's words.
    package private(set) var readyReason = ""
    /// Called before each launch, and at the end, with the number of launches done and their total.
    package var progress: (Int, Int) -> Void = { _, _ in }

    package init(_ plan: LaunchPlan, old: LaunchSubject, new: LaunchSubject) {
        self.plan = plan
        subjects = [old, new]
        runner = LaunchRunner(plan)
        random = SplitMix(seed: plan.seed)
    }

    package mutating func run() throws -> (old: BuildLaunches, new: BuildLaunches) {
        let pilots = try subjects.map { try runner.pilot(bare: $0) }
        readyReason = pilots[1].reason
        guard pilots[0].endPoint == pilots[1].endPoint else {
            throw LaunchProblem(
                "the builds are ready at different moments, \(pilots[0].reason) and \(pilots[1].reason): measure both to their end with --to-exit"
            )
        }
        var results = subjects.map { BuildLaunches($0.command, program: resolvedPath($0.path) ?? $0.path) }
        let files = pilots.map { ColdFiles($0.files) }
        for index in subjects.indices {
            // A file lies in memory in pieces as large as it was written or read by, and the kernel maps the larger ones by fewer faults: a
            // program that was just linked would seem better than one that came from disk.
            let program = ColdFiles([results[index].program])
            let drop = program.drop()
            (results[index].keptOfProgram, results[index].knowsMemory) = (drop.kept + drop.diskless, drop.unknown == 0)
            program.readAll()
            for _ in 0..<plan.warmUps { _ = try runner.launch(subjects[index], pilots[index].endPoint, .nothing, ColdFiles([])) }
        }
        var cold = plan
        cold.cold = .files
        let passes: [(runner: LaunchRunner, questions: [LaunchQuestion])] = [
            (runner, [.nothing, .textFaults, .touchedText]), (LaunchRunner(cold), [.nothing, .textFaults]),
        ]
        let all = plan.runs * subjects.count * passes.reduce(0) { $0 + $1.questions.count }
        var done = 0
        for pass in passes {
            for _ in 0..<plan.runs {
                for question in pass.questions {
                    for index in subjects.indices.shuffled(using: &random) {
                        progress(done, all)
                        done += 1
                        try measure(pass.runner, index, pilots[index].endPoint, question, files[index], &results[index])
                    }
                }
            }
        }
        progress(all, all)
        return (results[0], results[1])
    }

    /// One launch that counts. A disturbed one that is timed is made again, as often as there are launches in all.
    private mutating func measure(
        _ runner: LaunchRunner, _ index: Int, _ endPoint: EndPoint, _ question: LaunchQuestion, _ files: ColdFiles,
        _ result: inout BuildLaunches
    ) throws {
        let isCold = runner.plan.cold != .no
        while true {
            if question == .nothing { watch.launchBegins() }
            let launch = try runner.launch(subjects[index], endPoint, question, files)
            switch question {
            case .nothing:
                if watch.launchEnded(hiddenWait: launch.hiddenWait, length: launch.length) != nil {
                    if result.disturbed < plan.runs {
                        result.disturbed += 1
                        continue
                    }
                    result.disturbedKept += 1
                }
                result.add(.timeToReady, .all, isCold: isCold, Double(launch.length))
                if isCold {
                    result.drop = launch.drop
                    if result.knowsMemory {
                        let read = ColdFiles([result.program]).cached().reduce(0) { $0 + $1.bytes }
                        result.add(.readFromDisk, isCold: true, Double(read))
                    }
                }
            case .textFaults: result.add(launch.textFaults, isCold: isCold)
            case .touchedText:
                switch launch.touched {
                case .success(let bytes): result.add(.touchedText, isCold: isCold, Double(bytes))
                case .failure(let problem): result.touchProblem = problem.reason
                case nil: result.touchProblem = "the process ended before it could be examined"
                }
            case .trace: break
            }
            return
        }
    }
}
