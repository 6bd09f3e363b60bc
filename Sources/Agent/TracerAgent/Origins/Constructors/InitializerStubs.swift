// Leads initializers and finalizers through stubs. Modules that are there at the start are relocated already: their
// arrays are changed in place, through RELRO. Of a module that is loaded later the array may not be relocated yet when the
// loader's hook reports it (WriteAccess.swift), so the *dynamic entry* is led to a table of ours (glibc elf/dl-init.c,
// call_init, and elf/dl-fini.c read both from there). What such a stub leads to is read from the module's array when the
// stub is called: nobody calls an initializer or finalizer of a module that is not relocated.
import CSupport
import CTraceLayout

/// Hook of a stub of KIND_INITIALIZER, with other values in the fields that an ordinary one has for its events.
struct InitializerStub {
    private let hook: UnsafeMutablePointer<function_hook>
    init(_ hook: UnsafeMutablePointer<function_hook>) { self.hook = hook }

    /// In the place of TRACE_INITIALIZER_…
    static let main: UInt32 = 15

    var kind: UInt32 { UInt32(hook.pointee.head &>> 32) }
    var index: UInt32 { UInt32(truncatingIfNeeded: hook.pointee.head) }
    var module: UInt32 { hook.pointee.function }
    var load: UInt32 { ModuleTable.modules.pointer(Int(module)).pointee.load }
    var isFinalizer: Bool { kind == UInt32(TRACE_INITIALIZER_FINI) || kind == UInt32(TRACE_INITIALIZER_FINI_ARRAY) }

    /// `original`: address of the word that will hold the target, while that is not known.
    func set(kind: UInt32, index: Int, module: Int, target: UInt64, original: UInt64 = 0) {
        hook.pointee.head = UInt64(kind) &<< 32 | UInt64(index)
        hook.pointee.function = UInt32(truncatingIfNeeded: module)
        hook.pointee.instant = original
        hook.pointee.target = UnsafeRawPointer(bitPattern: UInt(target))
    }
    /// It is called now, so the loader would read its array now. Where no slow path can be taken the trampoline does this.
    func findTarget() {
        if hook.pointee.target != nil { return }
        hook.pointee.target = UnsafePointer<UnsafeRawPointer?>(bitPattern: UInt(hook.pointee.instant))?.pointee
    }
}

enum InitializerStubs {
    private static let arrays: InlineArray<_, (tag: Int64, bytes: Int64, kind: UInt32)> = [
        (DynamicTag.preinitArray, DynamicTag.preinitArrayBytes, UInt32(TRACE_INITIALIZER_PREINIT_ARRAY)),
        (DynamicTag.initArray, DynamicTag.initArrayBytes, UInt32(TRACE_INITIALIZER_INIT_ARRAY)),
        (DynamicTag.finiArray, DynamicTag.finiArrayBytes, UInt32(TRACE_INITIALIZER_FINI_ARRAY)),
    ]
    private static let functions: InlineArray<_, (tag: Int64, kind: UInt32)> = [
        (DynamicTag.initializer, UInt32(TRACE_INITIALIZER_INIT)), (DynamicTag.finalizer, UInt32(TRACE_INITIALIZER_FINI)),
    ]

    private static func stub(_ target: UInt64, _ kind: UInt32, _ index: Int, _ module: Int) -> UInt64? {
        guard let (stub, hook) = FunctionTable.stub(kind: KIND_INITIALIZER) else { return nil }
        InitializerStub(hook).set(kind: kind, index: index, module: module, target: target)
        return stub
    }

    /// A stub for main.
    static func main(_ target: UInt64) -> UInt64? { ModuleLock.locked { stub(target, InitializerStub.main, 0, 0) } }

    // MARK: - Modules that are there

    static func replaceAtStart(_ index: Int, _ access: inout WriteAccess) {
        let image = ModuleTable.modules.pointer(index).pointee.image
        for n in 0..<functions.count {
            guard let entry = image.dynamicEntry(functions[n].tag), entry.pointee.value != 0,
                image.isCode(image.bias &+ entry.pointee.value),
                access.open(valueAddress(entry)),
                let stub = stub(image.bias &+ entry.pointee.value, functions[n].kind, 0, index)
            else { continue }
            entry.pointee.value = stub &- image.bias
        }
        for n in 0..<arrays.count {
            guard let (array, count) = entries(image, arrays[n].tag, arrays[n].bytes) else { continue }
            for slot in 0..<count {
                let address = array &+ UInt64(slot) &* 8
                guard let target = image.word64(address), ModuleTable.module(of: target)?.pointee.image.isCode(target) == true,
                    access.open(address), let stub = stub(target, arrays[n].kind, slot, index)
                else { continue }
                tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(address))!, stub)
            }
        }
    }

    private static func valueAddress(_ entry: UnsafeMutablePointer<DynamicEntry>) -> UInt64 { UInt64(UInt(bitPattern: entry)) &+ 8 }

    private static func entries(_ image: Image, _ tag: Int64, _ bytesTag: Int64) -> (UInt64, Int)? {
        guard let entry = image.dynamicEntry(tag), let bytes = image.dynamicEntry(bytesTag) else { return nil }
        let array = image.bias &+ entry.pointee.value
        let count = Int(truncatingIfNeeded: bytes.pointee.value / 8)
        guard count > 0, count < 65536, array & 7 == 0, image.contains(array, bytes.pointee.value) else { return nil }
        return (array, count)
    }

    // MARK: - Modules that are loaded later

    /// The module is mapped; it need not be relocated.
    static func replaceLater(_ module: UnsafeMutablePointer<Module>, _ index: Int, isRelocated: Bool) {
        if !module.pointee.hasStubs { reuseTables(of: module) }
        var access = WriteAccess(withUnsafeMutablePointer(to: &module.pointee.image) { $0 }, isRelocated: isRelocated)
        replaceFunction(module, index, 0, &module.pointee.initializer, &access)
        replaceFunction(module, index, 1, &module.pointee.finalizer, &access)
        replaceArray(module, index, 1, &module.pointee.initializers, &access)
        replaceArray(module, index, 2, &module.pointee.finalizers, &access)
        access.close()
    }

    /// Gives a library that is loaded again, at any address, the stubs that it had first.
    private static func reuseTables(of module: UnsafeMutablePointer<Module>) {
        for n in 0..<ModuleTable.modules.count {
            let old = ModuleTable.modules.pointer(n)
            if old.pointee.state != .retired || !old.pointee.hasStubs || !equal(old.pointee.path, module.pointee.path) { continue }
            module.pointee.initializer = old.pointee.initializer
            module.pointee.finalizer = old.pointee.finalizer
            module.pointee.initializers = StubTable(address: old.pointee.initializers.address, count: old.pointee.initializers.count)
            module.pointee.finalizers = StubTable(address: old.pointee.finalizers.address, count: old.pointee.finalizers.count)
            old.pointee.initializer = nil
            old.pointee.finalizer = nil
            old.pointee.initializers = StubTable()
            old.pointee.finalizers = StubTable()
            old.pointee.hasStubs = false
            return
        }
    }

    /// DT_INIT, DT_FINI: the loader adds the load bias to what the entry says.
    private static func replaceFunction(
        _ module: UnsafeMutablePointer<Module>, _ index: Int, _ which: Int,
        _ hook: inout UnsafeMutablePointer<function_hook>?,
        _ access: inout WriteAccess
    ) {
        let image = module.pointee.image
        guard let entry = image.dynamicEntry(functions[which].tag), entry.pointee.value != 0 else { return }
        if hook == nil { hook = FunctionTable.stub(kind: KIND_INITIALIZER)?.hook }
        guard let hook, access.open(valueAddress(entry)) else { return }
        module.pointee.hasStubs = true
        InitializerStub(hook).set(kind: functions[which].kind, index: 0, module: index, target: image.bias &+ entry.pointee.value)
        entry.pointee.value = Stubs.stub(of: hook) &- image.bias
    }

    private static func replaceArray(
        _ module: UnsafeMutablePointer<Module>, _ index: Int, _ which: Int, _ table: inout StubTable,
        _ access: inout WriteAccess
    ) {
        let image = module.pointee.image
        guard let (array, count) = entries(image, arrays[which].tag, arrays[which].bytes),
            let entry = image.dynamicEntry(arrays[which].tag), access.open(valueAddress(entry))
        else { return }
        if table.address == 0 || table.count != count {
            guard let buffer = Memory.pages(Memory.wholePages(count &* 8)) else { return }
            let stubs = buffer.assumingMemoryBound(to: UInt64.self)
            for n in 0..<count {
                guard let (stub, _) = FunctionTable.stub(kind: KIND_INITIALIZER) else { return }
                stubs[n] = stub
            }
            table.address = UInt64(UInt(bitPattern: buffer))
            table.count = count
        }
        for n in 0..<count {
            InitializerStub(Stubs.hook(ofStub: stubs(table)[n])).set(
                kind: arrays[which].kind, index: n, module: index, target: 0, original: array &+ UInt64(n) &* 8)
        }
        module.pointee.hasStubs = true
        entry.pointee.value = table.address &- image.bias
    }
    private static func stubs(_ table: StubTable) -> UnsafePointer<UInt64> { UnsafePointer(bitPattern: UInt(table.address))! }
}
