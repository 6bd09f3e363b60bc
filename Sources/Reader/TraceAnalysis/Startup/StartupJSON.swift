// What `tracer startup --json` prints. All moments are nanoseconds since the beginning of the timeline.
import Presentation

extension StartupTimeline: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("program", \.program)
        Member("command_line", \.commandLine)
        Member("pid", \.pid)
        Member("begin_monotonic_ns", "CLOCK_MONOTONIC at time 0", \.beginMonotonic)
        Member("begin_error_ns", "how much earlier it may have begun at most", \.beginError)
        Member("total_ns", "from exec until ready", \.total)
        Member("program_ns", "total_ns without tracer_ns: the stages add up to it", \.programTime)
        Member("tracer_ns", "the tracer's own time; the stages are without it", \.tracerTime)
        Member("recorded_calls", \.recordedCalls)
        Member("recording_ns", "an estimate of what recording these calls took; the stages include it", \.recordingTime)
        Member("ready", "null: the program was never ready", \.ready)
        Member("last_seen", "where the program was when it ended before it was ready", \.lastSeen)
        Member("minor_faults", \.minorFaults)
        Member("major_faults", \.majorFaults)
        Member("cpu_ns", \.cpu)
        Member("phases", \.stages)
        Member("constructors", \.constructors)
        Member("finalizers", \.finalizers)
        Member("libraries", \.libraries)
        Member("dlopens", \.loads)
        Member("lazy", "what was initialized at its first use", \.lazyInitializers)
        Member("items", "start-up items (TRACER_STARTUP_ITEM of tracer.h) that began before the program was ready, in this order", \.items)
        Member("marks", \.marks)
        Member("spans", \.spans)
        Member("advice", "what to look at first") { $0.advice() }
        Member(
            "files",
            "files that the process used until then, as tracer files has them; null: calls that use files were recorded without arguments",
            \.files)
        Member("loader_audit", "how long finding and mapping each library took; null without --loader") { $0.loaderAudit?.objects }
        Member("notes", \.notes)
    }

    private var ready: ReadyRow? {
        guard case .ready(let moment) = outcome else { return nil }
        return ReadyRow(moment: moment, at: total, others: otherMoments.map { OtherMoment(moment: $0.moment, at: $0.at) })
    }
}

/// The moment at which the program was ready.
private struct ReadyRow: Record {
    var moment: ReadyMoment
    var at: Nanoseconds
    var others: [OtherMoment]

    static let members = declare {
        Member("reason", \.moment.key)
        Member("text", \.moment.text)
        Member("pid", "the process that became ready, where the program has started it", \.moment.process?.pid)
        Member("at_ns", \.at)
        Member("others", "moments that might have been taken for it", \.others)
    }
}

/// A moment that might have been taken for ready.
private struct OtherMoment: Record {
    var moment: ReadyMoment
    var at: Nanoseconds

    static let members = declare {
        Member("reason", \.moment.key)
        Member("text", \.moment.text)
        Member("at_ns", \.at)
    }
}

extension StartupStage: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("kind", \.kind.rawValue)
        Member("start_ns", \.start)
        Member("duration_ns", "without tracer_ns", \.duration)
        Member("tracer_ns", "the tracer's own time in it", \.tracerTime)
        Member("exact", \.isExact)
        Member("cut", \.isCut)
        Member("states", "what the main thread did in it; the times add up to its duration; null: the kernel has not reported it", \.states)
    }
}

extension ConstructorRun: Record {
    package static let members = declare {
        Member("module", \.name.module)
        Member("name", \.name.name)
        Member("symbol", \.name.symbol)
        Member("file", "of the source", \.name.file)
        Member("line", \.name.line)
        Member("globals", "variables that it initializes", \.name.globals)
        Member("kind", \.kind)
        Member("order", \.number)
        Member("parent", "order of the one during which it ran", \.parent)
        Member("load", "order of the dlopen that ran it; null: its module was there from the start", \.load)
        Member("thread", \.tid)
        Member("start_ns", \.start)
        Member("total_ns", \.total)
        Member("self_ns", \.selfTime)
        Member("cpu_ns", \.cpu)
        Member("waiting_ns", "off-CPU, in total_ns, and waiting for something; null: the kernel has not reported it") { $0.offCPU?.waiting }
        Member("runnable_ns", "likewise, while others had the CPUs") { $0.offCPU?.runnable }
        Member("minor_faults", \.minorFaults)
        Member("major_faults", \.majorFaults)
        Member("calls", \.calls)
        Member("recording_ns", \.recording)
        Member("returned") { $0.isOver && !$0.wasLeft }
    }
}

extension Initializer.Kind: JSONValue {
    package static var form: JSONForm { .choice(allCases.map(\.text)) }
    package var json: JSON { .string(text) }

    var text: String {
        switch self {
        case .preinitArray: "preinit_array"
        case .initializer: "init"
        case .initArray: "init_array"
        case .finalizer: "fini"
        case .finiArray: "fini_array"
        }
    }
}

extension NeedForOthers: Record {
    package static let members = declare {
        Member("library", \.library)
        Member("users", "modules that are bound to it", \.users)
        Member("dependents", "those of them that do not need it themselves: without this need it might not be loaded", \.dependents)
    }
}

extension StartupLibrary: Record {
    package static let members = declare {
        Member("name", \.name).column("library", .text) { $0.name }
        Member("path", \.path)
        Member("load", "order of the dlopen that brought it; null: it was there from the start", \.load)
        Member("needed_by", \.neededBy).column("needed by", .text) { $0.needers }
        Member("unused_needs", "needed libraries to which nothing is bound, neither of it nor of others", \.unusedNeeds)
        Member("needs_for_others", "needed libraries of which it uses nothing, and others do", \.needsForOthers)
        Member("mapped_bytes", \.detail.mappedBytes).column("mapped") { readable(byteCount: $0.detail.mappedBytes) }
        Member("relative_relocations", \.detail.relativeRelocations)
        Member("compact_relocation_bytes", "size of the table of compact relocations (DT_RELR)", \.detail.relrBytes)
        Member("symbol_relocations", \.detail.symbolRelocations)
        Member("other_relocations", \.detail.otherRelocations)
        Member("jump_slots", \.detail.jumpSlots)
        Member.shown("relocations", "relocations") { grouped($0.relocations) }
        Member("lazy", "its functions are bound at their first call", \.detail.isLazy)
        Member("lookups", "of symbols, when it was loaded", \.lookups).column("look-ups") { grouped($0.lookups) }
        Member("bound_from_others", \.boundFromOthers)
        Member("constructors", \.constructorCount).column("constructors") {
            $0.constructorCount == 0 ? "-" : "\($0.constructorCount): \(readable($0.constructorTime))"
        }
        Member("constructor_ns", \.constructorTime)
        Member("calls", \.calls).column("calls") { grouped($0.calls) }
    }

    private var needers: String {
        let names = listed(neededBy, most: 3)
        guard load != nil else { return names.isEmpty ? "preloaded" : names }
        return names.isEmpty ? "opened by the program" : names + " (opened by the program)"
    }
}

extension LibraryLoad: Record {
    package static let members = declare {
        Member("path", \.path)
        Member("modules", \.modules)
        Member("caller", \.caller)
        Member("constructor", "during which it was called", \.constructor)
        Member("thread", \.tid)
        Member("start_ns", \.start)
        Member("total_ns", \.total)
        Member("load_ns", \.loading)
        Member("recording_ns", \.recording)
        Member("end_known", \.isEndKnown)
        Member("constructors_ns", \.constructors)
        Member("lock_wait_ns", "time in which another thread's dlopen had the loader's lock", \.lockWait)
        Member("lock_holder", "the library that the other one opened for the most of it; null: there was no other", \.lockHolder)
        Member("order", \.number)
    }
}

extension LazyRun: Record {
    package static let members = declare {
        Member("means", \.means)
        Member("module", \.name.module)
        Member("name", \.name.name)
        Member("symbol", \.name.symbol)
        Member("thread", \.tid)
        Member("start_ns", \.start)
        Member("duration_ns", \.duration)
        Member("recording_ns", \.recording)
        Member("during", \.during)
    }
}

extension ProgramMark: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("at_ns", \.at)
    }
}

extension ProgramSpan: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("thread", \.tid)
        Member("start_ns", \.at)
        Member("duration_ns", \.duration)
    }
}

extension StartupAdvice: Record {
    package static let members = declare {
        Member("text", \.text)
        Member("saving_ns", \.saving)
        Member("estimate", \.isEstimate)
    }
}

extension LoaderAudit.Object: Record {
    package static let members = declare {
        Member("path", \.path)
        Member("duration_ns", \.duration)
    }
}
