// How a function's entry can be patched, and why not.
import CTraceLayout
import Glibc

public enum Tactic: UInt8, CaseIterable, Sendable {
    case none, nops, jump5, jump2, word, trap, whole, calls, neighbour

    public var name: String { "\(self)" }
}

public enum Reason: UInt8, CaseIterable, Sendable {
    case no, entryPoint, returnsTwice, asksCaller, childOnStack, notCode, tooShort, jumpInto, tableInto, landingPad, loop, inside,
        fallsInto, frameAtEntry, signalReturn, notRelocatable, endsOpen, tooFar, hiddenTargets, jumpedInto, loader, agent,
        otherArchitecture,
        returnsInto, generatedCaller, askedByCallee, shortJump

    /// Only its own bytes are in the way: what is said of its frames and its callers does not depend on them.
    var isOfBytes: Bool {
        switch self {
        case .tooShort, .jumpInto, .tableInto, .landingPad, .loop, .notRelocatable, .endsOpen, .tooFar, .hiddenTargets, .returnsInto: true
        default: false
        }
    }

    /// One sentence.
    public var text: String {
        switch self {
        case .no: ""
        case .entryPoint: "The program starts here: nothing calls it, and it cannot return."
        case .returnsTwice: "It saves or replaces its caller's context, so it may return twice, or on another stack."
        case .asksCaller: "It uses its return address: it looks up its caller, or walks the stack."
        case .childOnStack: "It starts a child that returns on this stack, or starts on another one."
        case .notCode: "Some of its bytes are not instructions, so the targets of its jumps are not known."
        case .tooShort: "It is shorter than the patch, and nothing near has bytes to spare."
        case .jumpInto: "A jump goes into the bytes that would be replaced, and nothing near has bytes to spare."
        case .tableInto:
            "A jump table or a stored address points into the bytes that would be replaced, and nothing near has bytes to spare."
        case .landingPad: "An exception handler begins in the bytes that would be replaced."
        case .loop: "A jump inside it goes to its first byte, so each iteration of a loop would look like a call."
        case .inside: "It begins inside another function, which may fall through into it."
        case .fallsInto: "The code before it falls through into it."
        case .frameAtEntry: "When it is entered, the top of the stack is not a return address."
        case .signalReturn: "Signal handlers return to it; nothing calls it."
        case .notRelocatable: "One of its first instructions cannot be relocated."
        case .endsOpen: "It ends within the bytes that would be relocated, without a jump or a return."
        case .tooFar: "One of its first instructions refers to something more than 2 GB away."
        case .hiddenTargets: "It jumps to computed addresses that cannot be determined."
        case .jumpedInto: "Other code jumps to it with more on the stack than a return address."
        case .loader: "It belongs to the dynamic loader, which runs while the agent binds modules."
        case .agent: "It belongs to the agent."
        case .otherArchitecture: "It is code for another CPU architecture."
        case .generatedCaller: "Code made at run time calls it, and is found later by the return address of that call."
        case .askedByCallee: "A function that it calls looks up its return address through the frame pointers."
        case .returnsInto: "A call returns into the bytes that would be replaced, and nothing near has bytes to spare."
        case .shortJump: "Its bytes cannot be replaced, and a jump to it from another function is too short to lead elsewhere."
        }
    }
}

/// Functions known by name, as to the trampolines of slots (Functions/SpecialFunction.swift): a label in place of their return
/// address would change what they do.
enum KnownFunction {
    static func reason(_ name: UnsafeRawBufferPointer) -> Reason? {
        if isCalledByGeneratedCode(name) { return .generatedCaller }
        guard name.count < 40, mayBeKnown(name) else { return nil }
        return table[String(decoding: name, as: UTF8.self)]
    }

    /// V8 finds the frames of JavaScript by what is below the stack pointer where they left it: the return address of a call into
    /// a function of these (src/execution/frames.cc, ExitFrame; names: src/builtins, src/runtime).
    private static func isCalledByGeneratedCode(_ name: UnsafeRawBufferPointer) -> Bool {
        func begins(_ text: StaticString) -> Bool {
            text.withUTF8Buffer { $0.count <= name.count && name.prefix($0.count).elementsEqual($0) }
        }
        return begins("Builtins_") || begins("_ZN2v88internal") && isBuiltin(name)
    }
    /// A C++ function that takes v8::FunctionCallbackInfo or v8::PropertyCallbackInfo, as generated code calls callbacks of V8's embedder.
    static func isCallbackOfGeneratedCode(_ name: UnsafeRawBufferPointer) -> Bool {
        guard name.count > 2, name[0] == UInt8(ascii: "_"), name[1] == UInt8(ascii: "Z") else { return false }
        return ["20FunctionCallbackInfoI", "20PropertyCallbackInfoI"].contains { contains(name, $0) }
    }
    private static func contains(_ name: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let most = name.count - text.utf8CodeUnitCount
        return most >= 0
            && (0...most).contains { memcmp(name.baseAddress! + $0, text.utf8Start, text.utf8CodeUnitCount) == 0 }
    }
    /// V8 learns by it where the return address is that a label stands for (the agent's Origins/Functions/ReturnLocations.swift).
    static func isLocationSetter(_ name: UnsafeRawBufferPointer) -> Bool {
        name.count == 49 && contains(name, "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE")
    }

    /// v8::internal::Builtin_…, Runtime_…, after a number of characters.
    private static func isBuiltin(_ name: UnsafeRawBufferPointer) -> Bool {
        var rest = name.dropFirst(15)
        while let digit = rest.first, digit >= 0x30, digit <= 0x39 { rest = rest.dropFirst() }
        return ["Builtin_", "Runtime_"].contains { rest.starts(with: $0.utf8) }
    }

    /// Most names are long or begin otherwise; a look at one byte spares the rest.
    private static func mayBeKnown(_ name: UnsafeRawBufferPointer) -> Bool {
        switch name[0] {
        case UInt8(ascii: "_"): !(name.count > 1 && (name[1] == UInt8(ascii: "Z") || name[1] == UInt8(ascii: "R")))
        case UInt8(ascii: "s"), UInt8(ascii: "g"), UInt8(ascii: "u"), UInt8(ascii: "l"), UInt8(ascii: "d"), UInt8(ascii: "v"),
            UInt8(ascii: "c"), UInt8(ascii: "m"), UInt8(ascii: "b"):
            true
        default: false
        }
    }

    private static let table: [String: Reason] = {
        var table: [String: Reason] = [:]
        for name in [
            "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "__getcontext", "setcontext", "__setcontext",
            "swapcontext", "__swapcontext", "unw_getcontext", "__unw_getcontext", "_Ux86_64_getcontext", "_Uaarch64_getcontext",
            "__go_getcontext", "longjmp", "_longjmp", "__longjmp", "siglongjmp", "__longjmp_chk", "____longjmp_chk", "__libc_longjmp",
            "__libc_siglongjmp", "makecontext", "__makecontext", "__start_context", "savectx",
            "_setjmpex",
        ] { table[name] = .returnsTwice }
        for name in [
            "dlsym", "__dlsym", "dlvsym", "__dlvsym", "dlopen", "__dlopen", "dlmopen", "__dlmopen", "dl_iterate_phdr",
            "__dl_iterate_phdr", "backtrace", "__backtrace", "_Unwind_Backtrace", "unw_backtrace", "unw_step", "__unw_step",
            "_ULx86_64_step", "_Ux86_64_step", "_ULaarch64_step", "_Uaarch64_step", "mcount", "_mcount", "__fentry__",
            "__cyg_profile_func_enter", "__cyg_profile_func_exit", "uw_init_context_1", "uw_init_context",
        ] { table[name] = .asksCaller }
        for name in [
            "vfork", "__vfork", "__libc_vfork", "clone", "__clone", "clone3", "__clone3", "__clone_internal",
            "__clone3_internal",
        ] { table[name] = .childOnStack }
        return table
    }()
}
