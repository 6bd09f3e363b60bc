// Choosing one of several names of a function to show.

public enum SymbolRank {
    /// The lower one is shown. Names that begin with underscores are a library's own (C11 7.1.3): of `send` and `__send` people know the
    /// first, which glibc makes the weak one. A mangled name begins with `_Z`, and says nothing by it.
    /// A resolver that has a name of its own goes by that one, be it local.
    /// - Parameters:
    ///   - isNoType: a symbol without a type, of hand-written code
    ///   - isResolver: the name is that of what an IFUNC resolver chooses
    public static func of(_ name: UnsafeRawBufferPointer, isNoType: Bool, isResolver: Bool, isLocal: Bool, isWeak: Bool) -> UInt8 {
        let underscore = UInt8(ascii: "_"), isMangled = name.count > 2 && name[0] == underscore && name[1] == UInt8(ascii: "Z")
        let underscores = isMangled ? 0 : UInt8(min(name.prefix { $0 == underscore }.count, 7))
        return (isResolver ? 128 : 0) + (isNoType ? 64 : 0) + (isLocal ? 32 : 0) + underscores * 2 + (isWeak ? 1 : 0)
    }
}
