// Compilers that call functions of other modules through slots and do not follow the architecture's convention there: a trampoline
// would take something else for a return address, spend a register that is an argument, or show a return address that a
// collector looks for in its tables. Their modules are known by what is in them, and left alone.
//
// - GHC (-dynamic): code ends in jumps, the stack pointer is not the C stack's, no return address is anywhere
//   (compiler/GHC/CmmToAsm; "GHC Commentary: The Haskell Execution Model"). Compiled code refers to entries of the run-time
//   system, `stg_…`, or to code of another such module, `…_info`.
// - OCaml (native code): rbx, r10 … are arguments; the collector finds the frames of OCaml by their return addresses
//   (runtime/roots_nat.c). Its run-time system defines `caml_system__code_begin`, a program, plugin (.cmxs) or library the
//   beginning of its compiled code. What is called from there by C's convention is C, and is recorded: libc and libm by a
//   program with its run-time system inside. Bytecode is C throughout.
// - Go (-buildmode=shared, -linkshared): nine registers are arguments, r11 among them (src/cmd/compile/abi-internal.md), stacks
//   move, and the return addresses on them are looked up. A shared library has notes of Go's about its packages
//   (src/cmd/link/internal/ld/elf.go); what runs in a process with one and has any note of Go's is Go. Other programs of Go,
//   plugins and c-shared libraries call C alone through slots.
//
// gccgo follows C's convention.
import CSupport
import CTraceLayout

enum ForeignConvention {
    nonisolated(unsafe) private static var hasGHC = false
    nonisolated(unsafe) private static var hasGo = false
    nonisolated(unsafe) private static var hasPoorUnwinder = false

    /// Marks those of the modules that are not bound yet. The flags of a trace that say so when calls are not recorded because of it.
    static func mark() -> UInt32 {
        markOCaml()
        markGo()
        markGHC()
        var flags: UInt32 = ModuleTable.hasUnreadable ? UInt32(TRACE_FLAG_UNREADABLE) : 0
        forEachPending { if $0.pointee.hasForeignCalls { flags |= UInt32(TRACE_FLAG_FOREIGN) } }
        return markNamespaces() ? flags | UInt32(TRACE_FLAG_NAMESPACE) : flags
    }
    private static func mark(_ module: UnsafeMutablePointer<Module>, callsOwn: Bool = true) {
        module.pointee.isForeign = true
        module.pointee.hasForeignCalls = callsOwn
    }

    private static func markOCaml() {
        _ = markDefining("caml_startup__code_begin")
        _ = markDefining("caml_shared_startup__code_begin")
        _ = markDefining("caml_system__code_begin", callsOwn: false)
    }

    private static func markGo() {
        if !hasGo { forEachPending { if isGoLibrary($0) { hasGo = true } } }
        if hasGo { forEachPending { if isGoLibrary($0) || hasGoNote($0, 4) { mark($0) } } } // ELF_NOTE_GOBUILDID_TAG
    }
    /// Code of Go, in whatever it was built into: stacks move, and frames are found by the return addresses on them.
    static func isGo(_ module: UnsafeMutablePointer<Module>) -> Bool { hasGoNote(module, 4) } // ELF_NOTE_GOBUILDID_TAG
    /// ELF_NOTE_GOABIHASH_TAG; ELF_NOTE_GOPKGLIST_TAG, which linkers omit from the program headers.
    @inline(never) private static func isGoLibrary(_ module: UnsafeMutablePointer<Module>) -> Bool {
        hasGoNote(module, 2) || hasGoNote(module, 1)
    }
    private static func hasGoNote(_ module: UnsafeMutablePointer<Module>, _ type: UInt32) -> Bool {
        module.pointee.image.note(ofOwner: 0x0000_6f47, type: type) != nil // "Go\0\0"
    }

    private static func markGHC() {
        if markDefining("stg_upd_frame_info") { hasGHC = true } // the run-time system
        var isMore = hasGHC
        while isMore { // who refers to a module stands before it in the loader's order, mostly
            isMore = false
            forEachPending {
                if $0.pointee.isForeign || !refersToGHC(&$0.pointee.image) { return }
                mark($0)
                isMore = true
            }
        }
    }
    private static func refersToGHC(_ image: UnsafePointer<Image>) -> Bool {
        var names = OutsideNames(image)
        while let text = names.next() {
            if rest(of: text, after: "stg_") != nil { return true }
            let count = length(text)
            if count <= 5 || rest(of: text + (count &- 5), after: "_info") == nil { continue }
            let query = SymbolQuery(name: Name(text), version: VersionNeed())
            if let found = ModuleTable.anyDefinition(of: query), ModuleTable.modules.pointer(found.module).pointee.isForeign { return true }
        }
        return false
    }

    /// In a namespace of its own (dlmopen(3)) an unwinder that asks dl_iterate_phdr alone for the tables of a frame learns of that
    /// namespace, and the labels that calls return to are in the agent, which is in the base one. _dl_find_object (glibc 2.35)
    /// knows all.
    private static func markNamespaces() -> Bool {
        var isAny = false
        forEachPending {
            if $0.pointee.inBaseNamespace { return }
            isAny = true
            if refers(&$0.pointee.image, to: "dl_iterate_phdr") && !refers(&$0.pointee.image, to: "_dl_find_object") {
                hasPoorUnwinder = true
            }
        }
        if !isAny || !hasPoorUnwinder { return false }
        forEachPending { if !$0.pointee.inBaseNamespace { $0.pointee.hasForeignCalls = true } }
        return true
    }
    private static func refers(_ image: UnsafePointer<Image>, to name: StaticString) -> Bool {
        var names = OutsideNames(image)
        while let text = names.next() { if equal(text, literal: name) { return true } }
        return false
    }

    static func forEachPending(_ body: (UnsafeMutablePointer<Module>) -> Void) {
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state == .pending { body(module) }
        }
    }
    /// True when there is one.
    @inline(never) private static func markDefining(_ text: StaticString, callsOwn: Bool = true) -> Bool {
        let query = SymbolQuery(name: Name(CText(text.utf8Start)), version: VersionNeed())
        var n = ModuleTable.filters.first(from: 0, thatAdmits: query.name.gnuHash), isFound = false
        while n < ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state == .pending && Image.find(query, in: &module.pointee.image) != nil {
                mark(module, callsOwn: callsOwn)
                isFound = true
            }
            n = ModuleTable.filters.first(from: n &+ 1, thatAdmits: query.name.gnuHash)
        }
        return isFound
    }
}
