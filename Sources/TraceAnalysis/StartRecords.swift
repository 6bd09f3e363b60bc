// The records of how the process started: phases, initializers, loads, what its modules need and what they are bound to.
// In file order, as the agent wrote them; nothing is concluded here. docs/format.md says what each field means.
import CTraceLayout
import TraceFormat

/// What a thread (in a phase: the process) had used up at a moment. The difference of two is what lay between.
public struct Usage: Sendable, Equatable {
    public var ticks: Ticks
    /// Of the process: what the agent's own work on modules and initializers had taken so far.
    public var ownTicks: UInt64
    public var cpu: Nanoseconds
    public var minorFaults: UInt32
    public var majorFaults: UInt32

    init(_ usage: trace_usage) {
        ticks = Ticks(usage.ticks)
        ownTicks = usage.own_ticks
        cpu = Nanoseconds(usage.cpu_ns)
        minorFaults = usage.minor_faults
        majorFaults = usage.major_faults
    }
}

public struct Phase: Sendable {
    public enum Kind: Int, Sendable {
        case created = 1, exec, loader, agent, main, mainReturned, exit
    }
    public var kind: Kind
    /// All 0 of `created` and `exec`, all but the ticks of `loader`.
    public var usage: Usage
    /// When `created` and `exec` were; nil of others. `TraceFile.nanosecondsSinceStart` knows both ways.
    public var monotonic: Nanoseconds?
    /// It was at most so much earlier; 0: exactly then.
    public var error: Nanoseconds
    public var thread: UInt32
}

public struct Initializer: Sendable {
    public enum Kind: Int, Sendable {
        case preinitArray = 1, initializer, initArray, finalizer, finiArray
    }
    public struct End: Sendable {
        public var usage: Usage
        /// By an exception or longjmp, some time before.
        public var wasLeft: Bool
    }
    public var number: UInt32
    public var kind: Kind
    /// Number of the initializer during which it ran, on the same thread.
    public var parent: UInt32?
    public var module: UInt32
    /// In its array; 0 of DT_INIT and DT_FINI.
    public var index: UInt32
    public var thread: UInt32
    /// Number of the load that runs it; nil: of a module that was there at the start.
    public var load: UInt32?
    public var address: UInt64
    public var begin: Usage
    /// nil: it never came back.
    public var end: End?

    public var isFinalizer: Bool { kind == .finalizer || kind == .finiArray }
}

public struct Ready: Sendable {
    public enum Reason: Int, Sendable {
        case symbol = 1, mark, notify, output
    }
    public var reason: Reason
    public var function: UInt32?
    public var thread: UInt32
    public var ticks: Ticks
}

/// A dlopen, or a load inside libc, that brought modules.
public struct Load: Sendable {
    public var number: UInt32
    public var thread: UInt32
    public var callerModule: UInt32?
    /// Number of the initializer during which it was made.
    public var initializer: UInt32?
    public var begin: Ticks?
    public var opened: Ticks?
    public var mapped: Usage
    public var end: Usage?
    /// As it was asked for; empty: not known.
    public var path: String
}

/// A call of a once-function that found nothing done yet.
public struct Once: Sendable {
    public var function: UInt32
    public var thread: UInt32
    public var ticks: Ticks
    /// What it was given to run, 0 none.
    public var code: UInt64
    /// Address of its flag or guard variable.
    public var token: UInt64
}

public struct ModuleDetail: Sendable {
    public var module: UInt32
    /// Number of the load that brought it; nil: it was there at the start.
    public var load: UInt32?
    /// Numbers of the loads that brought it again after it was unloaded.
    public var laterLoads: [UInt32] = []
    public var relativeRelocations: UInt32
    public var relrBytes: UInt32
    public var symbolRelocations: UInt32
    public var otherRelocations: UInt32
    public var jumpSlots: UInt32
    public var isLazy: Bool
    public var mappedBytes: UInt64
    public var soname: String
    public var needed: [String]

    public func wasBrought(by number: UInt32) -> Bool { load == number || laterLoads.contains(number) }
}

public struct Binding: Sendable {
    public var module: UInt32
    public var toModule: UInt32
    public var calls: UInt32
    public var addresses: UInt32
}

public struct StartRecords: Sendable {
    public internal(set) var phases: [Phase] = []
    /// In the order in which they began.
    public internal(set) var initializers: [Initializer] = []
    public internal(set) var ready: [Ready] = []
    public internal(set) var loads: [Load] = []
    public internal(set) var onces: [Once] = []
    public internal(set) var moduleDetails: [UInt32: ModuleDetail] = [:]
    public internal(set) var bindings: [Binding] = []
    /// By number, where they are in the arrays.
    private var initializerPlaces: [UInt32: Int] = [:]
    private var loadPlaces: [UInt32: Int] = [:]

    /// The first of a kind.
    public func phase(_ kind: Phase.Kind) -> Phase? { phases.first { $0.kind == kind } }
    public func initializer(_ number: UInt32) -> Initializer? { initializerPlaces[number].map { initializers[$0] } }
    public func load(_ number: UInt32) -> Load? { loadPlaces[number].map { loads[$0] } }

    mutating func add(_ initializer: Initializer) {
        initializerPlaces[initializer.number] = initializers.count
        initializers.append(initializer)
    }
    /// An end whose beginning is in another file (the process was forked in between) is passed over.
    mutating func end(initializer number: UInt32, _ end: Initializer.End) {
        if let place = initializerPlaces[number] { initializers[place].end = end }
    }
    mutating func add(_ load: Load) {
        loadPlaces[load.number] = loads.count
        loads.append(load)
    }
    mutating func end(load number: UInt32, _ usage: Usage) {
        if let place = loadPlaces[number] { loads[place].end = usage }
    }
}

extension TraceFile {
    /// From time 0 of the trace, when the agent started: negative of what was before.
    public func nanosecondsSinceStart(_ phase: Phase) -> Int64 {
        if let monotonic = phase.monotonic {
            return Int64(truncatingIfNeeded: monotonic.count &- header.first.monotonic_ns)
        }
        return timeScale.signedNanoseconds(Int64(truncatingIfNeeded: phase.usage.ticks.raw &- header.first.ticks))
    }
}

/// nil for TRACE_NONE.
func known(_ number: UInt32) -> UInt32? { number == .max ? nil : number }
