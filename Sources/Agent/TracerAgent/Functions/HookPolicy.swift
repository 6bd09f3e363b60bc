// How the agent treats a function, and why. This is decided here and nowhere else, in four steps, each as soon as what it needs is known:
//
// - by its name (`named`), when a slot is read: the target may not be known yet;
// - by the module that defines it, the module that calls it and the user's lists (`decision`), when a slot is bound;
// - by its code (`hooking`), once, when it gets a hook;
// - by a call's arguments (`isEntryOnly`), for the few functions that are looked at call by call.
//
// Code that binds slots, makes stubs or takes the slow path asks here, and does what the answer says.
import CSupport
import CTraceLayout

enum HookPolicy: UInt8 {
    case record // a recorded call
    case none // the slot stays as it is
    case frameLister // a recorded call of the agent's function, which calls the original (Backtraces.swift)
    case execution // likewise, of one that gives the program another environment (Executions.swift)
    case unwinderQuery // asked by an unwinder, which learns of relocated instructions as well (UnwinderQuestions.swift)
    case entryOnly // entry is recorded, then a jump: the function sees its real caller's return address
    case dlopen, systemCall, threadName, confinement, identity, ending, signalAction, mapping // looked at call by call (Inspection.swift)
    case instrumentation // the agent's own stands in for it (InstrumentedFunctions.swift)
    case makeContext // looked at for the stack that it is given (AlternateStacks.swift)
    case jump, contextJump // looked at for where they go on (LeftFrames.swift)
    case throwing, raising, resuming, rethrowing, catching // looked at while frames on other stacks are open (LeftFrames.swift)
    case vfork, clone // their child runs in this memory (SharedMemory.swift)
    case start // libc's, which is given main
    case once // a once-function: looked at when its flag says that nothing is done yet
    case output, notify, notifyOfPid, waylandRequest, ready // looked at until the program is ready (Ready.swift)

    /// What the stub of such a function must do.
    var kind: UInt8 {
        switch self {
        case .record, .none, .frameLister, .execution, .unwinderQuery: UInt8(KIND_CALL)
        case .entryOnly: UInt8(KIND_ENTRY_ONLY)
        case .start: UInt8(KIND_START)
        case .once: UInt8(KIND_ONCE)
        case .dlopen: UInt8(KIND_LOAD)
        case .systemCall: UInt8(KIND_NUMBER)
        case .throwing, .raising, .resuming, .rethrowing, .catching: UInt8(KIND_APART)
        default: UInt8(KIND_INSPECT)
        }
    }
    /// Slots of any kind with its name may lead to a stub. The one of libc's start of main is hooked apart (Rebinder.hookStart).
    var isForAnySlot: Bool { self != .none && self != .start }
    /// Its calls must be seen to do no harm, also where they are not recorded (SafetyHooks.swift).
    var isWatched: Bool {
        switch self {
        case .confinement, .systemCall, .signalAction, .identity, .ending, .mapping, .vfork, .clone: true
        default: false
        }
    }
    /// Its calls may be left out from some moment on. Not those by which open frames are known, on whatever stack.
    var mayBeLeftOut: Bool {
        switch self {
        case .start, .makeContext, .jump, .contextJump, .throwing, .raising, .resuming, .rethrowing, .catching: false
        default: true
        }
    }
    /// Its calls may be recorded with what they wait for (CallObjects.swift).
    private var mayHaveObject: Bool {
        switch self {
        case .record, .once, .output, .ready, .systemCall: true
        default: false
        }
    }
}

// MARK: - By name

extension HookPolicy {
    /// Returns the hook policy of a function of this name, whichever module defines it.
    static func named(_ name: Name) -> HookPolicy {
        if name.text[0] == 0x5f { // an underscore
            // The loader's own.
            if rest(of: name.text, after: "_dl_") != nil && !equal(name.text, literal: "_dl_find_object") { return .none }
            // Compilers insert them, and they ask who called them.
            if SanitizerRuntime.isInstrumentation(name.text) { return .none }
        }
        return SpecialFunction.policy(of: name)
    }
}

// MARK: - By module

extension HookPolicy {
    /// The module that defines a function.
    struct Definer {
        let image: UnsafePointer<Image>
        let path: CText
        let identity: UInt64 // Module.buildID
        let inBaseNamespace: Bool, isForeign: Bool, isSanitizer: Bool, asksForCallers: Bool
    }
    /// The module whose slot it is.
    struct Caller {
        let image: UnsafePointer<Image>
        let path: CText
        let inBaseNamespace: Bool, hasForeignCalls: Bool
    }
    /// What a slot is to hold.
    enum SlotDecision {
        /// What it holds.
        case keep
        /// A function of the agent's in place of this one. Its calls are not recorded.
        case substitute(HookPolicy)
        /// A stub without an id, which looks at the calls and records none (SafetyHooks.swift).
        case watch(HookPolicy)
        /// The function's stub.
        case hook(HookPolicy)
    }

    /// Returns what a slot is to hold that leads to the function at `target`; its name says `self`.
    func decision(
        on name: Name, at target: UInt64, in definer: Definer, calledBy caller: Caller, isPatched: @autoclosure () -> Bool
    ) -> SlotDecision {
        // Data has no calls, and the agent does not record itself.
        if !definer.image.pointee.isCode(target) || definer.image.pointee.contains(tracer_code_low()) { return .keep }
        let isIteration = UnwinderQuestions.isIteration(name.text)
        if isIteration && caller.inBaseNamespace && UnwinderQuestions.asks(caller.image) { return .substitute(.unwinderQuery) }
        let isExecution = self == .execution && FunctionHome.isLibc(definer.image) && !Process.wasRunning
        // It uses other registers than C's functions, or its own first bytes lead to a hook.
        if definer.isForeign || isPatched() { return isExecution ? .substitute(self) : .keep }
        var policy = self == .record || self == .entryOnly ? self : defined(as: name, in: definer)
        switch policy {
        case .none: return .keep
        case .unwinderQuery: return .substitute(policy)
        case .instrumentation:
            let isExcluded = NameFilter.leavesSlots || caller.hasForeignCalls || !NameFilter.admits(address: 0, path: caller.path)
            return isExcluded ? .keep : .substitute(policy)
        default: break
        }
        // It lists the namespace of its caller (glibc elf/dl-iteratephdr.c), and labels are in the base one.
        if isIteration && !definer.inBaseNamespace { policy = .entryOnly }
        if caller.hasForeignCalls { return isExecution ? .substitute(policy) : policy.isWatched ? .watch(policy) : .keep }
        let saysReady = NameFilter.saysReady(function: name.text, path: definer.path)
        let isAsked = saysReady || TriggerList.number(function: name.text, path: definer.path) != 0
        if !isAsked && (NameFilter.leavesSlots || !NameFilter.admits(function: name.text, path: definer.path)) {
            // Labels are on the stack all the same: main's and those of initializers.
            if policy == .frameLister || isExecution { return .substitute(policy) }
            return policy.isWatched ? .watch(policy) : .keep
        }
        return .hook(saysReady && policy == .record ? .ready : policy)
    }

    /// A name alone does not determine a function: a program may have its own `backtrace` or `sd_notify`, with other arguments. Where the
    /// agent reads what an argument points to, or calls the function itself, the definition must be that of the well-known library.
    private func defined(as name: Name, in definer: Definer) -> HookPolicy {
        let image = definer.image
        switch self {
        case .mapping where !SpecialFunction.answersUnwinders: return .record // calls through slots come from modules
        case .threadName, .output, .ending, .mapping, .clone, .makeContext: return inLibc(definer, else: .record)
        case .instrumentation, .unwinderQuery: return inLibc(definer, else: .none)
        case .vfork, .jump, .contextJump: return inLibc(definer, else: .entryOnly)
        case .execution: return FunctionHome.isLibc(definer.image) && !Process.wasRunning ? self : .record
        case .dlopen: return inLibc(definer, else: .entryOnly) // it may still ask who called it, for the one that it stands in for
        case .once where rest(of: name.text, after: "pthread_") != nil || rest(of: name.text, after: "__pthread_") != nil:
            return inLibc(definer, else: .record)
        case .notify, .notifyOfPid: return FunctionHome.isOne(of: "libsystemd.", "libelogind.", image) ? self : .record
        case .waylandRequest: return FunctionHome.isOne(of: "libwayland-client.", "libwayland-client-", image) ? self : .record
        case .frameLister where equal(name.text, literal: "_Unwind_Backtrace"): return self // its _Unwind_GetIP is there, too
        case .frameLister where equal(name.text, literal: "backtrace") && FunctionHome.isOne(of: "libc.", "libexecinfo.", image):
            return self
        case .frameLister where rest(of: name.text, after: "dladdr") != nil: return inLibc(definer, else: .record)
        case .frameLister where equal(name.text, literal: "_Unwind_SetIP"): return UnwinderQuestions.isNongnu(image) ? self : .record
        case .frameLister: return FunctionHome.isOne(of: "libunwind.", "libunwind-", image) ? self : .record
        default: return self
        }
    }
    /// A sanitizer's function stands in for one of libc.
    private func inLibc(_ definer: Definer, else other: HookPolicy) -> HookPolicy {
        definer.isSanitizer || FunctionHome.isLibc(definer.image) ? self : other
    }
}

// MARK: - By code

/// How the calls of a function are handled: what its hook, its stub and its record say.
struct Hooking {
    fileprivate(set) var policy: HookPolicy
    /// Each call is recorded by its entry alone, whatever else is looked at: the function sees who called it.
    fileprivate(set) var isEntryOnly: Bool
    /// The hook leads to a function of ours (FunctionTable.swift), which calls this one.
    let isSubstituted: Bool
    /// Flags for the object of its calls (CallObjects.swift); 0: they have none.
    fileprivate(set) var object: UInt32 = 0
    /// Length of the code in bytes, where the definition has been read; else 0.
    let byteCount: UInt64

    /// The stub need not look at the hook's kind.
    var isOrdinary: Bool { policy.kind == UInt8(KIND_CALL) && object == 0 }
    /// Its arguments can be recorded: each of its calls is one with a frame, and is for Swift, or can be.
    var mayHaveArguments: Bool {
        !isEntryOnly && policy != .frameLister && (kind == UInt8(KIND_CALL) || kind == UInt8(KIND_INSPECT) || kind > UInt8(KIND_OPENS))
    }
    /// Every call of a sanitizer's `syscall` goes to Swift: none is an ordinary one.
    var kind: UInt8 {
        if CallObjects.opens(object) != 0 { return UInt8(KIND_OPENS) &+ CallObjects.opens(object) }
        return isEntryOnly && policy == .systemCall ? UInt8(KIND_INSPECT) : policy.kind
    }
    var recordFlags: UInt32 { isEntryOnly || policy == .vfork ? UInt32(TRACE_FUNCTION_ENTRY_ONLY) : object }
}

extension HookPolicy {
    /// Returns how a function is hooked; `self` is the decision on its slot. nil: it is not.
    func hooking(of name: Name, at target: UInt64, in definer: Definer) -> Hooking? {
        let definition = Image.definition(name, at: target, in: definer.image)
        // It may keep more registers than the trampolines do (Symbol).
        if definition.hasVariantConvention { return nil }
        var hooking = Hooking(
            policy: self, isEntryOnly: self == .entryOnly || self == .jump || self == .contextJump,
            isSubstituted: self == .frameLister || self == .execution, byteCount: definition.byteCount)
        if definer.isSanitizer {
            // They ask who called them, and stand in for some functions that are looked at (SanitizerRuntime.swift).
            hooking.isEntryOnly = true
            if self == .record || self == .frameLister || self == .once || kind == UInt8(KIND_APART) { hooking.policy = .entryOnly }
        } else if self == .record && HookPolicy.seesCaller(name, target, definer) {
            hooking.isEntryOnly = true
            hooking.policy = .entryOnly
        }
        if mayHaveObject && !hooking.isEntryOnly { hooking.object = CallObjects.flags(of: name, in: definer.image) }
        return hooking
    }
    /// Returns true if the code captures the caller's context, or reads the return address to ask whose it is.
    private static func seesCaller(_ name: Name, _ target: UInt64, _ definer: Definer) -> Bool {
        ContextCapture.isNamed(name) && ContextCapture.captures(target, definer.image)
            || definer.asksForCallers
                && ReturnReading.isIn(target, Image.markedDefinition(name, target, definer.image).byteCount, definer.image)
    }
}

// MARK: - By call

extension HookPolicy {
    /// Returns true if this call is recorded by its entry alone, since the function must see its real return address.
    /// `number`: the first argument, which `syscall` has. `dependsOnCaller`: dlopen's result depends on who calls it.
    func isEntryOnly(number: UInt64, dependsOnCaller: () -> Bool) -> Bool {
        switch self {
        case .dlopen: dependsOnCaller()
        case .systemCall: HookPolicy.returnsTwice(number)
        default: false
        }
    }
    /// vfork, clone and clone3 by number: the child runs in the parent's memory and returns first.
    private static func returnsTwice(_ number: UInt64) -> Bool {
        switch Int(truncatingIfNeeded: number) {
        case SystemCall.clone, SystemCall.fork, SystemCall.vfork, SystemCall.clone3: true
        default: false
        }
    }
}
