// What a program may call (CSupport/include/tracer.h).
import CSupport

/// The setting is for children of this process, in which the page itself is wiped.
@c @implementation
public func tracer_start() {
    agent.settings.startsOn = true
    if agent.isRecorded && tracer_process_page().pointee.alive != 0 && tracer_process_page().pointee.dropping == 0 {
        tracer_store_release_32(&tracer_process_page().pointee.enabled, 1)
        withSignalsBlocked { ThreadRecorder.takeFastPath() }
    }
}

@c @implementation
public func tracer_stop() {
    agent.settings.startsOn = false
    tracer_store_release_32(&tracer_process_page().pointee.enabled, 0)
    if tracer_process_page().pointee.alive != 0 && !TraceFile.isConfined { withSignalsBlocked { ThreadRecorder.leaveFastPath() } }
}

@c @implementation
public func tracer_flush() {
    if !agent.isRecorded || tracer_process_page().pointee.alive == 0 || TraceFile.isConfined { return }
    withSignalsBlocked { TraceFile.flush() }
}
