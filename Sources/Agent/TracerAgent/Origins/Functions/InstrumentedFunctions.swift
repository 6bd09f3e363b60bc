// -finstrument-functions: each function of the program calls __cyg_profile_func_enter and _exit, with its own address and the one that it
// returns to (gcc, "Program Instrumentation Options"). libc's do nothing (glibc debug/noophooks.c): the agent's stand in their slots, and
// the calls are recorded like all others. Somebody else's are left alone.
import CSupport
import CTraceLayout

enum InstrumentedFunctions {
    nonisolated(unsafe) private static var hooks = Table<function_hook>() // InstrumentedTable's lock is held by who appends

    /// Returns our function for a slot with this name.
    static func substitute(for name: Name) -> UInt64 {
        equal(name.text, literal: "__cyg_profile_func_enter") ? tracer_address_instrumented_enter() : tracer_address_instrumented_exit()
    }

    static func enter(_ recorder: ThreadRecorder, _ function: UInt64, at stackPointer: UInt64, from site: UInt64) {
        let index = ModuleTable.index(of: function)
        let found = InstrumentedTable.hook(
            of: function,
            { $0.pointee.function != 0 && FunctionTable.entry($0.pointee.function).module == UInt32(index ?? Int(Int32.max)) },
            { make(function, index) })
        guard let hook = found else { return TraceOutput.drop() }
        if hook.pointee.instant != 0 { return } // it is not to be recorded
        recorder.enterInstrumented(hook, at: stackPointer, from: site)
    }

    private static func make(_ function: UInt64, _ index: Int?) -> InstrumentedTable.Hook? {
        let hookIndex = hooks.count
        var hook = function_hook()
        hook.target = UnsafeRawPointer(bitPattern: UInt(function))
        hook.kind = UInt8(KIND_CALL)
        hook.instant = 1 // not recorded, as code that was made at run time
        if let index {
            let module = ModuleTable.modules.pointer(index)
            if NameFilter.admits(address: function &- module.pointee.image.bias, path: module.pointee.path),
                let id = FunctionTable.locked({ FunctionTable.number(function, module: index, low: module.pointee.image.low) })
            {
                hook.function = id
                hook.head = Event.head(.enter, id)
                hook.instant = 0
            }
        }
        if !hooks.append(hook) { return nil }
        return hooks.pointer(hookIndex)
    }
}
