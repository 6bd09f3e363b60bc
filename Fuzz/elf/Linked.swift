// The trampolines are linked and never run. A message is in no trace.
@_cdecl("tracer_record_message") public func recordMessage(_: UnsafeRawPointer?, _: Int) {}
@_cdecl("tracer_agent_start") public func agentStart(_: CInt, _: UnsafeRawPointer?, _: UnsafeRawPointer?) {}
@_cdecl("tracer_agent_end") public func agentEnd() {}
@_cdecl("tracer_slow_enter") public func slowEnter() -> UnsafeRawPointer? { nil }
@_cdecl("tracer_slow_exit") public func slowExit() {}
@_cdecl("tracer_slow_loader_event") public func slowLoaderEvent() {}
@_cdecl("tracer_slow_bind") public func slowBind() -> UInt64 { 0 }
@_cdecl("tracer_slow_span") public func slowSpan() {}
@_cdecl("tracer_slow_instrumented_enter") public func slowInstrumentedEnter() {}
@_cdecl("tracer_slow_instrumented_exit") public func slowInstrumentedExit() {}
