// Calls that the agent must see in order to do no harm: calls that change SIGBUS's disposition, confine the program, take the trace out
// of its reach, start a child in this memory, or end the process. If a name filter excludes such a function, or its caller is not
// recorded, the slot still leads to a stub: one without an id, which looks at the call, records nothing and jumps.
import CSupport

enum SafetyHooks {
    private struct Entry {
        var target: UInt64
        var policy: HookPolicy
        var stub: UInt64
    }
    nonisolated(unsafe) private static var entries = Table<Entry>() // a few, all of libc

    /// nil: there is no space. ModuleLock is held.
    static func stub(target: UInt64, policy: HookPolicy) -> UInt64? {
        for n in 0..<entries.count where entries[n].target == target && entries[n].policy == policy { return entries[n].stub }
        guard let (stub, hook) = FunctionTable.stub(kind: policy.kind) else { return nil }
        hook.pointee.target = UnsafeRawPointer(bitPattern: UInt(target))
        hook.pointee.head = UInt64(policy.rawValue) // no event is made of it
        _ = entries.append(Entry(target: target, policy: policy, stub: stub))
        return stub
    }

    /// Returns true for the hook of such a stub without an id; some or all of its calls are looked at.
    static func isOne(_ hook: UnsafeMutablePointer<function_hook>) -> Bool {
        isLooked(at: hook) && hook.pointee.function == 0
    }
    static func isLooked(at hook: UnsafeMutablePointer<function_hook>) -> Bool {
        hook.pointee.kind == UInt8(KIND_INSPECT) || hook.pointee.kind == UInt8(KIND_NUMBER)
    }
    static func policy(_ hook: UnsafeMutablePointer<function_hook>) -> HookPolicy {
        if isOne(hook) { return HookPolicy(rawValue: UInt8(truncatingIfNeeded: hook.pointee.head)) ?? .record }
        return FunctionTable.entry(hook.pointee.function).policy
    }
}
