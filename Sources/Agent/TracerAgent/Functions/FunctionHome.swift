// The library that defines a function: for functions whose name alone does not show what they do.
import CSupport
import CTraceLayout

enum FunctionHome {
    /// The C library, or what was a part of it.
    static func isLibc(_ owner: UnsafePointer<Image>) -> Bool {
        isOne(of: "libc.", "libpthread.", owner) || isOne(of: "libdl.", "ld-", owner)
    }
    /// Returns true if the DT_SONAME begins with one of the two: a file may have any name.
    @inline(never) static func isOne(of first: StaticString, _ second: StaticString, _ image: UnsafePointer<Image>) -> Bool {
        guard let name = soname(image) else { return false }
        return rest(of: name, after: first) != nil || rest(of: name, after: second) != nil
    }
    /// Returns true if the library is the one whose function this is.
    @inline(never) static func isOne(of function: arguments_function, _ image: UnsafePointer<Image>) -> Bool {
        if function.home == UInt32(ARGUMENTS_OF_LIBC) { return isLibc(image) }
        guard let name = soname(image) else { return false }
        return arguments_library_id(name) == function.module
    }
    private static func soname(_ image: UnsafePointer<Image>) -> CText? {
        for n in 0..<image.pointee.dynamicEntryCount where image.pointee.dynamicEntry(at: n).tag == DynamicTag.soname {
            return image.pointee.string(Int(truncatingIfNeeded: image.pointee.dynamicEntry(at: n).value))
        }
        return nil
    }
}
