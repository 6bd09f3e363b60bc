// The modules that are there at the start, as the search for their slots' answers sees them.
import CSupport

enum GlobalScope: SlotScope {
    static var none: HookPolicy { .none }
    @inline(__always) static func policy(of name: Name) -> HookPolicy { HookPolicy.named(name) }
    @inline(__always) static func isNone(_ policy: HookPolicy) -> Bool { policy == .none }
    @inline(__always) static func isKnown(_ query: SymbolQuery) -> Bool { GlobalDefinitions.isKnown(query) }
    @inline(__always) static func prefetch(_ query: SymbolQuery) {
        GlobalDefinitions.prefetch(query)
        FunctionTable.prefetch(query.name)
    }
    @inline(__always) static func prefetchFunction(_ name: Name) { FunctionTable.prefetchFunction(name) }
    @inline(__always) static func first(from start: Int, thatAdmits hash: UInt32) -> Int {
        ModuleTable.filters.first(from: start, thatAdmits: hash)
    }
    @inline(__always) static func image(_ module: Int) -> UnsafePointer<Image>? {
        if module >= ModuleTable.modules.count { return nil }
        let other = ModuleTable.modules.pointer(module)
        return other.pointee.state == .retired || other.pointee.image.gnuHash.isEmpty
            ? nil : withUnsafePointer(to: &other.pointee.image) { $0 }
    }
}
