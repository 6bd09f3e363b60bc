// Where functions are patched, unwinders learn of moved code what it stands for (CSupport/moved_code.h). They ask the loader, through
// slots of their own, which lead to ours.
import CSupport

enum UnwinderQuestions {
    /// What a slot of `asker` is to hold, of these two functions of the C library.
    static func findObject(_ target: UInt64) -> UInt64 { tracer_replace_find_object(target) }
    /// nil: it is no unwinder; a program's own list of its modules stays as it is.
    static func iterate(_ target: UInt64, for asker: UnsafePointer<Image>) -> UInt64? {
        if FunctionHome.isOne(of: "libgcc_s.", "libgcc_s-", asker) { return tracer_replace_iterate(target, UNWINDER_GCC) }
        if FunctionHome.isOne(of: "libunwind.", "libunwind-", asker) {
            return tracer_replace_iterate(target, UNWINDER_LIBUNWIND)
        }
        return nil
    }
}
