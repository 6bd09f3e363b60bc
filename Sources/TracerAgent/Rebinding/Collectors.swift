// Conservative garbage collectors look for objects in registers and on stacks. While a traced call runs, one register of its
// caller is in a frame record (docs/trampoline.md), where they do not look: an object that only that register held would be
// freed. So of modules that use such a collector, and of modules that use those, only the entries of calls are recorded: by a
// jump, which touches no register. They are known by a function that no other library defines.
import CSupport

enum Collectors {
    private static let functions: InlineArray<_, StaticString> = [
        "GC_gcollect",       // Boehm: libgc, and with it Guile, Gauche, ECL, w3m, Inkscape
        "rb_gc_mark_maybe",  // Ruby
        "mono_gc_collect",   // Mono's SGen
        "JSGarbageCollect",  // JavaScriptCore
        "R_gc",              // R
        "gc_collect",        // D
        "jl_gc_collect",     // Julia
    ]

    /// Marks those of the modules that are not bound yet. True when there is one.
    static func mark() -> Bool {
        var isFound = false
        for n in 0..<functions.count {
            guard let owner = owner(of: CText(functions[n].utf8Start)), owner.pointee.state == .pending else { continue }
            owner.pointee.usesCollector = true
            isFound = true
        }
        if !isFound && !isAnyMarked { return false }
        isAnyMarked = true
        // Those that use a module stand before it in the loader's order, mostly.
        var isMore = true
        while isMore {
            isMore = false
            var n = ModuleTable.modules.count
            while n > 0 {
                n &-= 1
                let module = ModuleTable.modules.pointer(n)
                if module.pointee.state != .pending || module.pointee.usesCollector || !usesMarked(&module.pointee.image) { continue }
                module.pointee.usesCollector = true
                isMore = true
                isFound = true
            }
        }
        return isFound
    }
    nonisolated(unsafe) private static var isAnyMarked = false

    /// The module that defines a function or variable of this name.
    @inline(never) private static func owner(of name: CText) -> UnsafeMutablePointer<Module>? {
        ModuleTable.definition(of: SymbolQuery(name: Name(name), version: VersionNeed())).map { ModuleTable.modules.pointer($0.module) }
    }

    /// It refers to what a marked module defines.
    private static func usesMarked(_ image: inout Image) -> Bool {
        var n = image.relativeRelocationCount &- image.dataRelocationCount // data relocations before 0, jump slots from 0 on
        while n < image.jumpRelocationCount {
            let index = n < 0 ? image.dataRelocation(image.dataRelocationCount &+ n).symbol : image.jumpRelocation(n).symbol
            if index != 0, let symbol = image.symbol(index)?.pointee, symbol.section == 0, let name = image.name(of: symbol),
               owner(of: name)?.pointee.usesCollector == true { return true }
            n &+= 1
        }
        return false
    }
}
