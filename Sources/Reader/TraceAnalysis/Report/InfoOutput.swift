// What `tracer info --json` prints: one object for one trace, another for a run of several processes.
import CTraceLayout
import ELF
import Presentation
import TraceFormat

extension RunSummary {
    package var info: JSON { only.map { InfoOutput($0, summary).json } ?? RunInfoOutput(self).json }
}

package struct InfoOutput: Record {
    private let trace: TraceFile
    private let summary: Summary

    fileprivate init(_ trace: TraceFile, _ summary: Summary) {
        self.trace = trace
        self.summary = summary
    }

    private enum State: String, JSONChoice { case recording, finished, stopped, unknown }

    private var state: State {
        switch Int(trace.header.state) {
        case TRACE_RECORDING: .recording
        case TRACE_FINISHED: .finished
        case TRACE_STOPPED: .stopped
        default: .unknown
        }
    }

    private func sinceStart(_ moment: Ticks) -> Nanoseconds { trace.timeScale.nanoseconds(from: trace.firstTicks, to: moment) }

    private var threads: [InfoThread] {
        summary.threads.map { thread in
            let known = trace.metadata.threads[thread.index]
            return InfoThread(sums: thread, started: known?.started.map(sinceStart), ended: known?.ended.map(sinceStart))
        }
    }

    private var modules: [InfoModule] {
        trace.sortedModules.map { InfoModule(module: $0, loaded: sinceStart($0.loaded), unloaded: $0.unloaded.map(sinceStart)) }
    }

    private var suppressed: [SuppressedFunction] {
        let names = FunctionNames(trace.metadata)
        return trace.metadata.suppressed.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map { id, moment in
            let name = names.name(of: id)
            return SuppressedFunction(
                name: name.name, module: name.module, moment: sinceStart(moment), isCounted: trace.metadata.isCounted(id))
        }
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("file", \.trace.path)
        Member("file_bytes", \.trace.byteCount)
        Member("version", "of the file's format", \.trace.header.version)
        Member("program", \.trace.program)
        Member("arguments", \.trace.arguments)
        Member("directory", \.trace.directory)
        Member("pid", \.trace.header.pid)
        Member("ppid", \.trace.header.parent_pid)
        Member("session", "set by tracer record: the same in all processes of a run; 0 without it", \.trace.header.session)
        Member("machine", "x86_64 or aarch64", \.trace.architectureText)
        Member("clock", \.trace.clockText)
        Member("ticks_per_second", \.trace.ticksPerSecond)
        Member("started_at", "ISO 8601, UTC", \.trace.startedAt)
        Member("duration_ns", \.summary.duration)
        Member("mode", "full, ring or counts", \.trace.modeText)
        Member("state", \.state)
        Member("stop_reason", "why it was stopped; null in other states") { $0.state == .stopped ? $0.trace.stopReason : nil }
        Member("start_cost_ns", "how long the agent's own start took", \.trace.startCost)
        Member("leaf_cost_ns", "what recording a call costs; null under a time filter", \.trace.leafCost)
        Member("leaf_cost_error", "by how much that may be wrong, as a part of it") { $0.trace.leafCost == nil ? nil : $0.trace.costError }
        Member("minimum_ns", "shorter calls were not kept", \.trace.minimumTime)
        Member("maximum_depth") { $0.trace.header.maximum_depth == 0 ? nil : $0.trace.header.maximum_depth }
        Member("size_limit", "bytes") { $0.trace.header.size_limit == 0 ? nil : $0.trace.header.size_limit }
        counts
        Member("settings", "VARIABLE=value", \.trace.settings)
        Member("messages", "what the agent printed", \.trace.messages)
        Member("flags", "what is known to be missing, in words", \.trace.flagTexts)
        Member("warnings", "what is damaged", \.trace.warnings)
        Member("threads", \.threads)
        Member("modules", \.modules)
        Member("left_out", "functions of which not all calls are recorded from a moment on (record --keep-hot)", \.suppressed)
        Member("kernel", \.trace.metadata.kernel)
        Member("unrecorded", "programs of the run that have no trace, as far as they are known", \.trace.metadata.unrecorded)
    }

    private static let counts = declare {
        Member("calls", \.summary.calls)
        Member("events", \.summary.events)
        Member("enters", \.summary.enters)
        Member("exits", \.summary.exits)
        Member("completes", "events that are a whole call", \.summary.completes)
        Member("unwound", \.summary.unwound)
        Member("orphans", "exits without an enter", \.summary.orphans)
        Member("migrations", \.summary.migrations)
        Member("unknown_words", \.summary.unknownWords)
        Member("filtered_by_time", \.summary.filteredByTime)
        Member("filtered_by_depth", \.summary.filteredByDepth)
        Member("filtered_by_condition", \.summary.filteredByCondition)
        Member("dropped", \.summary.dropped)
        Member("agent_waits", "how often a thread waited until the agent had space for its calls", \.trace.agentWaits.count)
        Member("agent_wait_ns", "how long in all", \.trace.agentWaits.total)
        Member("longest_agent_wait_ns", \.trace.agentWaits.longest)
        Member("unrecorded_children", "forked processes for which no file could be created", \.trace.header.unrecorded_children)
        Member("chunks", \.trace.chunkCount)
        Member("metadata_chunks", \.trace.metadataChunkCount)
        Member("functions", \.trace.metadata.functions.count)
    }
}

private struct InfoThread: Record {
    var sums: ThreadSummary
    var started: Nanoseconds?
    var ended: Nanoseconds?

    static let members = declare {
        Member("tid", \.sums.tid)
        Member("name", \.sums.name)
        Member("calls", \.sums.calls)
        Member("chunks", \.sums.chunks)
        Member("missing_chunks", \.sums.missingChunks)
        Member("open_frames", \.sums.openFrames)
        Member("started_ns", "when it was first seen", \.started)
        Member("ended_ns", "when the agent noticed its end", \.ended)
    }
}

private struct InfoModule: Record {
    var module: Module
    var loaded: Nanoseconds
    var unloaded: Nanoseconds?

    static let members = declare {
        Member("path", \.module.path)
        Member("build_id") { $0.module.buildID.isEmpty ? nil : hexadecimal($0.module.buildID) }
        Member("load_bias", \.module.loadBias)
        Member("low", "addresses", \.module.addresses.lowerBound)
        Member("high", \.module.addresses.upperBound)
        Member("loaded_ns", \.loaded)
        Member("unloaded_ns", \.unloaded)
    }
}

/// A function of which no call is recorded from a moment on.
private struct SuppressedFunction: Record {
    var name: String
    var module: String
    var moment: Nanoseconds
    var isCounted: Bool

    static let members = declare {
        Member("function", \.name)
        Member("module", \.module)
        Member("after_ns", "since the beginning of the trace", \.moment)
        Member("counted", "true: calls that are not recorded are counted", \.isCounted)
    }
}

extension KernelGrant: Record {
    package static let members = declare {
        Member("asked", "of switches, major faults, minor faults, samples, page faults in the kernel, kernel stacks", \.asked.texts)
        Member("granted", "of these", \.granted.texts)
        Member("refusal", "why not the rest, and the command that allows it; null: all was granted", \.refusal)
        Member("paranoid", "kernel.perf_event_paranoid at that time; null: unknown", \.paranoid)
        Member("lost", "kernel records for which there was no space, of all processes of the run", \.lost)
        Member("period_ns", "CPU time from one sample to the next; null: no samples", \.period)
    }
}

/// What `tracer info --json` prints for a run of several processes.
package struct RunInfoOutput: Record {
    private let run: RunSummary

    fileprivate init(_ run: RunSummary) { self.run = run }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("run", "its directory", \.run.path)
        Member("command", \.run.commandLine)
        Member("started_at", \.run.startedAt)
        Member("duration_ns", \.run.summary.duration)
        Member("calls", \.run.summary.calls)
        Member("filtered_by_time", \.run.summary.filteredByTime)
        Member("filtered_by_depth", \.run.summary.filteredByDepth)
        Member("filtered_by_condition", \.run.summary.filteredByCondition)
        Member("dropped", \.run.summary.dropped)
        Member("agent_waits", "how often a thread waited until the agent had space for its calls", \.run.agentWaits.count)
        Member("agent_wait_ns", "how long in all", \.run.agentWaits.total)
        Member("longest_agent_wait_ns", \.run.agentWaits.longest)
        Member("used_bytes") { output in output.run.processes.reduce(UInt64(0)) { $0 &+ $1.byteCount } }
        Member("processes", "parents before their children", \.run.processes)
        Member("unrecorded", "programs that have no trace, as far as they are known", \.run.unrecorded)
        Member("warnings", \.run.warnings)
    }
}
