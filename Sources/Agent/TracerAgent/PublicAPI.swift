// Functions that a program may call (CSupport/include/tracer.h), by way of entry.c.
import CSupport

/// The setting is for children of this process, in which the page itself is wiped.
@c @implementation
public func tracer_agent_resume() {
    agent.settings.startsOn = true
    if agent.isRecorded && tracer_process_page().pointee.alive != 0 && tracer_process_page().pointee.dropping == 0 {
        tracer_store_release_32(&tracer_process_page().pointee.enabled, 1)
        withSignalsBlocked {
            ReturnLabels.open()
            SessionControl.note(isOn: true)
        }
    }
}

@c @implementation
public func tracer_agent_pause() {
    agent.settings.startsOn = false
    tracer_store_release_32(&tracer_process_page().pointee.enabled, 0)
    if tracer_process_page().pointee.alive == 0 || TraceOutput.isConfined { return }
    withSignalsBlocked {
        ReturnLabels.close()
        SessionControl.note(isOn: false)
    }
}

@c @implementation
public func tracer_agent_set(_ setting: Int32, _ value: UInt64) -> Int32 {
    if !agent.isRecorded || tracer_process_page().pointee.alive == 0 || TraceOutput.isConfined { return 0 }
    var isDone = false
    withSignalsBlocked { isDone = SessionControl.set(setting, value) }
    return isDone ? 1 : 0
}

@c @implementation
public func tracer_agent_flush() {
    if !agent.isRecorded || tracer_process_page().pointee.alive == 0 || TraceOutput.isConfined { return }
    withSignalsBlocked { TraceOutput.flush() }
}
