// Slots that lead past their stubs, since functions have been chosen anew while the process runs (ChosenCalls.swift). Stubs stay: threads may be in
// them, and who is chosen again has his back. Each change is one store of a word, as the first was. ModuleLock is held.
import CSupport

enum GatedSlots {
    nonisolated(unsafe) private static var changes = Table<SlotChange>() // from the stub to what the slot holds meanwhile
    static var count: Int { changes.count }

    /// Slots of a bound module whose functions `NameFilter.later` does not admit.
    static func leaveOut(in index: Int) {
        let module = ModuleTable.modules.pointer(index)
        if NameFilter.later.admitsAllSlots || module.pointee.state != .bound { return }
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        var access = WriteAccess(image, isRelocated: true)
        for n in 0..<image.pointee.jumpRelocationCount {
            leaveOut(image.pointee.jumpRelocation(n), Architecture.jumpSlot, image, &access)
        }
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            leaveOut(image.pointee.dataRelocation(n), Architecture.globalData, image, &access)
        }
        access.close()
    }
    /// A slot that was just bound, at its first call.
    static func leaveOut(_ relocation: Relocation, in image: UnsafeMutablePointer<Image>) {
        if NameFilter.later.admitsAllSlots { return }
        var access = WriteAccess(image, isRelocated: true)
        leaveOut(relocation, Architecture.jumpSlot, image, &access)
        access.close()
    }

    @inline(never) private static func leaveOut(
        _ relocation: Relocation, _ type: UInt32, _ image: UnsafeMutablePointer<Image>, _ access: inout WriteAccess
    ) {
        let address = image.pointee.bias &+ relocation.offset
        guard relocation.type == type, relocation.symbol != 0, address & 7 == 0, let stub = image.pointee.word64(address),
            Stubs.isOne(stub),
            let symbol = image.pointee.symbol(relocation.symbol)?.pointee, let name = image.pointee.name(of: symbol),
            let other = other(Stubs.hook(ofStub: stub), stub, name), access.open(address),
            changes.append(SlotChange(address: address, old: stub, new: other))
        else { return }
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(address))!, other)
    }
    /// Returns what the slot of a function is to hold that is not recorded: as a name filter has it from the start (HookPolicy.decision). nil: it
    /// is recorded.
    private static func other(_ hook: UnsafeMutablePointer<function_hook>, _ stub: UInt64, _ name: CText) -> UInt64? {
        let id = hook.pointee.function
        if id == 0 { return nil } // SafetyHooks.swift
        let entry = FunctionTable.entry(id)
        guard entry.hook != .max, Stubs.address(of: Int(entry.hook)) == stub, entry.trigger == 0, entry.policy.mayBeLeftOut,
            entry.policy != .ready,
            !NameFilter.later.admits(function: name, path: ModuleTable.modules.pointer(Int(entry.module)).pointee.path)
        else { return nil }
        if entry.policy.isWatched { return SafetyHooks.stub(target: entry.target, policy: entry.policy) }
        return hook.pointee.target.map { UInt64(UInt(bitPattern: $0)) } // the function, or what stands in for it in any case
    }

    /// All have their stubs again.
    static func takeBack() { changes.putBack() }
    /// The module that had these addresses is no longer mapped.
    static func forget(_ low: UInt64, _ high: UInt64) { changes.forget(low, high) }
}
