// Notices that the process is a child: a page that the kernel zeroes in it (madvise(2), MADV_WIPEONFORK), which the
// trampolines look at anyway. So fork, raw clone and everything that libc does by itself are seen alike, at the first
// traced call or return in the child, and nothing has to be hooked.
import CSupport

enum ForkWatch {
    static func begin() -> Bool {
        let page = UInt64(UInt(bitPattern: tracer_process_page()))
        if SystemCall.call(SystemCall.madvise, Int(page), agent.pageBytes, 18) != 0 {
            Message.say { $0.append("this kernel has no MADV_WIPEONFORK (Linux 4.14): the program runs unrecorded") }
            return false
        }
        tracer_process_page().pointee.alive = 1
        return true
    }

    /// First slow path in a child. Its memory is a copy of the parent's: records of open frames are good, the mapped
    /// chunk is the parent's and must not be written to.
    static func becomeChild(_ recorder: inout ThreadRecorder) {
        agent.pid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.getpid))
        let wasRecorded = agent.isRecorded
        Initializers.becomeChild()
        FunctionTable.becomeChild()
        ReturnLabels.becomeChild()
        ThreadRecorder.keepOnly(recorder)
        MappingFaults.becomeChild(recorder)
        TraceFile.abandon()
        tracer_process_page().pointee.alive = 1
        agent.isRecorded = wasRecorded && agent.settings.children && TraceFile.begin()
        if !agent.isRecorded {
            recorder.state.pointee.low = .max // every call passes at once
            return
        }
        Metadata.copyFromParent()
        let now = Clock.ticks()
        TraceFile.header.pointee.start_ticks = now
        if agent.settings.startsOn && TraceFile.isWritable { tracer_process_page().pointee.enabled = 1 }
        recorder.register()
        TraceFile.header.pointee.started_ticks = Clock.ticks()
    }
}
