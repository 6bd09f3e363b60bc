// Functions whose handling depends on their arguments, looked at call by call.
import CSupport

enum Inspection {
    /// sigaction and its kind, for SIGBUS.
    static func changesAction(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Bool {
        if !SafetyHooks.isLooked(at: hook) { return false }
        switch SafetyHooks.policy(hook) {
        case .signalAction: return UInt32(truncatingIfNeeded: spills.firstArgument) == UInt32(BUS_SIGNAL)
        case .systemCall:
            return spills.firstArgument == UInt64(SystemCall.rt_sigaction)
                && UInt32(truncatingIfNeeded: spills.secondArgument) == UInt32(BUS_SIGNAL)
        default: return false
        }
    }

    /// Returns true if the trace may be out of the agent's reach after the call: another user, other groups, fewer capabilities,
    /// another root directory, other mounts; and if the thread becomes SCHED_DEADLINE, which cannot make a task (sched(7)).
    static func changesIdentity(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Bool {
        if !SafetyHooks.isLooked(at: hook) { return false }
        switch SafetyHooks.policy(hook) {
        case .identity: return true
        case .systemCall where spills.firstArgument == UInt64(SystemCall.sched_setattr): return asksForDeadline(spills.thirdArgument)
        case .systemCall: return SystemCall.changesIdentity(spills.firstArgument)
        default: return false
        }
    }
    /// struct sched_attr (sched_setattr(2)): its size, then the policy.
    private static func asksForDeadline(_ attributes: UInt64) -> Bool {
        if attributes & 3 != 0 || !Memory.isReadable(attributes &+ 4) { return false }
        return UnsafePointer<UInt32>(bitPattern: UInt(attributes &+ 4))?.pointee == 6 // SCHED_DEADLINE
    }

    /// Returns true if memory is to be executed from now on: mmap(address, length, protection, …), mprotect and pkey_mprotect likewise.
    static func mapsCode(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Bool {
        SafetyHooks.isLooked(at: hook) && SafetyHooks.policy(hook) == .mapping && spills.thirdArgument & UInt64(Memory.execute) != 0
    }

    /// Returns true if the call does not return, and no destructor runs.
    static func endsProcess(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Bool {
        if !SafetyHooks.isLooked(at: hook) { return false }
        switch SafetyHooks.policy(hook) {
        case .ending: return true
        case .systemCall: return spills.firstArgument == UInt64(SystemCall.exit_group)
        default: return false
        }
    }

    /// Returns how the program is about to confine itself by this call; nil: it is not.
    static func confinement(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Confinement? {
        if !SafetyHooks.isLooked(at: hook) { return nil }
        switch SafetyHooks.policy(hook) {
        case .confinement: return .ofControl(spills.firstArgument, spills.secondArgument, spills.thirdArgument)
        case .systemCall where spills.firstArgument == UInt64(SystemCall.seccomp):
            return .ofSeccomp(spills.secondArgument, spills.fourthArgument)
        case .systemCall where spills.firstArgument == UInt64(SystemCall.prctl):
            return .ofControl(spills.secondArgument, spills.thirdArgument, spills.fourthArgument)
        default: return nil
        }
    }
}

extension MemorySharing {
    /// clone(function, stack, flags, …); system calls by number: (flags, …) and clone3's (struct clone_args *, …), flags first.
    static func of(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> MemorySharing? {
        if !SafetyHooks.isLooked(at: hook) { return nil }
        switch SafetyHooks.policy(hook) {
        case .vfork: return .suspended(returnsTwice: true, isByNumber: false)
        case .clone: return of(flags: spills.thirdArgument, isByNumber: false)
        case .systemCall:
            switch Int(truncatingIfNeeded: spills.firstArgument) {
            case SystemCall.clone: return of(flags: spills.secondArgument, isByNumber: true)
            case SystemCall.clone3:
                guard Memory.isReadable(spills.secondArgument), let flags = UnsafePointer<UInt64>(bitPattern: UInt(spills.secondArgument))
                else { return nil }
                return of(flags: flags.pointee, isByNumber: true)
            case SystemCall.vfork: return .suspended(returnsTwice: true, isByNumber: true)
            default: return nil
            }
        default: return nil
        }
    }
    private static func of(flags: UInt64, isByNumber: Bool) -> MemorySharing? {
        if flags & UInt64(Clone.memory) == 0 || flags & UInt64(Clone.threadBlock) != 0 { return nil }
        return flags & UInt64(Clone.vfork) != 0
            ? .suspended(returnsTwice: false, isByNumber: isByNumber) : .concurrent(isByNumber: isByNumber)
    }
}
