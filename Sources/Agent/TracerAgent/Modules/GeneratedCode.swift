// Code that the program makes at run time, which no module has. Run-time systems that make code find their own frames by the return address of
// the call that left them (Mono, for exceptions that pass native frames), or keep the code that such an address on the stack points into
// (conservative collectors: JavaScriptCore, SBCL). So a patched function that such code calls keeps its return address, and is recorded by its
// entry alone.
import CSupport

enum GeneratedCode {
    /// Its run-time system looks at no such address: durations are worth more there, and an entry alone takes the slow path. V8 has asked where its
    /// return addresses are, HotSpot has where Java was left in its JavaFrameAnchor, SpiderMonkey in exit frames of its own; the frames of LuaJIT
    /// and PHP are on no native stack.
    nonisolated(unsafe) static var looksAtNone = false

    /// A module has been loaded.
    @inline(never) static func note(_ image: UnsafePointer<Image>) {
        if FunctionHome.isOne(of: "libjvm.", "libmozjs-", image) || Image.function("luaJIT_setmode", of: image) != nil
            || Image.function("execute_ex", of: image) != nil
        {
            looksAtNone = true
        }
    }
    /// There may be some from now on.
    static func expect() {
        if !looksAtNone { ReturnLabels.watch() }
    }
    @inline(__always) static func mayCall(_ hook: UnsafeMutablePointer<function_hook>) -> Bool {
        ReturnLabels.isWatching && hook.pointee.isPatched
    }
    /// The id of a call's entry; nil: a module has made it, or a tail call.
    @inline(never) static func entry(_ hook: UnsafeMutablePointer<function_hook>, _ returnAddress: UInt64) -> UInt32? {
        if ModuleTable.index(of: returnAddress) != nil { return nil } // labels are in the agent's
        return FunctionTable.entryOnly(of: hook.pointee.function)
    }
}
