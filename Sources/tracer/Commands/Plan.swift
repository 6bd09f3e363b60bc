// tracer plan: which functions of a module can be patched at their entries, and how.
import ArgumentParser
import CTraceLayout
import EntryPlan
import Presentation
import TraceAnalysis

struct Plan: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which functions of a program or library can be patched for recording, how, and why others cannot.",
        discussion: """
            Only reads the file; runs nothing. A plan is cached in ~/.cache/tracer/plans and made again when the file changes. \
            nops, jump5, jump2, word, trap: what is replaced at a function's entry (docs/functions.md).

            EXAMPLES
              tracer plan ./app
              tracer plan ./app --functions 'parse_*'       these functions, one per line
              tracer plan ./app ./libfoo.so --functions 'libfoo.so!*' --json
            """)

    @Argument(help: "Executables and shared libraries.", completion: .file())
    var modules: [String]

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Only functions that match: a GLOB of NAME, MODULE or MODULE!NAME. May be given several times.", valueName: "glob"))
    var functions: [String] = []

    @Flag(help: "Show one line per function.")
    var all = false

    @Flag(help: "Use an int3 where nothing else fits. Slow: a signal for each call.")
    var traps = false

    @Flag(inversion: .prefixedNo, help: "Cache the plan for the next time, in ~/.cache/tracer; on by default.")
    var cache = true

    @Flag(help: "One JSON object.")
    var json = false

    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    private struct Chosen {
        var plan: ModulePlan
        var module: String
        var functions: [plan_function]
        var patchedCount: Int { functions.count { $0.tactic != 0 } }
    }

    func run() throws {
        var chosen: [Chosen] = []
        for path in modules {
            do throws(PlanProblem) {
                let plan = try ModulePlan(path: path, options: PlanOptions(usesTraps: traps), cache: cache ? PlanCache() : nil)
                chosen.append(choose(plan))
            } catch {
                throw CommandFailure(message: error.message)
            }
        }
        if !functions.isEmpty, chosen.allSatisfy({ $0.functions.isEmpty }) {
            throw CommandFailure(
                message: "no function matches \(functions.joined(separator: ", ")): tracer plan \(modules[0]) --all lists them")
        }
        var output = display.output()
        if json {
            try writeJSON(chosen, &output)
        } else {
            try writeText(chosen, &output)
        }
        try output.finish()
    }

    private func choose(_ plan: ModulePlan) -> Chosen {
        let module = plan.path.split(separator: "/").last.map(String.init) ?? plan.path
        let patterns = functions.map { FunctionPattern($0) }
        let found = plan.file.withFunctions { all in
            patterns.isEmpty
                ? Array(all)
                : all.filter { function in
                    plan.file.names(of: function).contains { symbol in
                        let name = demangled(symbol)
                        return patterns.contains { $0.matches(name: name, symbol: symbol, module: module) }
                    }
                }
        }
        return Chosen(plan: plan, module: module, functions: found)
    }

    private func reason(_ function: plan_function) -> String { Reason(rawValue: function.reason)?.text ?? "" }
    private func tactic(_ function: plan_function) -> String { (Tactic(rawValue: function.tactic) ?? .none).name }

    private func writeJSON(_ chosen: [Chosen], _ output: inout Output) throws {
        let total = chosen.reduce(0) { $0 + $1.functions.count }, patched = chosen.reduce(0) { $0 + $1.patchedCount }
        try output.line("{\n  \"schema\": 1,\n  \"total\": \(total),\n  \"patched\": \(patched),\n  \"functions\": [")
        var count = 0
        for each in chosen {
            for function in each.functions {
                let symbols = each.plan.file.names(of: function)
                var members: [(String, JSON)] = [
                    ("name", .string(demangled(symbols[0]))), ("module", .string(each.plan.path)),
                    ("address", .string("0x" + String(each.plan.address(of: function), radix: 16))),
                    ("size", .unsigned(UInt64(function.byte_count))),
                    ("tactic", .string(tactic(function))), ("reason", function.reason == 0 ? .null : .string(reason(function))),
                ]
                if symbols.count > 1 { members.append(("aliases", .array(symbols.dropFirst().map { .string(demangled($0)) }))) }
                count += 1
                try output.line("    " + JSON.object(members).text(lines: 0) + (count == total ? "" : ","))
            }
        }
        try output.line("  ]\n}")
    }

    private func writeText(_ chosen: [Chosen], _ output: inout Output) throws {
        let used = Tactic.allCases.filter { tactic in
            tactic != .none && chosen.contains { $0.functions.contains { $0.tactic == tactic.rawValue } }
        }
        var table = TextTable(["functions", "patched", "share"] + used.map(\.name) + ["refused", "module"], leftAligned: [used.count + 4])
        for each in chosen {
            let counts = used.map { tactic in each.functions.count { $0.tactic == tactic.rawValue } }
            table.add(
                [grouped(each.functions.count), grouped(each.patchedCount), share(each)]
                    + counts.map { grouped($0) } + [grouped(each.functions.count - each.patchedCount), each.plan.path])
        }
        for line in table.lines(output.style, width: output.width) { try output.line(line) }
        try writeReasons(chosen, &output)
        guard all || !functions.isEmpty else { return }
        var list = TextTable(["address", "bytes", "tactic", "function"], leftAligned: [2, 3])
        let short = ShortNames(
            chosen.flatMap { each in each.functions.flatMap { each.plan.file.names(of: $0).map { demangled($0) } } }, names.style)
        for each in chosen {
            for function in each.functions {
                let names = each.plan.file.names(of: function).map { short[demangled($0)] }
                list.add([
                    "0x" + String(each.plan.address(of: function), radix: 16), grouped(function.byte_count), tactic(function),
                    (chosen.count > 1 ? each.module + "!" : "") + names.joined(separator: ", "),
                ])
            }
        }
        try output.line("")
        for line in list.lines(output.style, width: names.style == .full ? nil : output.width) { try output.line(line) }
    }

    /// All of them are 100.0%, and nothing else is.
    private func share(_ chosen: Chosen) -> String {
        let share = Double(chosen.patchedCount) / Double(chosen.functions.count)
        return percent(share < 1 ? min(share, 0.999) : share)
    }

    /// Writes the reasons of refusals, the most frequent first, each with some of its functions.
    private func writeReasons(_ chosen: [Chosen], _ output: inout Output) throws {
        var refused: [UInt8: [(Chosen, plan_function)]] = [:]
        for each in chosen {
            for function in each.functions where function.tactic == 0 { refused[function.reason, default: []].append((each, function)) }
        }
        for (number, functions) in refused.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
            try output.line("")
            try output.line("\(leftFilled(grouped(functions.count), 9))  \(Reason(rawValue: number)?.text ?? "")")
            let examples = functions.prefix(3).map { shortened(demangled($0.0.plan.file.names(of: $0.1)[0]), 60) }
            try output.line(output.style.dim("           " + examples.joined(separator: ", ") + (functions.count > 3 ? ", …" : "")))
        }
    }
}
