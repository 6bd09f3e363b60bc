// The timeline as the JSON object that `tracer startup --json` promises. All moments are nanoseconds since its beginning.
import Presentation

extension StartupTimeline {
    // One member a statement: the compiler gives up on a large literal.
    package func json() -> JSON {
        var members: [(String, JSON)] = []
        func add(_ name: String, _ value: JSON) { members.append((name, value)) }
        func add(_ name: String, _ count: UInt64) { members.append((name, .unsigned(count))) }
        add("schema", 1)
        add("program", .string(program))
        add("command_line", .string(commandLine))
        add("pid", UInt64(pid))
        add("begin_monotonic_ns", beginMonotonic.count)
        add("begin_error_ns", beginError.count)
        add("total_ns", total.count)
        add("tracer_ns", tracerTime.count)
        add("recorded_calls", recordedCalls)
        add("recording_ns", recordingTime.count)
        add("ready", readyJSON)
        add("last_seen", .text(lastSeen))
        add("minor_faults", UInt64(minorFaults))
        add("major_faults", UInt64(majorFaults))
        add("cpu_ns", cpu.count)
        add("phases", .array(stages.map { Self.json($0) }))
        add("constructors", .array(constructors.map { Self.json($0) }))
        add("finalizers", .array(finalizers.map { Self.json($0) }))
        add("libraries", .array(libraries.map { Self.json($0) }))
        add("dlopens", .array(loads.map { Self.json($0) }))
        add("lazy", .array(lazyInitializers.map { Self.json($0) }))
        add("items", .array(items.map(\.json)))
        add("marks", .array(marks.map { Self.object(("name", .string($0.name)), ("at_ns", .unsigned($0.at.count))) }))
        add("spans", .array(spans.map { Self.json($0) }))
        add("advice", .array(advice().map { Self.json($0) }))
        add("loader_audit", loaderAudit.map { .array($0.objects.map { Self.json($0) }) } ?? .null)
        add("notes", .array(notes.map { .string($0) }))
        return .object(members)
    }

    private static func object(_ members: (String, JSON)...) -> JSON { .object(members) }

    private static func json(_ stage: StartupStage) -> JSON {
        object(
            ("name", .string(stage.name)), ("kind", .string(stage.kind.rawValue)), ("start_ns", .unsigned(stage.start.count)),
            ("duration_ns", .unsigned(stage.duration.count)), ("exact", .bool(stage.isExact)), ("cut", .bool(stage.isCut)),
            ("states", stage.states?.json ?? .null))
    }

    private static func json(_ lazy: LazyRun) -> JSON {
        object(
            ("means", .string(lazy.means)), ("module", .string(lazy.name.module)), ("name", .string(lazy.name.name)),
            ("symbol", .string(lazy.name.symbol)), ("thread", .unsigned(UInt64(lazy.tid))), ("start_ns", .unsigned(lazy.start.count)),
            ("duration_ns", .time(lazy.duration)), ("recording_ns", .unsigned(lazy.recording.count)), ("during", .text(lazy.during)))
    }

    private static func json(_ span: ProgramSpan) -> JSON {
        object(
            ("name", .string(span.name)), ("thread", .unsigned(UInt64(span.tid))), ("start_ns", .unsigned(span.at.count)),
            ("duration_ns", .time(span.duration)))
    }

    private static func json(_ advice: StartupAdvice) -> JSON {
        object(("text", .string(advice.text)), ("saving_ns", .unsigned(advice.saving.count)), ("estimate", .bool(advice.isEstimate)))
    }

    private static func json(_ object: LoaderAudit.Object) -> JSON {
        Self.object(("path", .string(object.path)), ("duration_ns", .unsigned(object.duration.count)))
    }

    private var readyJSON: JSON {
        guard case .ready(let moment) = outcome else { return .null }
        return .object([
            ("reason", .string(moment.key)), ("text", .string(moment.text)), ("at_ns", .unsigned(total.count)),
            (
                "others",
                .array(
                    otherMoments.map {
                        .object([("reason", .string($0.moment.key)), ("text", .string($0.moment.text)), ("at_ns", .unsigned($0.at.count))])
                    })
            ),
        ])
    }

    private static func json(_ run: ConstructorRun) -> JSON {
        let line: JSON = run.name.line.map { .unsigned(UInt64($0)) } ?? .null
        let parent: JSON = run.parent.map { .unsigned(UInt64($0)) } ?? .null
        let load: JSON = run.load.map { .unsigned(UInt64($0)) } ?? .null
        let names: [(String, JSON)] = [
            ("module", .string(run.name.module)), ("name", .string(run.name.name)), ("symbol", .string(run.name.symbol)),
            ("file", .text(run.name.file)), ("line", line), ("globals", .array(run.name.globals.map { .string($0) })),
            ("kind", .string(run.kindText)), ("order", .unsigned(UInt64(run.number))), ("parent", parent), ("load", load),
        ]
        let times: [(String, JSON)] = [
            ("thread", .unsigned(UInt64(run.tid))), ("start_ns", .unsigned(run.start.count)), ("total_ns", .unsigned(run.total.count)),
            ("self_ns", .unsigned(run.selfTime.count)), ("cpu_ns", .unsigned(run.cpu.count)),
            ("minor_faults", .unsigned(UInt64(run.minorFaults))),
            ("major_faults", .unsigned(UInt64(run.majorFaults))), ("calls", .unsigned(run.calls)),
            ("recording_ns", .unsigned(run.recording.count)), ("returned", .bool(run.isOver && !run.wasLeft)),
        ]
        return .object(names + times)
    }

    static func json(_ library: StartupLibrary) -> JSON {
        let load: JSON = library.load.map { .unsigned(UInt64($0)) } ?? .null
        let names: [(String, JSON)] = [
            ("name", .string(library.name)), ("path", .string(library.path)), ("load", load),
            ("needed_by", .array(library.neededBy.map { .string($0) })), ("unused_needs", .array(library.unusedNeeds.map { .string($0) })),
        ]
        let costs: [(String, JSON)] = [
            ("mapped_bytes", .unsigned(library.mappedBytes)), ("relative_relocations", .unsigned(library.relativeRelocations)),
            ("compact_relocation_bytes", .unsigned(library.compactBytes)), ("symbol_relocations", .unsigned(library.symbolRelocations)),
            ("other_relocations", .unsigned(library.otherRelocations)), ("jump_slots", .unsigned(library.jumpSlots)),
            ("lazy", .bool(library.isLazy)),
            ("lookups", .unsigned(library.lookups)), ("bound_from_others", .unsigned(library.boundFromOthers)),
            ("constructors", .unsigned(UInt64(library.constructorCount))), ("constructor_ns", .unsigned(library.constructorTime.count)),
            ("calls", .unsigned(library.calls)),
        ]
        return .object(names + costs)
    }

    private static func json(_ load: LibraryLoad) -> JSON {
        let members: [(String, JSON)] = [
            ("path", .string(load.path)), ("modules", .array(load.modules.map { .string($0) })), ("caller", .text(load.caller)),
            ("constructor", .text(load.constructor)), ("thread", .unsigned(UInt64(load.tid))), ("start_ns", .unsigned(load.start.count)),
            ("total_ns", .unsigned(load.total.count)), ("load_ns", .unsigned(load.loading.count)),
            ("recording_ns", .unsigned(load.recording.count)),
            ("end_known", .bool(load.isEndKnown)), ("constructors_ns", .unsigned(load.constructors.count)),
            ("order", .unsigned(UInt64(load.number))),
        ]
        return .object(members)
    }
}

extension ConstructorRun {
    package var kindText: String {
        switch kind {
        case .preinitArray: "preinit_array"
        case .initializer: "init"
        case .initArray: "init_array"
        case .finalizer: "fini"
        case .finiArray: "fini_array"
        }
    }
}

extension JSON {
    /// nil becomes null.
    static func text(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }
}
