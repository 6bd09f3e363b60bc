// How the agent came into the process: with the program, or later, by a dlopen of the program's own, of a debugger's or of `tracer attach`.
// No interface of the loader's says so. Its list does: whatever is there at the start stands in the order in which it was found
// (glibc elf/rtld.c and elf/dl-deps.c): the program, what is preloaded, what these need, what that needs; and what dlopen brings is
// appended. Modules before libc, which the program itself needs, are therefore of the start, and so is all that such a module needs,
// directly or not.
import CSupport

enum OwnLoading: UInt8 { // a raw value: as RelocationState
    case withProgram
    case later
    /// In a namespace of its own (dlmopen): nothing of the program's is to be seen from there.
    case elsewhere

    /// In a constructor of ours, which runs with the loader's lock held, or before there is a second thread.
    static func find() -> OwnLoading {
        guard let debug = LoaderDebug.find(), let first = debug.pointee.first else { return .withProgram }
        var next: Entry? = first, isAfterLibc = false
        while let module = next {
            if module.pointee.dynamic == tracer_own_dynamic() {
                return !isAfterLibc || isNeededAtStart(module, first) ? .withProgram : .later
            }
            isAfterLibc = isAfterLibc || isLibc(module)
            next = module.pointee.next
        }
        return .elsewhere
    }

    private typealias Entry = UnsafeMutablePointer<loader_module>
    @inline(never) private static func name(_ module: Entry) -> CText {
        baseName(module.pointee.name.map { UnsafeRawPointer($0).assumingMemoryBound(to: UInt8.self) } ?? CText(StaticString("").utf8Start))
    }
    private static func isLibc(_ module: Entry) -> Bool { equal(name(module), literal: "libc.so.6") }

    /// From the agent back to the modules that need it, those that need these, and so on: is one of the start?
    private static func isNeededAtStart(_ own: Entry, _ first: Entry) -> Bool {
        var reached = InlineArray<64, Entry?>(repeating: nil), count = 1, n = 0
        reached[0] = own
        while n < count {
            let needed = reached[n]!
            let soname = Needs(needed, first).soname
            var next: Entry? = first, isOfStart = true
            while let module = next, module != needed {
                isOfStart = isOfStart && !isLibc(module)
                if Needs(module, first).include(name(needed), soname) {
                    if isOfStart { return true }
                    var isKnown = false
                    for k in 0..<count where reached[k] == module { isKnown = true }
                    if !isKnown && count < 64 {
                        reached[count] = module
                        count &+= 1
                    }
                }
                next = module.pointee.next
            }
            n &+= 1
        }
        return false
    }

    /// DT_NEEDED of a module. Names are compared as the loader does (elf/dl-load.c, _dl_name_match_p, and DT_SONAME).
    private struct Needs {
        private let image: Image
        @inline(never) init(_ module: Entry, _ first: Entry) {
            let dynamic = UInt64(UInt(bitPattern: module.pointee.dynamic))
            image =
                module == first
                ? Image(
                    bias: module.pointee.bias, dynamic: dynamic, programHeaders: Process.programHeaders, count: Process.programHeaderCount)
                : Image(bias: module.pointee.bias, dynamic: dynamic)
        }
        private func text(_ entry: DynamicEntry) -> CText? { image.string(Int(truncatingIfNeeded: entry.value)) }
        var soname: CText? {
            for n in 0..<image.dynamicEntryCount where image.dynamicEntry(at: n).tag == DynamicTag.soname {
                return text(image.dynamicEntry(at: n))
            }
            return nil
        }
        func include(_ fileName: CText, _ soname: CText?) -> Bool {
            for n in 0..<image.dynamicEntryCount where image.dynamicEntry(at: n).tag == DynamicTag.needed {
                guard let needed = text(image.dynamicEntry(at: n)) else { continue }
                if equal(baseName(needed), fileName) { return true }
                if let soname, equal(needed, soname) { return true }
            }
            return false
        }
    }
}
