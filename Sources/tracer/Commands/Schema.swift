// tracer schema: the JSON Schemas of all JSON outputs, for docs/schemas.
import ArgumentParser
import FunctionUse
import LaunchLab
import Presentation
import TraceAnalysis

struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the JSON Schema of an output: what each member means, and which may be missing.",
        discussion: """
            tracer schema          names them
            tracer schema report   of tracer report --json
            """,
        shouldDisplay: false)

    @Argument(help: "The name of an output.")
    var output: String?

    func run() throws {
        guard let output else { return Self.all.forEach { print($0.name) } }
        guard let schema = Self.all.first(where: { $0.name == output }) else {
            throw CommandFailure("no output \"\(output)\": tracer schema names them", status: 2)
        }
        print(schema.form.schema(title: schema.title).text(lines: .max))
    }

    private static let all: [(name: String, title: String, form: JSONForm)] = [
        ("report", "tracer report --json", ReportOutput.form),
        ("function", "tracer report FUNCTION --json", FunctionOutput.form),
        ("values", "tracer report --by argument:NAME --json", ValueOutput.form),
        ("crash", "tracer report --crash --json", LastCalls.form),
        ("tree", "tracer tree --json", CallTree.form),
        ("callers", "tracer callers FUNCTION --json", CallersOutput.form),
        ("sites", "tracer callers FUNCTION --sites --json", SiteReport.form),
        ("threads", "tracer threads --json", ThreadReport.form),
        ("launch", "tracer launch --json", LaunchOutput.form),
        ("check", "tracer check --format json", GateVerdict.form),
        ("history", "tracer history --json", HistoryOutput.form),
        ("coverage", "tracer coverage --json", Coverage.form),
        ("order", "tracer order --json", LayoutOrder.form),
        ("order-check", "tracer order --check --json", BuildOutput.form),
        ("plan", "tracer plan --json", PlanOutput.form),
        ("info", "tracer info --json, of one trace", InfoOutput.form),
        ("info-run", "tracer info --json, of a run of several processes", RunInfoOutput.form),
        ("diff", "tracer diff --json", TreeDiff.form),
        ("replay", "a line of tracer replay --json", ReplayedLine.form),
        ("dump", "a line of tracer dump --json", DumpedLine.form),
        ("startup", "tracer startup --json", StartupTimeline.form),
        ("libs", "tracer libs --json", LibraryReport.form),
        ("waits", "tracer waits --json", WaitOutput.form),
        ("top", "a line of tracer top --json", TopSnapshot.form),
        ("stalls", "tracer stalls --json", StallReport.form),
        ("files", "tracer files --json", FileOutput.form),
        ("samples", "tracer samples --json", SampleReport.form),
    ]
}
