// Code that the program makes at run time, which no module has. Run-time systems that make code find their own frames by the return address of
// the call that left them (Mono, for exceptions that pass native frames), or keep the code that such an address on the stack points into
// (conservative collectors: JavaScriptCore, SBCL). So a patched function that such code calls keeps its return address, and is recorded by its
// entry alone.
import CSupport

enum GeneratedCode {
    /// There may be some from now on.
    static func expect() {
        if ReturnLocations.areAnswered { return }
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state != .ignored && keepsItsOwn(&module.pointee.image) { return }
        }
        ReturnLabels.watch()
    }
    /// Returns true for a run-time system that is known to look at no such address. Durations are worth more there, and an entry alone takes the slow
    /// path. HotSpot has where Java was left in its JavaFrameAnchor, SpiderMonkey in exit frames of its own; the frames of LuaJIT and PHP are
    /// on no native stack.
    @inline(never) private static func keepsItsOwn(_ image: UnsafePointer<Image>) -> Bool {
        FunctionHome.isOne(of: "libjvm.", "libmozjs-", image) || Image.function("luaJIT_setmode", of: image) != nil
            || Image.function("execute_ex", of: image) != nil
    }
    @inline(__always) static func mayCall(_ hook: UnsafeMutablePointer<function_hook>) -> Bool {
        ReturnLabels.isWatching && hook.pointee.isPatched
    }
    /// Precondition: the address is no label.
    /// The id of a call's entry; nil: a module has made it, or a tail call.
    @inline(never) static func entry(_ hook: UnsafeMutablePointer<function_hook>, _ returnAddress: UInt64) -> UInt32? {
        if ModuleTable.index(of: returnAddress) != nil { return nil } // labels are in the agent's
        return FunctionTable.entryOnly(of: hook.pointee.function)
    }
}
