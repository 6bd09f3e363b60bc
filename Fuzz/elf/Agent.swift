// What the agent's ELF code, compiled for the host, finds around it: the few things it asks of the rest of the agent.
import CSupport

struct Agent {
    var settings = Settings()
    let pageBytes = 4096
    let clock: UInt32 = 0
    let pid: UInt32 = 4711
    let isAlone = true
}
nonisolated(unsafe) var agent = Agent()

struct Module: BitwiseCopyable {
    var image: Image
    var path: CText
    var state = State.pending
    var name: CText { baseName(path) }
    enum State: UInt8 { case pending, retired }
}

enum ModuleTable {
    nonisolated(unsafe) static var modules = Table<Module>()
    nonisolated(unsafe) static var filters = Table<BloomFilter>()
}

enum GlobalDefinitions {
    static func isKnown(_ query: SymbolQuery) -> Bool { false }
}

enum FunctionTable {
    static func prefetch(_ name: Name) {}
}

enum Message {
    nonisolated(unsafe) static var said = 0

    static func say(_ parts: (inout TextBuffer) -> Void) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1024) { room in
            var line = TextBuffer(room.baseAddress!, capacity: 1024)
            parts(&line)
            said &+= line.count
        }
    }
}

// The trampolines are linked and never run.
@_cdecl("tracer_agent_start") public func agentStart(_: CInt, _: UnsafeRawPointer?, _: UnsafeRawPointer?) {}
@_cdecl("tracer_agent_end") public func agentEnd() {}
@_cdecl("tracer_slow_enter") public func slowEnter() -> UnsafeRawPointer? { nil }
@_cdecl("tracer_slow_exit") public func slowExit() {}
@_cdecl("tracer_slow_loader_event") public func slowLoaderEvent() {}
@_cdecl("tracer_slow_span") public func slowSpan() {}
