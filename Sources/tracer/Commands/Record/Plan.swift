import ArgumentParser
import CTraceLayout
import ELF
import EntryPlan
import Presentation
import TraceAnalysis

struct Plan: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which functions of a program or library can be patched for recording, how, and why others cannot.",
        usage: "tracer plan [options] FILE …",
        discussion: """
            Only reads the file; runs nothing. A plan is cached in ~/.cache/tracer/plans and made again when the file changes. \
            nops, jump5, jump2, neighbour, word, whole, trap: what is replaced at a function's entry; calls: its direct \
            calls are redirected (docs/guide/commands/plan.md).

            EXAMPLES
              tracer plan ./app
              tracer plan ./app --functions 'parse_*'   # these functions, one per line
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

    @Flag(inversion: .prefixedNo, help: "Cache the plan for the next time, in ~/.cache/tracer.")
    var cache = true

    @Flag(help: "One JSON object.")
    var json = false

    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func run() throws {
        let chosen = try modules.map { path in
            try orFail { try choose(ModulePlan(path: path, options: PlanOptions(usesTraps: traps), cache: cache ? PlanCache() : nil)) }
        }
        if !functions.isEmpty, chosen.allSatisfy({ $0.functions.isEmpty }) {
            throw CommandFailure("no function matches \(functions.joined(separator: ", ")): tracer plan \(modules[0]) --all lists them")
        }
        try display.output().show(PlanOutput(modules: chosen), json: json) { try writeText(chosen, $0) }
    }

    private func choose(_ plan: ModulePlan) -> PlannedFunctions {
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
        return PlannedFunctions(plan: plan, module: module, functions: found)
    }

    private func writeText(_ chosen: [PlannedFunctions], _ output: Output) throws {
        let used = Tactic.allCases.filter { tactic in
            tactic != .none && chosen.contains { $0.functions.contains { $0.tactic == tactic.rawValue } }
        }
        var table = TextTable(["functions", "patched", "share"] + used.map(\.name) + ["refused", "module"], leftAligned: [used.count + 4])
        for each in chosen {
            let counts = used.map { tactic in each.functions.count { $0.tactic == tactic.rawValue } }
            table.add(
                [grouped(each.functions.count), grouped(each.patchedCount), share(each)]
                    + counts.map { grouped($0) } + [grouped(each.functions.count - each.patchedCount), printable(each.plan.path)])
        }
        try output.lines(table.lines(output.style, width: output.width))
        try writeReasons(chosen, output)
        try writeDirectOnly(chosen, output)
        guard all || !functions.isEmpty else { return }
        let short = ShortNames(
            chosen.flatMap { each in each.functions.flatMap { each.plan.file.names(of: $0).map { demangled($0) } } }, names.style)
        let rows = chosen.flatMap { each in
            each.rows(prefix: chosen.count > 1 ? each.module + "!" : "") { short[$0] }
        }
        let list = TextTable(rows, PlanRow.columns(["address", "size", "tactic", "name"]))
        try output.line("")
        try output.lines(list.lines(output.style, width: names.style == .full ? nil : output.width))
    }

    /// All of them are 100.0%, and nothing else is.
    private func share(_ chosen: PlannedFunctions) -> String {
        let share = Double(chosen.patchedCount) / Double(chosen.functions.count)
        return percent(share < 1 ? min(share, 0.999) : share)
    }

    /// Writes how many functions miss calls by pointer, with some of them.
    private func writeDirectOnly(_ chosen: [PlannedFunctions], _ output: Output) throws {
        let found = chosen.flatMap { each in each.functions.filter(\.isDirectOnly).map { (each, $0) } }
        if !found.isEmpty { try write(found, "Recorded where they are called directly, not by pointer.", output) }
    }

    /// Writes the reasons of refusals, the most frequent first, each with some of its functions.
    private func writeReasons(_ chosen: [PlannedFunctions], _ output: Output) throws {
        var refused: [UInt8: [(PlannedFunctions, plan_function)]] = [:]
        for each in chosen {
            for function in each.functions where function.tactic == 0 { refused[function.reason, default: []].append((each, function)) }
        }
        for (number, functions) in refused.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
            try write(functions, Reason(rawValue: number)?.text ?? "", output)
        }
    }

    private func write(_ functions: [(PlannedFunctions, plan_function)], _ text: String, _ output: Output) throws {
        try output.line("")
        try output.line("\(leftFilled(grouped(functions.count), 9))  \(text)")
        let examples = functions.prefix(3).map { shortened(demangled($0.0.plan.file.names(of: $0.1)[0]), 60) }
        try output.line(output.style.dim("           " + examples.joined(separator: ", ") + (functions.count > 3 ? ", …" : "")))
    }
}

extension plan_function {
    /// Its direct calls are recorded, and there may be others.
    fileprivate var isDirectOnly: Bool { UInt32(flags) & UInt32(PLAN_FUNCTION_HELD) != 0 }
}

/// The functions of a module that are shown.
struct PlannedFunctions {
    fileprivate var plan: ModulePlan
    fileprivate var module: String
    fileprivate var functions: [plan_function]

    fileprivate var patchedCount: Int { functions.count { $0.tactic != 0 } }

    /// - Parameters:
    ///   - prefix: of names in tables
    ///   - short: how names are spelt in tables
    fileprivate func rows(prefix: String = "", _ short: @escaping (String) -> String = { $0 }) -> [PlanRow] {
        functions.map { PlanRow(plan: plan, function: $0, prefix: prefix, short: short) }
    }
}

/// What `tracer plan --json` prints.
struct PlanOutput: Presentation.Record {
    fileprivate var modules: [PlannedFunctions]

    static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("total") { $0.modules.reduce(0) { $0 + $1.functions.count } }
        Member("patched") { $0.modules.reduce(0) { $0 + $1.patchedCount } }
        Member("functions") { output in output.modules.flatMap { $0.rows() } }
    }
}

/// A function of a module, and how it can be patched.
private struct PlanRow {
    var plan: ModulePlan
    var function: plan_function
    /// Text before its names in tables.
    var prefix: String
    /// How names are spelt in tables.
    var short: (String) -> String

    var address: String { "0x" + String(plan.file.address(of: function), radix: 16) }
    var tactic: String { (Tactic(rawValue: function.tactic) ?? .none).name }
    /// nil: it can be recorded.
    var reason: String? { function.reason == 0 ? nil : Reason(rawValue: function.reason)?.text ?? "" }
    /// As in the file.
    var symbols: [String] { plan.file.names(of: function) }

    /// nil: it has one name.
    var aliases: [String]? {
        let others = symbols.dropFirst()
        return others.isEmpty ? nil : others.map { demangled($0) }
    }
}

extension PlanRow: Presentation.Record {
    static let members = declare {
        Member("name", "demangled") { demangled($0.symbols[0]) }.column("function", .text) { row in
            row.prefix + row.symbols.map { row.short(demangled($0)) }.joined(separator: ", ")
        }
        Member("module", \.plan.path)
        Member("address", "as linked, hexadecimal", \.address).column("address") { $0.address }
        Member("size", "in bytes", \.function.byte_count).column("bytes") { grouped($0.function.byte_count) }
        Member("tactic", "what is replaced at its entry; calls: its direct calls are redirected", \.tactic).column("tactic", .text) { row in
            row.tactic + (row.function.isDirectOnly ? ", not by pointer" : "")
        }
        Member("reason", "why it cannot be recorded; null where it can", \.reason)
        Member.optional("direct_only", "true: calls by pointer, or from other modules but through slots, are not recorded") {
            $0.function.isDirectOnly ? true : nil
        }
        Member.optional("aliases", "its other names, demangled") { $0.aliases }
    }
}
