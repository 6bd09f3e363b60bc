// A name alone is no function: a program may have its own `backtrace` or `sd_notify`, with other arguments. Where the agent reads
// what an argument points to, or calls the function itself, the definition must be that of the library which made the name known.
import CSupport

enum FunctionHome {
    /// Returns the hook policy of a function whose name says `policy`, now that it is known which module defines it.
    @inline(__always) static func policy(_ policy: HookPolicy, of name: Name, in owner: UnsafePointer<Image>, isSanitizer: Bool)
        -> HookPolicy
    {
        policy == .record || policy == .entryOnly ? policy : checked(policy, name, owner, isSanitizer)
    }
    private static func checked(_ policy: HookPolicy, _ name: Name, _ owner: UnsafePointer<Image>, _ isSanitizer: Bool) -> HookPolicy {
        switch policy {
        case .threadName, .output, .ending: return isLibc(owner, isSanitizer) ? policy : .record
        case .instrumentation: return isLibc(owner, isSanitizer) ? policy : .none
        case .unwinderQuery: return isLibc(owner, isSanitizer) ? policy : .none
        case .vfork: return isLibc(owner, isSanitizer) ? policy : .entryOnly
        case .clone, .makeContext: return isLibc(owner, isSanitizer) ? policy : .record
        case .dlopen: return isLibc(owner, isSanitizer) ? policy : .entryOnly // it may still ask who called it, for the one that it stands in for
        case .once where rest(of: name.text, after: "pthread_") != nil || rest(of: name.text, after: "__pthread_") != nil:
            return isLibc(owner, isSanitizer) ? policy : .record
        case .notify, .notifyOfPid: return isOne(of: "libsystemd.", "libelogind.", owner) ? policy : .record
        case .frameLister where equal(name.text, literal: "_Unwind_Backtrace"): return policy // its _Unwind_GetIP is there, too
        case .frameLister where equal(name.text, literal: "backtrace") && isOne(of: "libc.", "libexecinfo.", owner): return policy
        case .frameLister where rest(of: name.text, after: "dladdr") != nil: return isLibc(owner, isSanitizer) ? policy : .record
        case .frameLister where equal(name.text, literal: "_Unwind_SetIP"): return UnwinderQuestions.isNongnu(owner) ? policy : .record
        case .frameLister: return isOne(of: "libunwind.", "libunwind-", owner) ? policy : .record
        default: return policy
        }
    }

    /// The C library, what was a part of it, or a sanitizer's function that stands in for one of it.
    static func isLibc(_ owner: UnsafePointer<Image>, _ isSanitizer: Bool = false) -> Bool {
        isSanitizer || isOne(of: "libc.", "libpthread.", owner) || isOne(of: "libdl.", "ld-", owner)
    }
    /// Returns true if the DT_SONAME begins with one of the two: a file may have any name.
    @inline(never) static func isOne(of first: StaticString, _ second: StaticString, _ image: UnsafePointer<Image>) -> Bool {
        for n in 0..<image.pointee.dynamicEntryCount where image.pointee.dynamicEntry(at: n).tag == DynamicTag.soname {
            guard let name = image.pointee.string(Int(truncatingIfNeeded: image.pointee.dynamicEntry(at: n).value)) else { return false }
            return rest(of: name, after: first) != nil || rest(of: name, after: second) != nil
        }
        return false
    }
}
