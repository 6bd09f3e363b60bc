// Names of IFUNC resolvers. The symbol has the name of the function that the resolver chooses an implementation of, but at its address is
// the resolver, which only the loader calls (gABI extension STT_GNU_IFUNC). gcc names the resolvers that it makes itself
// (`target_clones`) by the function's name and this ending, and demanglers know it.

public final class ResolverNames {
    public static let ending = ".resolver"
    private var buffers: [UnsafeMutableRawBufferPointer] = []

    public init() {}

    /// Valid as long as this object.
    public func add(_ name: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var ending = Self.ending
        return ending.withUTF8 { ending in
            if name.count >= ending.count, name.suffix(ending.count).elementsEqual(ending) { return name }
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: name.count + ending.count, alignment: 1)
            buffer.copyMemory(from: name)
            UnsafeMutableRawBufferPointer(rebasing: buffer[name.count...]).copyMemory(from: UnsafeRawBufferPointer(ending))
            buffers.append(buffer)
            return UnsafeRawBufferPointer(buffer)
        }
    }

    static func of(_ name: String) -> String { name.hasSuffix(ending) ? name : name + ending }

    deinit { for buffer in buffers { buffer.deallocate() } }
}
