// Functions that want to know who calls them: they read their return address, and ask of which module it is. Through a slot they
// would find a label. Who asks refers to what answers, dladdr and its kin or dl_iterate_phdr; of such a module the functions
// whose code reads the return address (ReturnReading) are recorded without their duration, and return to their caller. The code
// of all functions is not read, since that would cost a start some page faults for each.
//
// An unwinder asks dl_iterate_phdr, too, and is answered otherwise (UnwinderQuestions.swift).
import CSupport

enum CallerQuestions {
    /// Marks those of the modules that are not bound yet.
    static func mark() {
        ForeignConvention.forEachPending { $0.pointee.asksForCallers = asks(&$0.pointee.image) }
    }
    /// Largest code size of a module that is read, in bytes: modules that register plugins, log or trace allocations are small. In
    /// libcrypto, which asks dladdr for its own address, 4,000 functions would be read at each start.
    private static let mostCodeBytes: UInt64 = 1 << 20

    private static func asks(_ image: UnsafePointer<Image>) -> Bool {
        if image.pointee.codeBytes > mostCodeBytes || UnwinderQuestions.isUnwinder(image) { return false }
        var names = OutsideNames(image, ofSlots: true)
        while let name = names.next() { if isQuestion(name) { return true } }
        return false
    }
    /// _dl_addr: glibc's own dladdr (malloc_debug, for mtrace).
    private static func isQuestion(_ name: CText) -> Bool {
        if name[0] == 0x64 { return rest(of: name, after: "dladdr") != nil || equal(name, literal: "dl_iterate_phdr") }
        return name[0] == 0x5f && equal(name, literal: "_dl_addr")
    }
}
