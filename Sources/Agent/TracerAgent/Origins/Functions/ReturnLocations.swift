// V8 walks its stacks from the location of a return address: code that it has generated calls C++ functions, callbacks of the embedder and
// its own, and a collection looks up that address in a table of its code. For profilers that exchange return addresses it asks where the
// true one is (v8::V8::SetReturnAddressLocationResolver, include/v8-initialization.h), before it begins, once for all.
import CSupport

enum ReturnLocations {
    /// Answers the modules of the start.
    static func offer() {
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state == .pending, let setter = setter(&module.pointee.image) {
                tracer_answer_locations(setter)
                GeneratedCode.looksAtNone = true
            }
        }
    }
    /// A later module may not be relocated when its functions are to be patched, and none of its code can be called before: they are left
    /// alone.
    static func isUnanswered(_ module: UnsafeMutablePointer<Module>) -> Bool {
        !module.pointee.isStartup && setter(&module.pointee.image) != nil
    }
    @inline(never) private static func setter(_ image: UnsafePointer<Image>) -> UInt64? {
        Image.function("_ZN2v82V832SetReturnAddressLocationResolverEPFmmE", of: image)
    }
}
