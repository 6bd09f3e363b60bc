// Unwinders ask the loader for descriptions of code, through slots of their own, which lead to ours: where functions are patched they
// learn of relocated instructions what they stand for (CSupport/relocated_code.h), and libunwind always has descriptions of labels that it
// can use (CSupport/label_frames.c).
import CSupport

enum UnwinderQuestions {
    /// Returns our function for a slot of `asker` with one of these two functions of the C library. nil: it is no unwinder that needs to
    /// learn anything; a program's own list of its modules stays as it is.
    static func substitute(for name: Name, at target: UInt64, askedBy asker: UnsafePointer<Image>) -> UInt64? {
        let unwinder = self.unwinder(asker)
        if isIteration(name.text) { return asks(asker) ? unwinder.map { tracer_replace_iterate(target, $0) } : nil }
        if !SpecialFunction.answersUnwinders && unwinder != UNWINDER_LIBUNWIND { return nil }
        return tracer_replace_find_object(target, unwinder ?? UNWINDER_GCC)
    }

    static func isQuestion(_ name: CText) -> Bool { isIteration(name) || equal(name, literal: "_dl_find_object") }
    @inline(__always) static func isIteration(_ name: CText) -> Bool { equal(name, literal: "dl_iterate_phdr") }
    /// It is an unwinder that ours answer.
    static func asks(_ image: UnsafePointer<Image>) -> Bool {
        guard let unwinder = unwinder(image) else { return false }
        return SpecialFunction.answersUnwinders || unwinder != UNWINDER_GCC
    }

    /// nongnu libunwind, or a program that has its unwinder inside, which may be that one.
    static func isNongnu(_ image: UnsafePointer<Image>) -> Bool {
        let unwinder = self.unwinder(image)
        return unwinder == UNWINDER_UNKNOWN || unwinder == UNWINDER_LIBUNWIND && Image.function("_ULx86_64_step", of: image) != nil
    }
    static func isUnwinder(_ image: UnsafePointer<Image>) -> Bool { unwinder(image) != nil }
    @inline(never) private static func unwinder(_ image: UnsafePointer<Image>) -> unwinder? {
        if FunctionHome.isOne(of: "libgcc_s.", "libgcc_s-", image) { return UNWINDER_GCC }
        if FunctionHome.isOne(of: "libunwind.", "libunwind-", image) { return UNWINDER_LIBUNWIND }
        return Image.function("_Unwind_RaiseException", of: image) != nil ? UNWINDER_UNKNOWN : nil
    }
}
