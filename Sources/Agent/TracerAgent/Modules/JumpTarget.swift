// The stack pointer with which longjmp and setcontext go on, as the program has stored it.
import CSupport

enum JumpTarget {
    nonisolated(unsafe) private static var guardWord: UInt64?

    /// glibc keeps the stack pointer with others' hands off: by a secret of the process.
    static func of(jump buffer: UInt64) -> UInt64? {
        guard let words = UnsafePointer<UInt64>(bitPattern: UInt(buffer)), let secret else { return nil }
        return tracer_unmangle(words[Architecture.jumpStackPointer], secret)
    }
    static func of(context: UInt64) -> UInt64? {
        context == 0 ? nil : UnsafePointer<UInt64>(bitPattern: UInt(context &+ Architecture.contextStackPointer))?.pointee
    }

    private static var secret: UInt64? {
        if !Architecture.guardIsInLoader { return 0 }
        if guardWord == nil { guardWord = find() }
        return guardWord
    }
    private static func find() -> UInt64? {
        let name: StaticString = "__pointer_chk_guard"
        guard let loader = ModuleTable.module(of: Process.loaderBase) else { return nil }
        return withUnsafePointer(to: &loader.pointee.image) { image in
            let query = SymbolQuery(name: Name(CText(name.utf8Start)), version: VersionNeed())
            guard let index = Image.find(query, in: image), let symbol = image.pointee.symbol(index)?.pointee else { return nil }
            return UnsafePointer<UInt64>(bitPattern: UInt(image.pointee.bias &+ symbol.value))?.pointee
        }
    }
}
