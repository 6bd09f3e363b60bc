// dlopens that bring modules, and loads made inside libc (iconv, NSS): who asked for what, and when. The call itself is an
// event like any other; here it is joined with what the loader's hook reports. Everything of a thread: its own context.
import CSupport
import CTraceLayout

enum Loads {
    /// When the loader began to add modules. Its lock is held from then on.
    nonisolated(unsafe) private static var openedTicks: UInt64 = 0

    static func opened(_ now: UInt64) { if openedTicks == 0 { openedTicks = now } }
    static func forgetOpened() { openedTicks = 0 }

    /// dlopen is called.
    static func asked(_ recorder: ThreadRecorder, _ spills: Spills) {
        let context = recorder.context
        context.pointee.asked_ticks = Clock.ticks()
        context.pointee.asked_stack_pointer = spills.stackPointer
        context.pointee.asked_caller = ModuleTable.index(of: spills.caller).map { UInt32($0) } ?? .max
        var path = TextBuffer(UnsafeMutableRawPointer(tracer_asked_path(context)!).assumingMemoryBound(to: UInt8.self), capacity: 256)
        if let name = CText(bitPattern: UInt(spills.firstArgument)) { path.append(contentsOf: name) }
    }

    /// Its frame, when it has one: then its return will be seen.
    static func entered(_ recorder: ThreadRecorder, _ frame: Frame) {
        frame.pointee.reserved.0 = 0 // Frame.load
        frame.pointee.reserved.1 = UInt64(UInt(bitPattern: recorder.context.pointee.load))
        recorder.context.pointee.load = frame
    }

    /// It returns. False: it is not the innermost one of its thread, as with a coroutine that has changed threads.
    static func leave(_ recorder: ThreadRecorder, _ frame: Frame) -> Bool {
        let context = recorder.context
        if context.pointee.load != frame { return false }
        context.pointee.load = frame.outerLoad
        context.pointee.asked_ticks = 0
        return true
    }
    static func returned(_ load: UInt32, _ now: UInt64) {
        if !TraceOutput.isWritable { return }
        let usage = trace_usage.thread().at(now, own: OwnWork.ticks)
        var fixed = trace_load_end_record()
        fixed.load = load
        fixed.usage = usage
        MetadataWriter.append(Int(TRACE_RECORD_LOAD_END), 0, fixed, isPassing: true)
        OwnWork.add(since: now, until: Clock.ticks())
    }

    /// dlopen asks who called it when the name has no slash and the caller, or what loaded it, a run path, or contains a `$ORIGIN`-like
    /// token (dlopen(3)), and for the namespace of the caller.
    static func dependsOnCaller(name: UInt64, caller: UInt64) -> Bool {
        guard let name = CText(bitPattern: UInt(name)) else { return false }
        guard let index = ModuleTable.index(of: caller) else { return true }
        let module = ModuleTable.modules[index]
        if !module.inBaseNamespace { return true }
        var n = 0, hasSlash = false
        while name[n] != 0 {
            if name[n] == 0x24 { return true }
            if name[n] == 0x2f { hasSlash = true }
            n &+= 1
        }
        return !hasSlash && (module.image.hasRunpath || module.image.hasRpath || ModuleTable.hasRpath)
    }

    /// The loader has mapped new modules, `first` among them, and relocated none.
    static func mapped(
        _ load: UInt32, _ first: CText, _ recorder: ThreadRecorder, _ stackPointer: UInt64, _ now: UInt64,
        within initializer: UInt32
    ) {
        let context = recorder.context
        var fixed = trace_load_record()
        fixed.load = load
        fixed.thread = context.pointee.index
        fixed.caller_module = .max
        fixed.initializer = initializer
        fixed.opened_ticks = openedTicks
        openedTicks = 0
        let asked = CText(UnsafePointer<UInt8>(OpaquePointer(tracer_asked_path(context)!)))
        // If the return of a dlopen is not seen, only the name shows whether it still runs: what came since may be libc's.
        let isRunning =
            context.pointee.asked_ticks != 0 && stackPointer < context.pointee.asked_stack_pointer
            && (context.pointee.load != nil || equal(baseName(asked), baseName(first)))
        var count = 0
        if isRunning {
            fixed.caller_module = context.pointee.asked_caller
            fixed.begin_ticks = context.pointee.asked_ticks
            count = length(asked)
            if let frame = context.pointee.load { frame.pointee.reserved.0 = UInt64(load) }
            context.pointee.asked_ticks = 0
        }
        fixed.path_bytes = UInt32(count)
        fixed.mapped = trace_usage.thread().at(now, own: OwnWork.ticks)
        MetadataWriter.append(Int(TRACE_RECORD_LOAD), 0, fixed, asked, count, isPassing: true)
    }
}
