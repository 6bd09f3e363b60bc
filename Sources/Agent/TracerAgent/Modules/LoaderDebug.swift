// The loader's r_debug: its lists of modules, and the hook that it calls when they change.
import CSupport

enum LoaderDebug {
    nonisolated(unsafe) private static var known: UnsafeMutablePointer<loader_debug>?

    /// Found by DT_DEBUG of the executable (gABI, "Dynamic Section"): the symbol may lead to a copy in the executable (a copy relocation),
    /// which the loader does not keep up to date. nil: neither is there.
    static func find() -> UnsafeMutablePointer<loader_debug>? {
        if known == nil { known = ofExecutable() ?? tracer_loader_debug() }
        return known
    }
    private static func ofExecutable() -> UnsafeMutablePointer<loader_debug>? {
        guard let headers = UnsafePointer<ProgramHeader>(bitPattern: UInt(Process.programHeaders)) else { return nil }
        var bias: UInt64 = 0, dynamic: UInt64 = 0
        for n in 0..<Process.programHeaderCount {
            if headers[n].type == ProgramHeader.itself { bias = Process.programHeaders &- headers[n].address }
            if headers[n].type == ProgramHeader.dynamic { dynamic = headers[n].address }
        }
        guard dynamic != 0, var entry = UnsafePointer<DynamicEntry>(bitPattern: UInt(bias &+ dynamic)) else { return nil }
        while entry.pointee.tag != DynamicTag.end {
            if entry.pointee.tag == DynamicTag.debug { return UnsafeMutablePointer(bitPattern: UInt(entry.pointee.value)) }
            entry += 1
        }
        return nil
    }
}
