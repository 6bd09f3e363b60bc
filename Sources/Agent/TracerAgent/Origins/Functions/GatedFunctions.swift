// Functions with an entry patch that lead past the recorder, since functions have been chosen anew while the process runs (ChosenCalls.swift). Their
// stubs read at each call where they go, and go to the function by one store, as those of suppressed functions do (HotFunctions.swift): the code
// stays as it is, whoever is in a stub goes on, and open calls end as ever. ModuleLock is held.
import CSupport
import CTraceLayout

enum GatedFunctions {
    private struct Gated: BitwiseCopyable {
        let hook: UnsafeMutablePointer<function_hook>
        let instant: UInt64 // FUNCTION_ENTER, before
    }
    nonisolated(unsafe) private static var gated = Table<Gated>()
    static var count: Int { gated.count }

    /// What a task of our own reads: a descriptor in the program's table would be inherited by who is forked meanwhile (FileJob.swift).
    nonisolated(unsafe) private static var source: PlanSource?
    nonisolated(unsafe) private static var index = 0

    /// Functions of a module that `NameFilter.later` does not admit. False: its plan, which has their names, cannot be read any more, and they are
    /// recorded as before.
    static func leaveOut(in module: Int) -> Bool {
        guard !NameFilter.later.admitsAll, let patched = PatchedFunctions.hooks(of: module) else { return true }
        index = module
        source = nil
        var job = FileJob(.other, at: 0, 0)
        job.work = { GatedFunctions.source = PatchedFunctions.namedPlan(of: GatedFunctions.index) }
        job.run()
        guard let found = source else { return false }
        defer {
            found.release()
            source = nil
        }
        let entry = ModuleTable.modules.pointer(module), isMain = entry.pointee.image.contains(Process.entry)
        for n in 0..<patched.count {
            let hook = patched.first + n
            var address: UInt64 = 0, isWatched = false
            FunctionTable.locked {
                if hook.pointee.kind == UInt8(KIND_UNNAMED) {
                    address = patched.base &+ hook.pointee.head
                } else {
                    let known = FunctionTable.entry(hook.pointee.function)
                    (address, isWatched) = (known.target, known.trigger != 0)
                }
            }
            guard !isWatched, let k = found.plan.number(at: UInt32(truncatingIfNeeded: address &- patched.base)),
                !admits(found.plan, found.plan.function(k), entry, isMain)
            else { continue }
            leaveOut(hook)
        }
        return true
    }
    private static func admits(
        _ plan: PlanContent, _ function: UnsafePointer<plan_function>, _ module: UnsafeMutablePointer<Module>, _ isMain: Bool
    ) -> Bool {
        let address = plan.header.pointee.base &+ UInt64(function.pointee.address)
        return function.pointee.name_count == 0
            ? TextBuffer.with(address: address) { isAdmitted($0, at: address, module, isMain) }
            : plan.someName(of: function) { isAdmitted($0, at: address, module, isMain) }
    }
    @inline(never) private static func isAdmitted(
        _ name: CText, at address: UInt64, _ module: UnsafeMutablePointer<Module>, _ isMain: Bool
    ) -> Bool {
        let later = NameFilter.later
        if let list = later.functions, !EntryFilter.matches(list, name, at: address, in: module.pointee.name, isMain: isMain) {
            return false
        }
        return later.admits(function: name, at: address, path: module.pointee.path)
    }

    private static func leaveOut(_ hook: UnsafeMutablePointer<function_hook>) {
        FunctionTable.locked {
            HotFunctions.locked {
                let instant = hook.pointee.instant
                if instant == tracer_address_pass() || !gated.append(Gated(hook: hook, instant: instant)) { return }
                tracer_store_release_64(&hook.pointee.instant, tracer_address_pass()) // FUNCTION_ENTER
            }
        }
    }
    /// All are recorded again, or counted, as they were.
    static func takeBack() {
        for n in 0..<gated.count {
            let one = gated[n], hook = one.hook
            FunctionTable.locked {
                if hook.pointee.instant != tracer_address_pass() { return }
                // A call that was under way may have given it its id since.
                let isPlain = hook.pointee.kind == UInt8(KIND_PATCHED) && hook.pointee.argument == 0
                let instant = isPlain && one.instant == Trampolines.patchedSet.special ? Trampolines.patchedSet.enter : one.instant
                tracer_store_release_64(&hook.pointee.instant, instant) // FUNCTION_ENTER
            }
        }
        gated.removeAll()
    }
}
