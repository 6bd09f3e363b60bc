// Start-up items for Swift programs: the runner is tracer_startup.c, which this module brings.
//
// Items are registered by a call, not declared. A macro as C has it would draw swift-syntax into every program that uses this module;
// and what Swift 6.3 puts into a section with @section is numbers and functions, while an item has a name.
import CTracerAPI

/// Work of the start that runs when the program says so, in the order of what depends on what.
public enum Startup {
    /// Thread on which an item runs.
    public enum Place: Sendable {
        /// On the thread that calls ``run(stage:)``.
        case caller
        /// On a thread of a pool, beside other items.
        case pool
    }

    /// Registers an item of a stage that has not been run. Names are free of commas. If several items may come next, they run by name of
    /// file, then by line.
    public static func item(
        stage: Int, _ name: String, after: [String] = [], on place: Place = .caller, file: StaticString = #fileID, line: UInt32 = #line,
        _ body: @escaping @Sendable () -> Void
    ) {
        let item = UnsafeMutablePointer<tracer_startup_item>.allocate(capacity: 1) // for ever, as a declared one is
        item.initialize(to: tracer_startup_item())
        item.pointee.run = { context in Unmanaged<Work>.fromOpaque(context!).takeRetainedValue().body() } // once
        item.pointee.context = Unmanaged.passRetained(Work(body)).toOpaque()
        item.pointee.names = UnsafePointer(kept(([name] + after).joined(separator: ", ")))
        item.pointee.file = Tracer.text(file)
        item.pointee.line = line
        item.pointee.stage = Int32(stage)
        item.pointee.flags = place == .pool ? TRACER_STARTUP_POOL : 0
        tracer_add_startup_item(item)
    }

    /// Runs the items of the stage, those of C and C++ too, and returns when they have ended. Each runs once.
    public static func run(stage: Int) { tracer_run_startup(Int32(stage)) }

    private final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    private static func kept(_ text: String) -> UnsafeMutablePointer<CChar> {
        text.withCString(encodedAs: UTF8.self) { bytes in
            let count = text.utf8.count + 1
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: count)
            bytes.withMemoryRebound(to: CChar.self, capacity: count) { copy.initialize(from: $0, count: count) }
            return copy
        }
    }
}
