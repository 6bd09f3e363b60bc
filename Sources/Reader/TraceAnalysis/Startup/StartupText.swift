// The timeline as a table for people.
import Presentation

extension StartupTimeline {
    /// - Parameter width: columns of the terminal; nil: lines may be of any length
    package func table(top: Int = 10, width: Int? = nil, style: TextStyle) -> String {
        var lines = headLines(style)
        lines += constructorLines(top, style)
        lines += lazyLines(top, style)
        lines += loadLines(top, style)
        lines += auditLines(top, style)
        lines += fileLines(top, style)
        lines += itemLines(top, style)
        lines += markLines(top, style)
        lines += adviceLines(style)
        lines += notes.map { style.alarm("note: \($0)") }
        return lines.flatMap { wrapped($0, width: width, indentation: 8) }.joined(separator: "\n") + "\n"
    }

    private var headline: String {
        let begin =
            stages.first.map { $0.name.hasPrefix("exec") ? "exec" : $0.name.hasPrefix("process") ? "process start" : "loader" } ?? "exec"
        if case .ready = outcome { return "\(begin) → ready" }
        return "\(begin) → end, never ready"
    }

    private func headLines(_ style: TextStyle) -> [String] {
        var faults = "page faults \(grouped(UInt64(minorFaults) + UInt64(majorFaults)))"
        if majorFaults > 0 { faults += ", \(grouped(UInt64(majorFaults))) from disk" }
        if case .ready = outcome { faults += " until main" }
        var rows: [(String, Nanoseconds, String, Bool)] = []
        for stage in stages {
            var detail = bar(stage.duration)
            if stage.kind == (loaderAudit == nil ? .load : .relocate) {
                let initial = libraries.filter { $0.load == nil }
                let relocations = initial.reduce(UInt64(0)) { $0 &+ $1.relocations },
                    lookups = initial.reduce(UInt64(0)) { $0 &+ $1.lookups }
                detail += (detail.isEmpty ? "" : "  ") + "\(grouped(relocations)) relocations, \(grouped(lookups)) symbol look-ups"
            }
            if let states = stage.states?.text, share(stage.duration) >= 0.01 { detail += (detail.isEmpty ? "" : "  ") + states }
            if stage.isCut { detail += (detail.isEmpty ? "" : "  ") + style.alarm("ended here") }
            rows.append(("  " + stage.name, stage.duration, detail, stage.isExact))
        }
        let isRecordingLong = recordingTime.count > programTime.count / 100
        if isRecordingLong {
            rows.append(("  recording \(grouped(recordedCalls)) calls", recordingTime, "within the stages, not subtracted", false))
            faults += "; ~\(percent(min(recordingTime, programTime).count, of: programTime.count)) of it recording"
        }
        rows.append(("tracer's own time", tracerTime, "not in the lines above: \(readable(total)) with it", true))
        let width = max(rows.map { $0.0.count }.max() ?? 0, 34)
        func line(_ name: String, _ time: Nanoseconds, _ detail: String, _ isExact: Bool) -> String {
            rightFilled(name, width) + leftFilled((isExact ? "" : "~") + column(readable(time)), 12) + (detail.isEmpty ? "" : "  " + detail)
        }
        var lines = [style.bold(line(headline, programTime, "(\(faults))", beginError.count == 0))]
        lines += rows.map { line($0.0, $0.1, $0.2, $0.3) }
        if let lastSeen { lines.append(style.alarm("  last seen: \(lastSeen)")) }
        for other in otherMoments.prefix(3) {
            lines.append(style.dim("  also \(other.moment.text): \(readable(programTime(at: other.at)))"))
        }
        return lines
    }

    private func bar(_ time: Nanoseconds) -> String { String(repeating: "█", count: Int((share(time) * 25).rounded())) }
    /// Share of the program's own time; at most 1, as in a damaged file a part may be longer than the whole.
    private func share(_ time: Nanoseconds) -> Double {
        programTime.count > 0 ? min(Double(time.count) / Double(programTime.count), 1) : 0
    }

    private func spaces(_ count: Int) -> String { String(repeating: " ", count: max(count, 0)) }

    func time(_ time: Nanoseconds, _ mark: String = "") -> String { leftFilled(mark + column(readable(time)), 11) }

    func ofWhole(_ time: Nanoseconds) -> String { leftFilled(Presentation.percent(share(time)), 6) }

    private func constructorLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard !constructors.isEmpty else { return [] }
        let sorted = constructors.sorted { ($0.selfTime, $1.number) > ($1.selfTime, $0.number) }
        let shown = sorted.filter { $0.selfTime.count >= 1000 || !$0.isOver }.prefix(top)
        let moduleWidth = min(shown.map { $0.name.module.count }.max() ?? 0, 40)
        let nameWidth = min(shown.map { caption($0).count }.max() ?? 0, 48)
        var lines = [style.bold("Constructors, by self time")]
        for run in shown {
            var facts: [String] = []
            if !run.isOver { facts.append(style.alarm(run.wasLeft ? "left by an exception or longjmp" : "did not return")) }
            if run.wasLeft, run.isOver { facts.append("left by an exception or longjmp") }
            func isMuch(_ time: Nanoseconds) -> Bool { time.count > 200_000 && time.count > run.total.count / 10 }
            if let off = run.offCPU {
                if isMuch(off.waiting) { facts.append("waited \(readable(off.waiting))") }
                if isMuch(off.runnable) { facts.append("runnable without a CPU \(readable(off.runnable))") }
            } else if isMuch(run.withoutCPU) {
                facts.append("off-CPU \(readable(run.withoutCPU))")
            }
            if run.minorFaults + run.majorFaults > 0 {
                facts.append(
                    counted(UInt64(run.minorFaults) + UInt64(run.majorFaults), "fault")
                        + (run.majorFaults > 0 ? " (\(run.majorFaults) from disk)" : ""))
            }
            if run.calls > 0 { facts.append(counted(run.calls, "call")) }
            if let cost = recording(run.selfRecording, of: run.selfTime) { facts.append(cost) }
            if run.total.count > run.selfTime.count + run.selfTime.count / 10 { facts.append("total \(readable(run.total))") }
            lines.append(
                "  " + time(run.selfTime) + "  " + ofWhole(run.selfTime) + "  " + rightFilled(run.name.module, moduleWidth)
                    + "  " + rightFilled(caption(run), facts.isEmpty ? 0 : nameWidth)
                    + (facts.isEmpty ? "" : "  " + facts.joined(separator: ", ")))
            if !run.name.globals.isEmpty {
                lines.append(style.dim(spaces(25 + moduleWidth) + "makes " + listed(run.name.globals, most: 6)))
            }
        }
        let rest = sorted.dropFirst(shown.count)
        if !rest.isEmpty {
            let sum = Nanoseconds(rest.reduce(UInt64(0)) { $0 &+ $1.selfTime.count })
            lines.append(style.dim("  " + time(sum) + spaces(10) + "\(grouped(UInt64(rest.count))) more"))
        }
        return lines
    }

    /// When it is a tenth of a time that matters.
    func recording(_ cost: Nanoseconds, of time: Nanoseconds) -> String? {
        time.count > 100_000 && cost.count > time.count / 10
            ? "~\(readable(Nanoseconds(min(cost.count, time.count)))) of it recording" : nil
    }

    private func caption(_ run: ConstructorRun) -> String {
        guard let location = run.name.sourceLocation, !run.name.name.hasSuffix(location) else { return run.name.name }
        return "\(run.name.name) (\(location))"
    }

    private func lazyLines(_ top: Int, _ style: TextStyle) -> [String] {
        let shortest = max(programTime.count / 2000, 10_000)
        let long = lazyInitializers.filter { ($0.duration?.count ?? 0) >= shortest }.sorted { $0.duration! > $1.duration! }
        guard !long.isEmpty else { return [] }
        var lines = [style.bold("Lazy initializers that ran before ready")]
        let moduleWidth = min(long.prefix(top).map { $0.name.module.count }.max() ?? 0, 28)
        for lazy in long.prefix(top) {
            lines.append(
                "  " + time(lazy.duration!) + spaces(10) + rightFilled(lazy.name.module, moduleWidth)
                    + "  \(lazy.name.name) (\(lazy.means))"
                    + (lazy.during.map { ", in \($0)" } ?? "") + (recording(lazy.recording, of: lazy.duration!).map { ", " + $0 } ?? ""))
        }
        if long.count > top { lines.append(style.dim(spaces(23) + "\(long.count - top) more")) }
        return lines
    }

    private func loadLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard !loads.isEmpty else { return [] }
        var lines = [style.bold("dlopen before ready")]
        let sorted = loads.sorted { ($0.total, $1.number) > ($1.total, $0.number) }
        let width = min(sorted.prefix(top).map { $0.name.count }.max() ?? 0, 40)
        for load in sorted.prefix(top) {
            var facts = (load.caller.map { "by \($0)" } ?? "by an unknown caller") + (load.constructor.map { " in \($0)" } ?? "")
            facts += ": load \(readable(load.loading)), constructors \(readable(load.constructors))"
            if let cost = recording(load.recording, of: load.total) { facts += ", " + cost }
            if let other = load.lockHolder { facts += ", waited \(readable(load.lockWait)) for the dlopen of \(other)" }
            if load.modules.count > 1 { facts += ", \(load.modules.count) modules" }
            if !load.isOver { facts += ", not finished" }
            lines.append("  " + time(load.total, load.isEndKnown ? "" : "≥ ") + spaces(10) + rightFilled(load.name, width) + "  " + facts)
        }
        if sorted.count > top { lines.append(style.dim(spaces(23) + "\(sorted.count - top) more")) }
        return lines
    }

    private func auditLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard let objects = loaderAudit?.objects, !objects.isEmpty else { return [] }
        let sorted = objects.enumerated().sorted { ($0.element.duration, $1.offset) > ($1.element.duration, $0.offset) }
        return [style.bold("Finding and mapping, by library")]
            + sorted.prefix(top).map {
                "  " + time($0.element.duration) + spaces(10) + $0.element.path
            } + (sorted.count > top ? [style.dim(spaces(23) + "\(sorted.count - top) more")] : [])
    }

    private func markLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard !marks.isEmpty || !spans.isEmpty else { return [] }
        var lines = [style.bold("Marks and spans of the program")]
        var previous: Nanoseconds?
        for mark in marks.prefix(top * 2) {
            let at = programTime(at: mark.at)
            let since = previous.map { ", \(readable(at.without($0))) after the one before" } ?? ""
            lines.append("  " + time(at) + spaces(10) + mark.name + since)
            previous = at
        }
        for span in spans.sorted(by: { ($0.duration?.count ?? .max) > ($1.duration?.count ?? .max) }).prefix(top) {
            lines.append(
                "  " + (span.duration.map { time($0) } ?? leftFilled("open", 11)) + spaces(10)
                    + "\(span.name), from \(readable(programTime(at: span.at)))")
        }
        return lines
    }

    private func adviceLines(_ style: TextStyle) -> [String] {
        let advice = advice()
        guard !advice.isEmpty else { return [] }
        return [style.bold("What to look at first")] + advice.map { "  " + time($0.saving, $0.isEstimate ? "~" : "") + "  " + $0.text }
    }
}
