// dlopens that bring modules, and loads made inside libc (iconv, NSS): who asked for what, and when. The call itself is an
// event like any other; here it is joined with what the loader's hook tells. Everything of a thread: its own unit.
import CSupport
import CTraceLayout

enum Loads {
    /// When the loader began to add modules. Its lock is held from then on.
    nonisolated(unsafe) private static var openedTicks: UInt64 = 0

    static func opened(_ now: UInt64) { if openedTicks == 0 { openedTicks = now } }
    static func forgetOpened() { openedTicks = 0 }

    /// dlopen is called.
    static func asked(_ recorder: ThreadRecorder, _ spills: Spills) {
        let unit = recorder.unit
        unit.pointee.asked_ticks = Clock.ticks()
        unit.pointee.asked_place = spills.place
        unit.pointee.asked_caller = ModuleTable.index(of: spills.caller).map { UInt32($0) } ?? .max
        var path = TextBuffer(UnsafeMutableRawPointer(tracer_asked_path(unit)!).assumingMemoryBound(to: UInt8.self), capacity: 256)
        if let name = CText(bitPattern: UInt(spills.firstArgument)) { path.append(contentsOf: name) }
    }

    /// Its frame, when it has one: then its return will be seen.
    static func entered(_ recorder: ThreadRecorder, _ frame: Frame) {
        frame.pointee.reserved.0 = 0 // the load that it makes
        frame.pointee.reserved.1 = UInt64(UInt(bitPattern: recorder.unit.pointee.load))
        recorder.unit.pointee.load = frame
    }

    static func returned(_ recorder: ThreadRecorder, _ frame: Frame, _ now: UInt64) {
        let unit = recorder.unit
        if unit.pointee.load != frame { return } // a coroutine that has changed threads
        unit.pointee.load = outer(frame)
        unit.pointee.asked_ticks = 0
        if frame.pointee.owner == nil { Initializers.closeLeft(unit, below: frame.pointee.place) }
        let load = UInt32(truncatingIfNeeded: frame.pointee.reserved.0)
        if load == 0 || !TraceFile.isWritable { return }
        let usage = trace_usage.thread().at(now, own: OwnWork.ticks)
        var fixed = trace_load_end_record()
        fixed.load = load
        fixed.usage = usage
        Metadata.append(Int(TRACE_RECORD_LOAD_END), 0, fixed, isPassing: true)
        OwnWork.add(since: now, until: Clock.ticks())
    }

    /// It was left by an exception or longjmp.
    static func left(_ unit: UnsafeMutablePointer<thread_unit>, _ frame: Frame) {
        if unit.pointee.load == frame { unit.pointee.load = outer(frame) }
    }
    private static func outer(_ frame: Frame) -> Frame? { Frame(bitPattern: UInt(frame.pointee.reserved.1)) }

    /// The loader has mapped new modules, `first` among them, and relocated none.
    static func mapped(_ load: UInt32, _ first: CText, _ recorder: ThreadRecorder, _ place: UInt64, _ now: UInt64) {
        let unit = recorder.unit
        var fixed = trace_load_record()
        fixed.load = load
        fixed.thread = unit.pointee.index
        fixed.caller_module = .max
        fixed.initializer = Initializers.innermost(unit)
        fixed.opened_ticks = openedTicks
        openedTicks = 0
        let asked = CText(UnsafePointer<UInt8>(OpaquePointer(tracer_asked_path(unit)!)))
        // Of a dlopen whose return is not seen only the name tells whether it still runs: what came since may be libc's.
        let isRunning = unit.pointee.asked_ticks != 0 && place < unit.pointee.asked_place
            && (unit.pointee.load != nil || equal(baseName(asked), baseName(first)))
        var count = 0
        if isRunning {
            fixed.caller_module = unit.pointee.asked_caller
            fixed.begin_ticks = unit.pointee.asked_ticks
            count = length(asked)
            if let frame = unit.pointee.load { frame.pointee.reserved.0 = UInt64(load) }
            unit.pointee.asked_ticks = 0
        }
        fixed.path_bytes = UInt32(count)
        fixed.mapped = trace_usage.thread().at(now, own: OwnWork.ticks)
        Metadata.append(Int(TRACE_RECORD_LOAD), 0, fixed, asked, count, isPassing: true)
    }
}
