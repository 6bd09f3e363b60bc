// A difference as text: what it is as a whole, the functions that explain it, the paths that do.
import Presentation

extension TreeDiff {
    /// - Parameters:
    ///   - top: rows of each table, 0 all
    ///   - width: columns of the terminal, nil where lines may be of any length
    package func text(top: Int, width: Int?, names: NameStyle = .usual, _ style: TextStyle) -> String {
        var lines: [String] = []
        let short = ShortNames(functions.lazy.map { $0.function.name }, names)
        let width = names == .full ? nil : width
        func sides(_ title: String, _ before: Double, _ after: Double) -> String {
            title + "\(spelt(before)) before, \(spelt(after)) after: " + style.bold(signed(after - before) + relative(before, after))
        }
        lines.append(sides("run             ", duration.before.medianSelf, duration.after.medianSelf) + verdict(duration.isNoise, style))
        for (title, row) in [("own code        ", own), ("in calls        ", inCalls)]
        where row.before.medianSelf != 0 || row.after.medianSelf != 0 {
            lines.append(sides(title, row.before.medianSelf, row.after.medianSelf) + noise(row.isNoise, style))
            if isCorrected {
                lines.append(
                    sides("   ~corrected   ", row.before.medianCorrected, row.after.medianCorrected) + noise(row.isCorrectedNoise, style))
            }
        }
        lines.append(
            "calls           \(number(whole.before.medianCalls)) before, \(number(whole.after.medianCalls)) after"
                + (whole.callDifference == 0 ? "" : ": \(signedNumber(whole.callDifference))"))
        lines.append("compared by     " + timeText)
        let changed = functions.filter { judged($0.row) != 0 || $0.row.callDifference != 0 }
        let clear = changed.filter { isNoise($0.row) != true }
        let noise = changed.count - clear.count
        lines += ["", style.bold("functions, by their share of the difference (self time)")]
        if clear.isEmpty {
            lines.append(changed.isEmpty ? "no function differs" : "no function differs by more than the spread of the runs")
        }
        if !clear.isEmpty {
            let rows = (top > 0 ? Array(clear.prefix(top)) : clear).map {
                DiffedFunction(function: $0, isCorrected: isCorrected, title: name($0, short))
            }
            lines += TextTable(rows, DiffedFunction.columns(figureKeys + ["name", "module"])).lines(style, width: width)
            if top > 0, clear.count > top { lines.append(style.dim("… \(grouped(UInt64(clear.count - top))) more: --top 0")) }
        }
        if noise > 0 {
            lines.append(style.dim("\(counted(UInt64(noise), "function")) within the noise: runs before and after overlap"))
        }
        let chosen = paths.indices.filter { judged(paths[$0].row) != 0 && isNoise(paths[$0].row) != true }
            .sorted { abs(judged(paths[$0].row)) > abs(judged(paths[$1].row)) }
        if !chosen.isEmpty {
            lines += ["", style.bold("call paths, by the same measure")]
            let rows = (top > 0 ? Array(chosen.prefix(top)) : chosen).map {
                DiffedPath(path: paths[$0], isCorrected: isCorrected, title: path($0, short))
            }
            lines += TextTable(rows, DiffedPath.columns(figureKeys + ["path"])).lines(style, width: width)
            if top > 0, chosen.count > top { lines.append(style.dim("… \(grouped(UInt64(chosen.count - top))) more: --top 0")) }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// What the times are, and what they leave out.
    package var timeText: String {
        switch time {
        case .wall: return "wall time" + (runnable == nil ? ": not all of them say when their threads had a CPU" : "")
        case .running: return "time on a CPU"
        case .waiting: return "time spent waiting"
        case .runningAndWaiting:
            guard let runnable else { return "running and waiting" }
            return
                "running and waiting; without \(spelt(runnable.before.medianSelf)) before and \(spelt(runnable.after.medianSelf)) after in which others had the CPUs"
        }
    }

    private var figureKeys: [String] {
        (isCorrected
            ? ["before", "corrected_before", "after", "corrected_after", "difference_ns", "corrected_difference_ns"]
            : ["before", "after", "difference_ns"]) + ["calls_before", "calls_after"]
    }

    private func name(_ row: FunctionRow, _ short: ShortNames) -> String {
        short[row.function.name] + (row.formerName.map { " (was \($0))" } ?? "")
    }

    /// The innermost functions of a path, outermost first.
    private func path(_ index: Int, _ short: ShortNames) -> String {
        var names: [String] = []
        var next = index
        while next >= 0 {
            names.append(short[functions[paths[next].function].function.name])
            next = paths[next].parent
        }
        let kept = names.prefix(4).reversed().joined(separator: " > ")
        return names.count > 4 ? "… > " + kept : kept
    }

    private func relative(_ before: Double, _ after: Double) -> String {
        guard before > 0 else { return "" }
        return " (\(percent(difference: (after - before) / before)))"
    }

    private func verdict(_ isNoise: Bool?, _ style: TextStyle) -> String {
        switch isNoise {
        case true?: style.alarm("; within the noise: runs of one side differ as much")
        case false?: ""
        case nil: style.dim("; one run on each side: noise cannot be estimated")
        }
    }
    private func noise(_ isNoise: Bool?, _ style: TextStyle) -> String { isNoise == true ? style.alarm("; within the noise") : "" }
}

private func spelt(_ nanoseconds: Double) -> String { column(readable(nanoseconds: nanoseconds)) }
private func signed(_ nanoseconds: Double) -> String { column(readable(difference: nanoseconds)) }
private func number(_ value: Double) -> String {
    value == value.rounded() ? grouped(UInt64(max(value, 0))) : grouped(UInt64(max(value, 0))) + ".5"
}
private func signedNumber(_ value: Double) -> String { (value < 0 ? "-" : "+") + number(abs(value)) }

// MARK: - Members

extension TreeDiff: Record {
    package static let members = declare {
        Member("schema", "2; until 1 self times were always wall times") { _ in 2 }
        Member("before_ns", "duration of the whole run; of several runs the median", \.duration.before.medianSelf)
        Member("after_ns", \.duration.after.medianSelf)
        Member(
            "time",
            "what self times are: wall, running, waiting or running+waiting, which is without the time in which a thread could run and others had the CPUs",
            \.time.rawValue)
        Member("runnable_before_ns", "that time, of all threads; null: not known") { $0.runnable?.before.medianSelf }
        Member("runnable_after_ns") { $0.runnable?.after.medianSelf }
        Member("whole", "own code and calls together") { $0.figures($0.whole) }
        Member("own", "own code") { $0.figures($0.own) }
        Member("in_calls") { $0.figures($0.inCalls) }
        Member("functions", "those first that explain most of the difference") { diff in
            diff.functions.map { DiffedFunction(function: $0, isCorrected: diff.isCorrected) }
        }
        Member("paths", "in preorder") { diff in diff.paths.map { DiffedPath(path: $0, isCorrected: diff.isCorrected) } }
    }

    private func figures(_ row: Row) -> DiffFigures { DiffFigures(row: row, isCorrected: isCorrected) }
}

private struct DiffedFunction: Record {
    var function: TreeDiff.FunctionRow
    var isCorrected: Bool
    /// Its name in a table.
    var title = ""

    static let members = declare {
        Member("name", \.function.function.name).column("function", .text) { $0.title }
        Member("module", \.function.function.module).column("module", .text) { $0.function.function.module }
        Member("former_name", "where it was renamed", \.function.formerName)
        DiffFigures.figures { DiffFigures(row: $0.function.row, isCorrected: $0.isCorrected) }
    }
}

private struct DiffedPath: Record {
    var path: TreeDiff.PathRow
    var isCorrected: Bool
    /// Its functions in a table.
    var title = ""

    static let members = declare {
        Member("parent", "index in paths; -1 on the first level") { Int64($0.path.parent) }
        Member("function", "index in functions", \.path.function)
        DiffFigures.figures { DiffFigures(row: $0.path.row, isCorrected: $0.isCorrected) }
        Member.shown("path", "path", .text) { $0.title }
    }
}

/// The figures of both sides and their difference.
private struct DiffFigures: Record {
    var row: TreeDiff.Row
    /// Figures without the cost of recording are there, too.
    var isCorrected: Bool

    private var before: DiffSide { DiffSide(side: row.before, isCorrected: isCorrected) }
    private var after: DiffSide { DiffSide(side: row.after, isCorrected: isCorrected) }
    private var hasCalls: Bool { row.before.medianCalls + row.after.medianCalls != 0 }
    private var correctedDifference: Double? { isCorrected ? row.correctedDifference : nil }
    private var isCorrectedNoise: Bool?? { isCorrected ? .some(row.isCorrectedNoise) : nil }

    static let members = declare {
        figures { $0 }
    }

    /// Members of any record that has them.
    static func figures<Row: Record>(_ figures: @escaping @Sendable (Row) -> DiffFigures) -> [Member<Row>] {
        Row.declare {
            Member("before") { figures($0).before }.column("before") { figures($0).before.time }
            Member.shown("corrected_before", "~corrected") { figures($0).before.correctedTime }
            Member("after") { figures($0).after }.column("after") { figures($0).after.time }
            Member.shown("corrected_after", "~corrected") { figures($0).after.correctedTime }
            Member("difference_ns", "between the medians") { figures($0).row.difference }
                .column("difference") { signed(figures($0).row.difference) }
            Member("within_noise", "null with one run on each side") { figures($0).row.isNoise }
            Member.optional("corrected_difference_ns") { figures($0).correctedDifference }
                .column("~corrected") { signed(figures($0).row.correctedDifference) }
            Member.optional("corrected_within_noise") { figures($0).isCorrectedNoise }
            Member.shown("calls_before", "calls before") { figures($0).hasCalls ? figures($0).before.calls : "-" }
            Member.shown("calls_after", "after") { figures($0).hasCalls ? figures($0).after.calls : "-" }
        }
    }
}

/// The figures of one side.
private struct DiffSide: Record {
    var side: TreeDiff.Side
    var isCorrected: Bool

    private var isAbsent: Bool { side.medianCalls == 0 && side.medianSelf == 0 }
    var time: String { isAbsent ? "-" : spelt(side.medianSelf) }
    var correctedTime: String { isAbsent ? "-" : spelt(side.medianCorrected) }
    var calls: String { isAbsent ? "-" : number(side.medianCalls) }

    static let members = declare {
        Member("calls", "of each run", \.side.calls)
        Member("self_ns", \.side.selfTime)
        Member.optional("corrected_self_ns", "with --correct") { $0.isCorrected ? $0.side.correctedSelf : nil }
    }
}
