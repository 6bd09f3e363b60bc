// The library that defines a function: for functions whose name alone does not show what they do.
import CSupport

enum FunctionHome {
    /// The C library, or what was a part of it.
    static func isLibc(_ owner: UnsafePointer<Image>) -> Bool {
        isOne(of: "libc.", "libpthread.", owner) || isOne(of: "libdl.", "ld-", owner)
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
