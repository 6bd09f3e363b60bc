// What a trace says about itself, as data: `tracer info` and other programs read the same.
import CTraceLayout
import TraceFormat

extension TraceFile {
    public var stateText: String {
        switch Int(header.state) {
        case TRACE_RECORDING: "recording, or ended without a word (killed, _exit, exec)"
        case TRACE_FINISHED: "finished"
        case TRACE_STOPPED: "stopped: \(stopReason)"
        default: "unknown state \(header.state)"
        }
    }

    private var stopReason: String {
        switch Int(header.stop_reason) {
        case TRACE_STOP_NONE: "on request"
        case TRACE_STOP_SPACE: "no space left on the device"
        case TRACE_STOP_LIMIT: "the size limit was reached (TRACER_MAXSIZE)"
        case TRACE_STOP_FILE: "the file could not be written"
        case TRACE_STOP_MEMORY: "no memory"
        case TRACE_STOP_CONFINED: "the program confined itself with seccomp"
        case TRACE_STOP_NO_COUNTER: "the program forbade itself to read the cycle counter (PR_SET_TSC)"
        case TRACE_STOP_DISPATCH: "the program takes over its system calls (PR_SET_SYSCALL_USER_DISPATCH)"
        default: "reason \(header.stop_reason)"
        }
    }

    public var clockText: String {
        switch Int(header.clock) {
        case TRACE_CLOCK_TSC: "tsc"
        case TRACE_CLOCK_CNTVCT: "cntvct"
        case TRACE_CLOCK_MONOTONIC: "monotonic"
        default: "unknown clock \(header.clock)"
        }
    }

    public var machineText: String {
        switch header.machine {
        case 62: "x86_64"
        case 183: "aarch64"
        default: "machine \(header.machine)"
        }
    }

    public var modeText: String { isRing ? "ring" : "full" }
    public var ticksPerSecond: Double { 1e9 / timeScale.nanosecondsPerTick }

    public var flagTexts: [String] {
        var texts: [String] = []
        if header.flags & UInt32(TRACE_FLAG_LATE) != 0 { texts.append("constructors of libraries ran before the agent, which the loader put behind another library (libpthread before glibc 2.34, or one linked with -z initfirst): they and their calls are not recorded") }
        if header.flags & UInt32(TRACE_FLAG_NO_HOOK) != 0 { texts.append("modules loaded later were seen late: the loader's hook was not as expected") }
        if header.flags & UInt32(TRACE_FLAG_FOREIGN) != 0 { texts.append("calls from and to code compiled by GHC, OCaml or Go for shared libraries are not recorded: it has calling conventions of its own (docs/compatibility.md)") }
        return texts
    }

    /// Time from the agent's first instruction to the program's next, nil when not recorded.
    public var startCost: Nanoseconds? {
        header.started_ticks > header.start_ticks
            ? timeScale.nanoseconds(header.started_ticks - header.start_ticks) : nil
    }
    public var leafCost: Nanoseconds? {
        header.leaf_cost > 0 ? timeScale.nanoseconds((UInt64(header.leaf_cost) + UInt64(TRACE_COST_PARTS) / 2) / UInt64(TRACE_COST_PARTS)) : nil
    }
    public var minimumTime: Nanoseconds? { header.minimum_ticks > 0 ? timeScale.nanoseconds(header.minimum_ticks) : nil }

    public var arguments: [String] { metadata.texts[TRACE_TEXT_ARGUMENTS] ?? [] }
    public var directory: String? { metadata.texts[TRACE_TEXT_DIRECTORY]?.first }
    public var settings: [String] { metadata.texts[TRACE_TEXT_SETTINGS] ?? [] }
    public var environment: [String] { metadata.texts[TRACE_TEXT_ENVIRONMENT] ?? [] }
    public var messages: [String] { metadata.texts[TRACE_TEXT_MESSAGE] ?? [] }
    public var sortedModules: [Module] { metadata.modules.values.sorted { $0.index < $1.index } }

    /// The command line as one would type it.
    public var commandLine: String {
        arguments.isEmpty ? program : arguments.map(quotedForShell).joined(separator: " ")
    }

    /// "2024-05-17T08:30:12.123Z", nil when not recorded.
    public var startedAt: String? { header.first_realtime_ns == 0 ? nil : utcText(header.first_realtime_ns) }

    // In parts, each of a type that is written down: as one expression it took the compiler five seconds.
    public func infoJSON(_ summary: Summary) -> JSON {
        .object(aboutFile(summary) + counts(summary) + aboutProgram + [
            ("threads", .array(summary.threads.map(about))), ("modules", .array(sortedModules.map(about))),
        ])
    }

    private func aboutFile(_ summary: Summary) -> [(String, JSON)] {
        let isStopped = Int(header.state) == TRACE_STOPPED
        let depth: UInt64? = header.maximum_depth == 0 ? nil : UInt64(header.maximum_depth)
        let limit: UInt64? = header.size_limit == 0 ? nil : header.size_limit
        let members: [(String, JSON)] = [
            ("schema", .unsigned(1)),
            ("file", .string(path)), ("file_bytes", .unsigned(byteCount)), ("version", .unsigned(UInt64(header.version))),
            ("program", .string(program)), ("arguments", strings(arguments)), ("directory", text(directory)),
            ("pid", .unsigned(UInt64(header.pid))), ("ppid", .unsigned(UInt64(header.parent_pid))),
            ("session", .unsigned(header.session)),
            ("machine", .string(machineText)), ("clock", .string(clockText)), ("ticks_per_second", .number(ticksPerSecond)),
            ("started_at", text(startedAt)), ("duration_ns", .unsigned(summary.duration.count)),
            ("mode", .string(modeText)), ("state", .string(stateName)), ("stop_reason", text(isStopped ? stopReason : nil)),
            ("start_cost_ns", .time(startCost)), ("leaf_cost_ns", .time(leafCost)),
            ("minimum_ns", .time(minimumTime)), ("maximum_depth", number(depth)), ("size_limit", number(limit)),
        ]
        return members
    }

    private func counts(_ summary: Summary) -> [(String, JSON)] {
        let counts: [(String, UInt64)] = [
            ("calls", summary.calls), ("events", summary.events),
            ("enters", summary.enters), ("exits", summary.exits), ("completes", summary.completes),
            ("unwound", summary.unwound), ("orphans", summary.orphans),
            ("migrations", summary.migrations), ("marks", summary.marks), ("lost", summary.lost),
            ("unknown_words", summary.unknownWords),
            ("filtered_by_time", summary.filteredByTime), ("filtered_by_depth", summary.filteredByDepth),
            ("dropped", summary.dropped),
            ("chunks", UInt64(chunkCount)), ("metadata_chunks", UInt64(metadataChunkCount)),
            ("functions", UInt64(metadata.functions.count)),
        ]
        return counts.map { ($0.0, .unsigned($0.1)) }
    }

    private var aboutProgram: [(String, JSON)] {
        [("settings", strings(settings)), ("environment", strings(environment)), ("messages", strings(messages)),
         ("flags", strings(flagTexts)), ("warnings", strings(warnings))]
    }

    private func about(_ thread: ThreadSummary) -> JSON {
        let known = metadata.threads[thread.index]
        return .object([("tid", .unsigned(UInt64(thread.tid))), ("name", .string(thread.name)), ("calls", .unsigned(thread.calls)),
                        ("chunks", .unsigned(UInt64(thread.chunks))), ("missing_chunks", .unsigned(thread.missingChunks)),
                        ("open_frames", .unsigned(UInt64(thread.openFrames))),
                        ("started_ns", .time(known?.started.map(sinceStart))), ("ended_ns", .time(known?.ended.map(sinceStart)))])
    }

    private func about(_ module: Module) -> JSON {
        let id: String? = module.buildID.isEmpty ? nil : hexadecimal(module.buildID)
        return .object([("path", .string(module.path)), ("build_id", text(id)),
                        ("load_bias", .unsigned(module.loadBias)), ("low", .unsigned(module.addresses.lowerBound)),
                        ("high", .unsigned(module.addresses.upperBound)),
                        ("loaded_ns", .time(sinceStart(module.loaded))), ("unloaded_ns", .time(module.unloaded.map(sinceStart)))])
    }

    private func sinceStart(_ moment: Ticks) -> Nanoseconds { timeScale.nanoseconds(from: firstTicks, to: moment) }
    private func text(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }
    private func number(_ number: UInt64?) -> JSON { number.map { .unsigned($0) } ?? .null }

    private var stateName: String {
        switch Int(header.state) {
        case TRACE_RECORDING: "recording"
        case TRACE_FINISHED: "finished"
        case TRACE_STOPPED: "stopped"
        default: "unknown"
        }
    }

    private func strings(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }
}

func quotedForShell(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { byte in
        (0x30 ... 0x39).contains(byte) || (0x41 ... 0x5a).contains(byte) || (0x61 ... 0x7a).contains(byte)
            || "_-./=:,+@%".utf8.contains(byte)
    }
    return isPlain ? text : "'" + text.replacing("'", "'\\''") + "'"
}

/// Days to a civil date as in http://howardhinnant.github.io/date_algorithms.html#civil_from_days.
func utcText(_ nanoseconds: UInt64) -> String {
    let seconds = nanoseconds / 1_000_000_000
    let shifted = seconds / 86400 + 719_468
    let era = shifted / 146_097, dayOfEra = shifted % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let time = seconds % 86400
    return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(time / 3600, 2)):\(padded(time / 60 % 60, 2))"
        + ":\(padded(time % 60, 2)).\(padded(nanoseconds / 1_000_000 % 1000, 3))Z"
}
