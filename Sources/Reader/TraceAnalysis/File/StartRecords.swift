// The records of how the process started: phases, initializers, loads, what its modules need and what they are bound to.
// In file order, as the agent wrote them; nothing is concluded here. docs/reference/format.md says what each field means.
import CTraceLayout
import Presentation
import TraceFormat

/// Resources that a thread (in a phase: the process) had used up at a moment. The difference of two is the use in between.
package struct Usage: Sendable, Equatable {
    package var ticks: Ticks
    /// Ticks that the agent's own work on modules and initializers had taken so far, in the whole process.
    package var ownTicks: UInt64
    package var cpu: Nanoseconds
    package var minorFaults: UInt32
    package var majorFaults: UInt32

    init(_ usage: trace_usage) {
        ticks = Ticks(usage.ticks)
        ownTicks = usage.own_ticks
        cpu = Nanoseconds(usage.cpu_ns)
        minorFaults = usage.minor_faults
        majorFaults = usage.major_faults
    }
}

package struct Phase: Sendable {
    package enum Kind: Int, Sendable {
        case created = 1, exec, loader, agent, main, mainReturned, exit
    }
    package var kind: Kind
    /// All 0 of `created` and `exec`, all but the ticks of `loader`.
    package var usage: Usage
    /// When `created` and `exec` were; nil of others. `TraceFile.nanosecondsSinceStart` knows both ways.
    package var monotonic: Nanoseconds?
    /// It was at most this much earlier; 0: exactly then.
    package var error: Nanoseconds
    package var thread: UInt32
}

package struct Initializer: Sendable {
    package enum Kind: Int, Sendable, CaseIterable {
        case preinitArray = 1, initializer, initArray, finalizer, finiArray
    }
    package struct End: Sendable {
        package var usage: Usage
        /// True if it was left by an exception or longjmp, some time before.
        package var wasLeft: Bool
    }
    package var number: UInt32
    package var kind: Kind
    /// Number of the initializer during which it ran, on the same thread.
    package var parent: UInt32?
    package var module: UInt32
    /// In its array; 0 of DT_INIT and DT_FINI.
    package var index: UInt32
    package var thread: UInt32
    /// Number of the load that runs it; nil: of a module that was there at the start.
    package var load: UInt32?
    package var address: UInt64
    package var begin: Usage
    /// nil: it never came back.
    package var end: End?

    package var isFinalizer: Bool { kind == .finalizer || kind == .finiArray }
}

package struct Ready: Sendable {
    package enum Reason: Int, Sendable {
        case symbol = 1, mark, notify, output, frame
    }
    package var reason: Reason
    package var function: UInt32?
    package var thread: UInt32
    package var ticks: Ticks
}

/// A dlopen, or a load inside libc, that brought modules.
package struct Load: Sendable {
    package var number: UInt32
    package var thread: UInt32
    package var callerModule: UInt32?
    /// Number of the initializer during which it was made.
    package var initializer: UInt32?
    package var begin: Ticks?
    package var opened: Ticks?
    package var mapped: Usage
    package var end: Usage?
    /// As it was asked for; empty: not known.
    package var path: String
}

/// A call of a once-function that found nothing done yet.
package struct Once: Sendable {
    package var function: UInt32
    package var thread: UInt32
    package var ticks: Ticks
    /// Address of the function that it was given to run, 0 none.
    package var code: UInt64
    /// Address of its flag or guard variable.
    package var token: UInt64
}

/// A call has made a file descriptor, and the agent a record of that.
struct Opening: Sendable {
    var ticks: Ticks
    var thread: UInt32
    /// As of a `Usage`.
    var ownTicks: UInt64
}

package struct ModuleDetail: Sendable {
    package var module: UInt32
    /// Number of the load that brought it; nil: it was there at the start.
    package var load: UInt32?
    /// Numbers of the loads that brought it again after it was unloaded.
    package var laterLoads: [UInt32] = []
    package var relativeRelocations: UInt32
    /// Bytes of the table of compact relocations (DT_RELR): a word of it is up to 63 relocations.
    package var relrBytes: UInt32
    package var symbolRelocations: UInt32
    package var otherRelocations: UInt32
    package var jumpSlots: UInt32
    package var isLazy: Bool
    /// Bytes of its load segments.
    package var mappedBytes: UInt64
    package var soname: String
    package var needed: [String]

    package func wasBrought(by number: UInt32) -> Bool { load == number || laterLoads.contains(number) }
}

package struct Binding: Sendable {
    package var module: UInt32
    package var toModule: UInt32
    package var calls: UInt32
    package var addresses: UInt32
}

package struct StartRecords: Sendable {
    package internal(set) var phases: [Phase] = []
    /// In the order in which they began.
    package internal(set) var initializers: [Initializer] = []
    package internal(set) var ready: [Ready] = []
    package internal(set) var loads: [Load] = []
    package internal(set) var onces: [Once] = []
    var openings: [Opening] = []
    package internal(set) var moduleDetails: [UInt32: ModuleDetail] = [:]
    package internal(set) var bindings: [Binding] = []
    /// Array indices of initializers and loads, by number.
    private var initializerIndices: [UInt32: Int] = [:]
    private var loadIndices: [UInt32: Int] = [:]

    /// The first of a kind.
    package func phase(_ kind: Phase.Kind) -> Phase? { phases.first { $0.kind == kind } }
    package func initializer(_ number: UInt32) -> Initializer? { initializerIndices[number].map { initializers[$0] } }
    package func load(_ number: UInt32) -> Load? { loadIndices[number].map { loads[$0] } }

    /// Every moment in it becomes even. What the agent had used up stays: these are lengths, of the first rate.
    mutating func stretch(_ clock: ClockCorrection) {
        for index in phases.indices { clock.stretch(&phases[index].usage) }
        for index in initializers.indices {
            clock.stretch(&initializers[index].begin)
            if initializers[index].end != nil { clock.stretch(&initializers[index].end!.usage) }
        }
        for index in ready.indices { clock.stretch(&ready[index].ticks) }
        for index in loads.indices {
            clock.stretch(&loads[index].begin)
            clock.stretch(&loads[index].opened)
            clock.stretch(&loads[index].mapped)
            if loads[index].end != nil { clock.stretch(&loads[index].end!) }
        }
        for index in onces.indices { clock.stretch(&onces[index].ticks) }
        for index in openings.indices { clock.stretch(&openings[index].ticks) }
    }

    mutating func add(_ initializer: Initializer) {
        initializerIndices[initializer.number] = initializers.count
        initializers.append(initializer)
    }
    /// An end whose beginning is in another file (the process was forked in between) is passed over.
    mutating func end(initializer number: UInt32, _ end: Initializer.End) {
        if let index = initializerIndices[number] { initializers[index].end = end }
    }
    mutating func add(_ load: Load) {
        loadIndices[load.number] = loads.count
        loads.append(load)
    }
    mutating func end(load number: UInt32, _ usage: Usage) {
        if let index = loadIndices[number] { loads[index].end = usage }
    }
}

extension TraceFile {
    /// From time 0 of the trace, when the agent started: negative of what was before.
    package func nanosecondsSinceStart(_ phase: Phase) -> Int64 {
        if let monotonic = phase.monotonic {
            return Int64(truncatingIfNeeded: monotonic.count &- header.first.monotonic_ns)
        }
        return timeScale.signedNanoseconds(Int64(truncatingIfNeeded: phase.usage.ticks.raw &- header.first.ticks))
    }
}

/// nil for TRACE_NONE.
func known(_ number: UInt32) -> UInt32? { number == .max ? nil : number }
