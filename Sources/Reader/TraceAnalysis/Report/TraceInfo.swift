// A trace's description of itself, as data: `tracer info` and other programs read the same.
import CTraceLayout
import ELF
import Presentation
import TraceFormat

extension TraceFile {
    package var stateText: String {
        switch Int(header.state) {
        case TRACE_RECORDING: processEnd?.text ?? "still recording, or ended abruptly (killed, exec)"
        case TRACE_FINISHED: isSnapshot ? "copied while it was being recorded" : "finished"
        case TRACE_STOPPED: "stopped: \(stopReason)"
        default: "unknown state \(header.state)"
        }
    }

    /// How the process or its recording ended; nil: with status 0, or it finished and nobody has written down how.
    var endText: String? {
        if Int(header.state) == TRACE_STOPPED { return stateText }
        guard let processEnd else { return Int(header.state) == TRACE_RECORDING ? "not finished" : nil }
        return processEnd == .exited(status: 0) ? nil : processEnd.text
    }

    /// True if the process may have gone on after what the trace has.
    var mayGoOn: Bool {
        switch Int(header.state) {
        case TRACE_RECORDING: processEnd == nil || processEnd == .running
        default: Int(header.state) == TRACE_STOPPED
        }
    }

    var stopReason: String {
        switch Int(header.stop_reason) {
        case TRACE_STOP_NONE: "on request"
        case TRACE_STOP_SPACE: "no space left on the device"
        case TRACE_STOP_LIMIT: "the size limit was reached (\(Variables.maximumSize.name))"
        case TRACE_STOP_FILE: "the file could not be written"
        case TRACE_STOP_MEMORY: "no memory"
        case TRACE_STOP_CONFINED: "the program confined itself with seccomp"
        case TRACE_STOP_NO_COUNTER: "the program disabled the cycle counter (PR_SET_TSC)"
        case TRACE_STOP_DISPATCH: "the program intercepts its own system calls (PR_SET_SYSCALL_USER_DISPATCH)"
        case TRACE_STOP_OUT_OF_REACH: "the program dropped the privileges to open the file, and the space allocated in it was used up"
        case TRACE_STOP_FILE_SIZE: "the file size limit was reached (ulimit -f)"
        case TRACE_STOP_QUOTA: "the disk quota was exceeded"
        default: "reason \(header.stop_reason)"
        }
    }

    /// Bytes that say something: the file may be longer, by a hole.
    package var usedByteCount: UInt64 { min(byteCount, max(header.next_offset, UInt64(TRACE_HEADER_BYTES))) }

    /// Calls that were made and are not here, of this process and of children that have no trace; nil when there are none.
    package var lossText: String? {
        let count = lostCalls, children = header.unrecorded_children
        if count == 0 && children == 0 { return nil }
        var parts: [String] = []
        if count > 0 { parts.append(grouped(count) + (count == 1 ? " call" : " calls")) }
        if children > 0 {
            parts.append("all calls of \(grouped(children)) forked process\(children == 1 ? "" : "es"), whose traces could not be created")
        }
        let text = parts.joined(separator: ", and ")
        return Int(header.state) == TRACE_STOPPED ? text + " (\(stateText))" : text
    }

    /// How the process ended, as a shell reports it; nil when nobody has written it down.
    package var exitStatus: Int32? {
        header.exit_status & UInt64(TRACE_EXIT_KNOWN) != 0 ? Int32(truncatingIfNeeded: header.exit_status) : nil
    }

    package var clockText: String {
        switch Int(header.clock) {
        case TRACE_CLOCK_TSC: "tsc"
        case TRACE_CLOCK_CNTVCT: "cntvct"
        case TRACE_CLOCK_MONOTONIC: "monotonic"
        default: "unknown clock \(header.clock)"
        }
    }

    package var architectureText: String {
        switch header.elf_machine {
        case 62: "x86_64"
        case 183: "aarch64"
        default: "ELF machine \(header.elf_machine)"
        }
    }

    package var modeText: String { isRing ? "ring" : hasCountsAlone ? "counts" : "full" }
    package var ticksPerSecond: Double { 1e9 / timeScale.nanosecondsPerTick }

    package var isSnapshot: Bool { header.flags & UInt32(TRACE_FLAG_SNAPSHOT) != 0 }
    /// What the copy was made for, and what it lacks; nil: it is no copy.
    private var snapshotText: String? {
        guard isSnapshot else { return nil }
        let request = header.request
        func moment(_ ticks: UInt64) -> String { readable(timeScale.nanoseconds(from: firstTicks, to: Ticks(timeScale.even(ticks)))) }
        var text = "snapshot"
        if request.number != 0 {
            let name = metadata.functions[request.function].map { demangled($0.rawName) } ?? "function \(request.function)"
            let begin = Ticks(timeScale.even(request.begin_ticks)), end = Ticks(timeScale.even(request.end_ticks))
            let took = "took \(readable(timeScale.nanoseconds(from: begin, to: end))), from \(moment(request.begin_ticks)) on"
            switch request.trigger {
            case TRACE_REQUEST_OWN: text += ": \"\(name)\" at \(moment(request.end_ticks))"
            case let trigger where trigger & UInt32(TRACE_REQUEST_ENDED) != 0:
                return text + ": signal \(request.function) has ended the process"
            case let trigger where trigger & UInt32(TRACE_REQUEST_STALL) != 0: text += ": a turn of the event loop \(took), until \(name)"
            case let trigger where trigger & UInt32(TRACE_REQUEST_EXCEPTION) != 0:
                text += ": an exception was raised at \(moment(request.end_ticks))"
            default: text += ": \(name) \(took)"
            }
            if let tid = metadata.threads[request.thread]?.tid { text += ", in thread \(tid)" }
        }
        if header.complete_ticks > header.first.ticks {
            text += "; before \(moment(header.complete_ticks)) calls are missing, which had been overwritten"
        }
        return text
    }

    package var flagTexts: [String] {
        var texts = [snapshotText, pauses.text, keptConditions.text].compactMap { $0 } + choiceTexts
        if isOfRunning { texts.append("recording began when the program already ran: the trace has no start") }
        if header.flags & UInt32(TRACE_FLAG_LATE) != 0 {
            texts.append(
                "constructors of libraries ran before the agent, which the loader initialized after another library (libpthread before glibc 2.34, or one linked with -z initfirst): they and their calls are not recorded"
            )
        }
        if header.flags & UInt32(TRACE_FLAG_NO_HOOK) != 0 {
            texts.append("modules loaded later were noticed late: the loader's hook was not as expected")
        }
        if header.flags & UInt32(TRACE_FLAG_FOREIGN) != 0 {
            texts.append(
                "calls from and to code compiled by GHC, OCaml or Go for shared libraries are not recorded: it has its own calling conventions (docs/reference/compatibility.md)"
            )
        }
        if header.flags & UInt32(TRACE_FLAG_NAMESPACE) != 0 {
            texts.append("calls inside a dlmopen namespace are not recorded: an unwinder there could not unwind through them")
        }
        if header.flags & UInt32(TRACE_FLAG_UNREADABLE) != 0 {
            texts.append("calls of a module whose dynamic section contradicts itself are not recorded")
        }
        return texts + coverageTexts
    }

    /// Texts on the functions that were selected for recording: how many are recorded, and which modules have no plan.
    private var coverageTexts: [String] {
        let patched = metadata.patched
        if patched.isEmpty { return [] }
        let functions = patched.values.reduce(0) { $0 + $1.functions }, recorded = patched.values.reduce(0) { $0 + $1.patched }
        var texts: [String] = []
        if functions > 0 {
            let running = metadata.leftWhileRunning.values.reduce(0, +), left = functions - recorded - running
            texts.append(
                "\(grouped(recorded)) of \(counted(functions, "function")) recorded"
                    + (left > 0 ? "; \(grouped(left)) not recorded: tracer plan shows why" : "")
                    + (running > 0 ? "; \(grouped(running)) not recorded: their code cannot be changed while threads run" : ""))
        }
        if !metadata.suppressed.isEmpty {
            let count = counted(UInt64(metadata.suppressed.count), "short function")
            texts.append("\(count) suppressed after many calls: --keep-hot records all")
        }
        let unplanned = patched.filter { $0.value.functions == 0 }.keys.sorted().compactMap { metadata.modules[$0] }.filter {
            !$0.isOfAgent
        }
        .map { $0.name }
        if !unplanned.isEmpty {
            texts.append("no plan for \(listed(unplanned, most: 4)): their functions are not recorded (tracer plan FILE)")
        }
        return texts
    }

    /// Time from the agent's first instruction to the program's next, nil when not recorded.
    package var startCost: Nanoseconds? {
        header.started_ticks > header.start_ticks
            ? timeScale.nanoseconds(header.started_ticks - header.start_ticks) : nil
    }
    package var leafCost: Nanoseconds? {
        header.leaf_cost > 0
            ? timeScale.nanoseconds((UInt64(header.leaf_cost) + UInt64(TRACE_COST_PARTS) / 2) / UInt64(TRACE_COST_PARTS)) : nil
    }
    package var minimumTime: Nanoseconds? { header.minimum_ticks > 0 ? timeScale.nanoseconds(header.minimum_ticks) : nil }

    package var arguments: [String] { metadata.texts[TRACE_TEXT_ARGUMENTS] ?? [] }
    /// The command line that the program has written over its own, as ps(1) shows it; nil: it has not, or the process is gone and did not
    /// end in order.
    package var title: String? {
        guard let title = metadata.texts[TRACE_TEXT_TITLE]?.last ?? livingTitle, !title.isEmpty else { return nil }
        return title.hasSuffix(arguments.joined(separator: " ")) ? nil : title // the loader's has its own name in front
    }

    /// Name of the process: what it calls itself (postgres: checkpointer), or what the program was called by.
    package var processName: String {
        if let title, let colon = title.firstIndex(of: ":"), colon != title.startIndex,
            !title[..<colon].contains(where: { " /".contains($0) })
        {
            return shortened(title, 40)
        }
        return nameOfMainThread ?? programName
    }

    /// The name that the main thread has given itself (prctl(2), PR_SET_NAME); nil: it has that of what was executed (execve(2)), or one
    /// that only adds to it. An older trace does not say what that was.
    private var nameOfMainThread: String? {
        guard let called = metadata.texts[TRACE_TEXT_CALLED]?.first.map({ basename($0) }),
            let main = chunksOfThread.lazy.compactMap({ $0.first }).first(where: { $0.tid == header.pid })?.thread
        else { return nil }
        let name = threadName(main)
        let isItsOwn = [called, programName, basename(program)].contains { $0.hasPrefix(name) || name.hasPrefix($0) }
        // The loader, where that was executed.
        return name.isEmpty || isItsOwn || ["ld-linux", "ld.so", TRACE_AGENT_TASK].contains { name.hasPrefix($0) } ? nil : name
    }

    /// The name that the program was called by: sh for sh, a link to dash; redis-server for one to redis-check-rdb. The file's own name
    /// where its first argument says something else than what was executed.
    package var programName: String {
        let own = basename(program)
        guard let word = arguments.first, !word.isEmpty else { return own }
        let called = basename(word.hasPrefix("-") ? String(word.dropFirst()) : word) // a login shell's has a dash
        guard called != own, !called.isEmpty else { return own }
        if let executed = metadata.texts[TRACE_TEXT_CALLED]?.first, basename(executed) == called { return called }
        // An older trace does not say what was executed; and the first argument of a script's interpreter is not the script.
        let paths =
            word.contains("/")
            ? [word.hasPrefix("/") ? word : (directory ?? ".") + "/" + word]
            : ["/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/", "/usr/local/bin/", program.dropLast(own.count) + ""].map { $0 + called }
        return paths.contains { resolvedPath($0) == program } ? called : own
    }

    /// Text on the kernel events that were requested, granted and refused; nil: none were requested.
    package var kernelText: String? { metadata.kernel?.text }

    package var directory: String? { metadata.texts[TRACE_TEXT_DIRECTORY]?.first }
    package var settings: [String] { metadata.texts[TRACE_TEXT_SETTINGS] ?? [] }
    /// Returns the value that a TRACER_ variable had; nil if the trace does not say.
    package func setting(_ name: String) -> String? {
        settings.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }
    package func setting<Grammar>(_ variable: Variable<Grammar>) -> Grammar.Value? {
        setting(variable.name.description).flatMap { variable.read($0) }
    }
    package var messages: [String] { metadata.texts[TRACE_TEXT_MESSAGE] ?? [] }
    package var sortedModules: [Module] { metadata.modules.values.sorted { $0.index < $1.index } }

    /// The command line as one would type it.
    package var commandLine: String {
        arguments.isEmpty ? program : shellCommand(arguments)
    }

    /// "2024-05-17T08:30:12.123Z", nil when not recorded.
    package var startedAt: String? { header.first_realtime_ns == 0 ? nil : UTC(nanoseconds: header.first_realtime_ns).iso8601 }
}
