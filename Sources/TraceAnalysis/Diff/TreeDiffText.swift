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
            title + "\(time(before)) before, \(time(after)) after: " + style.bold(signed(after - before) + relative(before, after))
        }
        lines.append(sides("run             ", duration.before.medianSelf, duration.after.medianSelf) + verdict(duration.isNoise, style))
        for (title, row) in [("own code        ", own), ("in calls        ", inCalls)]
        where row.before.medianSelf != 0 || row.after.medianSelf != 0 {
            lines.append(sides(title, row.before.medianSelf, row.after.medianSelf) + noise(row.isNoise, style))
            if isCorrected {
                lines.append(
                    sides("    corrected   ", row.before.medianCorrected, row.after.medianCorrected) + noise(row.isCorrectedNoise, style))
            }
        }
        lines.append(
            "calls           \(number(whole.before.medianCalls)) before, \(number(whole.after.medianCalls)) after"
                + (whole.callDifference == 0 ? "" : ": \(signedNumber(whole.callDifference))"))
        let changed = functions.filter { judged($0.row) != 0 || $0.row.callDifference != 0 }
        let clear = changed.filter { isNoise($0.row) != true }
        let noise = changed.count - clear.count
        lines += ["", style.bold("functions, by their share of the difference (self time)")]
        if clear.isEmpty {
            lines.append(changed.isEmpty ? "no function differs" : "no function differs by more than the spread of the runs")
        }
        if !clear.isEmpty {
            var table = TextTable(columns + ["function", "module"], leftAligned: [columns.count, columns.count + 1])
            for row in top > 0 ? Array(clear.prefix(top)) : clear { table.add(cells(row.row) + [name(row, short), row.function.module]) }
            lines += table.lines(style, width: width)
            if top > 0, clear.count > top { lines.append(style.dim("… \(grouped(UInt64(clear.count - top))) more: --top 0")) }
        }
        if noise > 0 {
            lines.append(style.dim("\(counted(UInt64(noise), "function")) within the noise: runs before and after overlap"))
        }
        let chosen = paths.indices.filter { judged(paths[$0].row) != 0 && isNoise(paths[$0].row) != true }
            .sorted { abs(judged(paths[$0].row)) > abs(judged(paths[$1].row)) }
        if !chosen.isEmpty {
            lines += ["", style.bold("call paths, by the same measure")]
            var table = TextTable(columns + ["path"], leftAligned: [columns.count])
            for index in top > 0 ? Array(chosen.prefix(top)) : chosen { table.add(cells(paths[index].row) + [path(index, short)]) }
            lines += table.lines(style, width: width)
            if top > 0, chosen.count > top { lines.append(style.dim("… \(grouped(UInt64(chosen.count - top))) more: --top 0")) }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var columns: [String] {
        (isCorrected ? ["before", "corrected", "after", "corrected", "difference", "corrected"] : ["before", "after", "difference"])
            + ["calls before", "after"]
    }

    private func cells(_ row: Row) -> [String] {
        func side(_ side: Side) -> [String] {
            let times = [side.medianSelf] + (isCorrected ? [side.medianCorrected] : [])
            return times.map { isAbsent(side) ? "-" : time($0) }
        }
        return side(row.before) + side(row.after) + [signed(row.difference)] + (isCorrected ? [signed(row.correctedDifference)] : [])
            + [row.before, row.after].map {
                isAbsent($0) || row.before.medianCalls + row.after.medianCalls == 0 ? "-" : number($0.medianCalls)
            }
    }

    private func isAbsent(_ side: Side) -> Bool { side.medianCalls == 0 && side.medianSelf == 0 }

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

    private func time(_ nanoseconds: Double) -> String { column(readable(nanoseconds: nanoseconds)) }
    private func signed(_ nanoseconds: Double) -> String { column(readable(difference: nanoseconds)) }
    private func number(_ value: Double) -> String {
        value == value.rounded() ? grouped(UInt64(max(value, 0))) : grouped(UInt64(max(value, 0))) + ".5"
    }
    private func signedNumber(_ value: Double) -> String { (value < 0 ? "-" : "+") + number(abs(value)) }

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

    package func json() -> JSON {
        func side(_ side: Side) -> JSON {
            .object(
                [("calls", .array(side.calls.map { .number($0) })), ("self_ns", .array(side.selfTime.map { .number($0) }))]
                    + (isCorrected ? [("corrected_self_ns", .array(side.correctedSelf.map { .number($0) }))] : []))
        }
        func members(_ row: Row) -> [(String, JSON)] {
            [
                ("before", side(row.before)), ("after", side(row.after)), ("difference_ns", .number(row.difference)),
                ("within_noise", row.isNoise.map { .bool($0) } ?? .null),
            ]
                + (isCorrected
                    ? [
                        ("corrected_difference_ns", .number(row.correctedDifference)),
                        ("corrected_within_noise", row.isCorrectedNoise.map { .bool($0) } ?? .null),
                    ] : [])
        }
        return .object([
            ("schema", .unsigned(1)), ("before_ns", .number(duration.before.medianSelf)), ("after_ns", .number(duration.after.medianSelf)),
            ("whole", .object(members(whole))), ("own", .object(members(own))), ("in_calls", .object(members(inCalls))),
            (
                "functions",
                .array(
                    functions.map { row in
                        .object(
                            [
                                ("name", .string(row.function.name)), ("module", .string(row.function.module)),
                                ("former_name", row.formerName.map { .string($0) } ?? .null),
                            ] + members(row.row))
                    })
            ),
            (
                "paths",
                .array(
                    paths.map { path in
                        .object(
                            [("parent", .signed(Int64(path.parent))), ("function", .unsigned(UInt64(path.function)))] + members(path.row))
                    })
            ),
        ])
    }
}
