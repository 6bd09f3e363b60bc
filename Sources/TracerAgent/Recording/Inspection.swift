// Functions whose treatment depends on their arguments, looked at call by call.
import CSupport

enum Inspection {
    /// True: record the entry only and leave the caller's return address in place.
    static func isTail(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills,
                       _ recorder: ThreadRecorder) -> Bool {
        if descriptor.pointee.kind == UInt32(KIND_TAIL) { return true }
        switch FunctionTable.entry(descriptor.pointee.function).treatment {
        case .dlopen:
            Loads.asked(recorder, spills)
            return dependsOnCaller(name: spills.firstArgument, caller: spills.caller)
        case .systemCall:
            return returnsTwice(number: spills.firstArgument)
        case .threadName:
            ThreadRecorder.rename(thread: spills.firstArgument, name: spills.secondArgument)
            return false
        case .output, .notify, .notifyOfPid, .ready:
            Ready.look(descriptor, FunctionTable.entry(descriptor.pointee.function).treatment, spills, recorder)
            return false
        default: return false
        }
    }

    /// dlopen asks who called it when the name has no slash and the caller a run path, or contains a `$ORIGIN`-like
    /// token (dlopen(3)), and for the namespace of the caller.
    private static func dependsOnCaller(name: UInt64, caller: UInt64) -> Bool {
        guard let name = CText(bitPattern: UInt(name)) else { return false }
        guard let index = ModuleTable.index(of: caller) else { return true }
        let module = ModuleTable.modules[index]
        if !module.inBaseNamespace { return true }
        var n = 0, hasSlash = false
        while name[n] != 0 {
            if name[n] == 0x24 { return true }
            if name[n] == 0x2f { hasSlash = true }
            n &+= 1
        }
        return !hasSlash && module.image.hasRunpath
    }

    /// vfork, clone and clone3 by number: the child runs in the parent's memory and returns first.
    private static func returnsTwice(number: UInt64) -> Bool {
        #if arch(x86_64)
        return number == 56 || number == 57 || number == 58 || number == 435
        #elseif arch(arm64)
        return number == 220 || number == 435
        #endif
    }
}

extension Inspection {
    /// sigaction and its kind, for SIGBUS.
    static func changesAction(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills) -> Bool {
        if descriptor.pointee.kind != UInt32(KIND_INSPECT) { return false }
        switch SafetyHooks.treatment(descriptor) {
        case .signalAction: return UInt32(truncatingIfNeeded: spills.firstArgument) == UInt32(BUS_SIGNAL)
        case .systemCall:
            return spills.firstArgument == UInt64(SystemCall.rt_sigaction)
                && UInt32(truncatingIfNeeded: spills.secondArgument) == UInt32(BUS_SIGNAL)
        default: return false
        }
    }

    /// What the program is about to take from itself by this call.
    static func confinement(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills) -> Confinement? {
        if descriptor.pointee.kind != UInt32(KIND_INSPECT) { return nil }
        switch SafetyHooks.treatment(descriptor) {
        case .confinement: return .ofControl(spills.firstArgument, spills.secondArgument, spills.thirdArgument)
        case .systemCall where spills.firstArgument == UInt64(SystemCall.seccomp):
            return .ofSeccomp(spills.secondArgument, spills.fourthArgument)
        case .systemCall where spills.firstArgument == UInt64(SystemCall.prctl):
            return .ofControl(spills.secondArgument, spills.thirdArgument, spills.fourthArgument)
        default: return nil
        }
    }
}

extension ThreadRecorder {
    /// pthread_setname_np(thread, name): a pthread_t is the address of the thread's descriptor. On x86_64 that is its
    /// thread pointer; on aarch64 the thread pointer follows it (glibc and musl alike, 2 KB and less), and the next
    /// thread's is at least a stack away.
    static func rename(thread: UInt64, name: UInt64) {
        guard let name = CText(bitPattern: UInt(name)) else { return }
        let distance = UInt64(UInt(bitPattern: tracer_thread_state())) &- tracer_thread_pointer()
        #if arch(x86_64)
        let mostBelow: UInt64 = 0
        #elseif arch(arm64)
        let mostBelow: UInt64 = 4096
        #endif
        withUnits { unit in
            let pointer = UInt64(UInt(bitPattern: unit.pointee.state)) &- distance
            guard pointer &- thread <= mostBelow, let chunk = unit.pointee.chunk else { return }
            let place = UnsafeMutableRawPointer(tracer_thread_name(chunk)!)
            var n = 0
            while n < 15 && name[n] != 0 {
                place.storeBytes(of: name[n], toByteOffset: n, as: UInt8.self)
                n &+= 1
            }
            place.storeBytes(of: 0, toByteOffset: n, as: UInt8.self)
        }
    }
}
