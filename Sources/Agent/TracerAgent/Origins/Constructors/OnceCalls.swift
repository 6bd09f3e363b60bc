// swift_once(predicate, function, context), pthread_once(control, routine), __cxa_guard_acquire(guard): what they run, and
// for what, is in their arguments. Only calls that find the flag untouched come here.
import CSupport
import CTraceLayout

enum OnceCalls {
    static func record(
        _ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills, _ recorder: ThreadRecorder, isPassing: Bool
    ) {
        if !TraceOutput.isWritable { return }
        var fixed = trace_once_record()
        fixed.function = hook.pointee.function
        fixed.thread = recorder.context.pointee.index
        // The guard's function has one argument; its second register holds anything.
        fixed.code =
            ModuleTable.module(of: spills.secondArgument)?.pointee.image.isFirstCode(spills.secondArgument) == true
            ? spills.secondArgument : 0
        fixed.token = spills.firstArgument
        fixed.ticks = Clock.ticks()
        MetadataWriter.append(Int(TRACE_RECORD_ONCE), 0, fixed, isPassing: isPassing)
    }
}
