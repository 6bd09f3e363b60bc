// The agent in a forked child, as ForkWatch has noticed it.
import CSupport
import CTraceLayout

extension Agent {
    /// First slow path in a child. Its memory is a copy of the parent's: records of open frames are good, the mapped
    /// chunk is the parent's and must not be written to.
    mutating func becomeChild(_ recorder: inout ThreadRecorder) {
        Process.readNumber()
        ArgumentValues.becomeChild()
        Triggers.forgetTurn()
        FileJob.recorder = 0 // its parent is the program
        Message.isRecording = false
        Lock.asksKernel = false
        LoaderWatch.becomeChild()
        let wasRecorded = isRecorded
        recorder.forgetSharing()
        FramePool.becomeChild()
        FunctionTable.becomeChild()
        OpenedDescriptors.becomeChild()
        InstrumentedTable.becomeChild()
        HotFunctions.becomeChild()
        ModuleLock.becomeChild()
        ReturnLabels.becomeChild()
        ThreadRecorder.keepOnly(recorder)
        recorder.setChanging(false)
        MappingFaults.becomeChild()
        ClockWatch.becomeChild()
        tracer_process_page().pointee.alive = 1
        TraceOutput.flags &= ~UInt32(TRACE_FLAG_NO_START)
        isRecorded = TraceOutput.beginChild(isWanted: wasRecorded && settings.children)
        if !isRecorded {
            ModuleTable.forgetRecords()
            MetadataWriter.leaveParents() // slots may still be bound
            ReturnLabels.close()
            recorder.state.pointee.low = .max // every call passes at once
            return
        }
        ModuleTable.forgetRecords()
        MetadataWriter.copyFromParent()
        Triggers.describe()
        let now = Clock.ticks()
        TraceOutput.header.pointee.start_ticks = now
        if settings.startsOn && TraceOutput.isWritable {
            tracer_process_page().pointee.enabled = 1
            ReturnLabels.open()
            SessionControl.note(isOn: true, isBeginning: true)
        } else {
            ReturnLabels.close()
            SessionControl.note(isOn: false, isBeginning: true)
        }
        recorder.register()
        recorder.renewCounters()
        recorder.resumeCounting()
        TraceOutput.header.pointee.started_ticks = Clock.ticks()
        Message.isRecording = true
    }
}
