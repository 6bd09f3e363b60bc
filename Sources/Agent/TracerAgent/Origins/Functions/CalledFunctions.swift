// Records which functions were called, and nothing else (TRACER_MODE=counts). The first call gives a function its number, and that is
// all that the file gets. Soon afterwards its first bytes are restored, so that it costs nothing from then on, however often it is
// called.
//
// Other threads may be running there, and no store puts five bytes in place so that everybody sees either all of the old or all of the new
// ones (Intel SDM volume 3, "Handling Self- and Cross-Modifying Code"); nor may code be writable while it is executed. So a block of pages
// is mapped from the file once more (FilePages.swift), becomes there what it is to be, and mremap(2) moves it over the block: the kernel
// takes the old pages away before it puts the new ones in, and holds mmap_lock meanwhile (mm/mremap.c, mremap_to), so that whoever comes
// waits in a page fault. No instruction is read from both. A thread that has jumped to the stub goes on there, since stubs stay for ever.
// In /proc/self/maps the code is the file's before and afterwards, and a page without a replaced function is the file's own again.
import CSupport
import CTraceLayout

/// How a function's first bytes were.
struct ReplacedBytes: BitwiseCopyable {
    enum State: UInt8 { case replaced, isToBePutBack, isOver }

    let address: UInt64
    private var bytes: (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 0, 0, 0, 0)
    private let count: UInt8
    var state = State.replaced

    static let most = 5

    init(address: UInt64, original: UnsafePointer<UInt8>, count: Int) {
        self.address = address
        self.count = UInt8(truncatingIfNeeded: min(count, Self.most))
        withUnsafeMutableBytes(of: &bytes) { for n in 0..<min(count, Self.most) { $0[n] = original[n] } }
    }

    var end: UInt64 { address &+ UInt64(count) }
    /// False: somebody else, a debugger for one, has written something else there.
    func putBack(into copy: UnsafeMutableRawPointer) -> Bool {
        if !EntryPatch.isJump(copy) { return false }
        withUnsafeBytes(of: bytes) { for n in 0..<Int(count) { copy.storeBytes(of: $0[n], toByteOffset: n, as: UInt8.self) } }
        return true
    }
}

enum CalledFunctions {
    /// Variables.mode is `counts`.
    nonisolated(unsafe) static var areWanted = false

    /// Number of calls of a called function that are let by before it is checked whether its bytes are due to be put back.
    static let passes: UInt64 = 255

    private struct Called: BitwiseCopyable {
        let replaced: UnsafeMutablePointer<ReplacedBytes>
        let hook: UnsafeMutablePointer<function_hook>
        let module: Int
    }
    /// Functions whose bytes are to be put back. ModuleLock is held.
    nonisolated(unsafe) private static var called = Table<Called>()
    /// CLOCK_MONOTONIC: the next time for it.
    nonisolated(unsafe) private static var due: UInt64 = 0
    private static let leastPause: UInt64 = 5_000_000
    /// Putting back takes one part in `pauseFactor` of the time.
    private static let pauseFactor: UInt64 = 100

    /// FunctionTable's lock is held. The store is the last: who reads it finds the rest.
    static func isNumbered(_ hook: UnsafeMutablePointer<function_hook>) {
        hook.pointee.head = passes
        tracer_store_release_64(&hook.pointee.instant, tracer_address_pass_some()) // FUNCTION_ENTER
    }
    /// Its bytes have been replaced, for the first time or in a module that has come again.
    static func isReplaced(_ hook: UnsafeMutablePointer<function_hook>) {
        if hook.pointee.kind == UInt8(KIND_PATCHED) { isNumbered(hook) }
    }

    /// Called by the slow path: at the first call of the function, or at one of the later ones.
    static func look(at hook: UnsafeMutablePointer<function_hook>) {
        if hook.pointee.kind == UInt8(KIND_UNNAMED) && !PatchedFunctions.number(hook) { return }
        hook.pointee.head = passes
        // Who finds others at work comes again.
        ModuleLock.ifFree {
            guard let (replaced, module) = PatchedFunctions.replaced(hook) else { return end(hook) }
            switch replaced.pointee.state {
            case .isOver: return end(hook)
            case .replaced:
                if !called.append(Called(replaced: replaced, hook: hook, module: module)) { return end(hook) }
                replaced.pointee.state = .isToBePutBack
            case .isToBePutBack: break
            }
            let now = Clock.monotonic()
            if due == 0 { due = now &+ leastPause }
            if now >= due && !ModuleLock.isUnloading { putBack(since: now) }
        }
    }

    /// It leads past the recorder from now on, and nothing is looked at any more.
    private static func end(_ hook: UnsafeMutablePointer<function_hook>) {
        tracer_store_release_64(&hook.pointee.instant, tracer_address_pass()) // FUNCTION_ENTER
    }

    private static func putBack(since begin: UInt64) {
        // For a moment there is more memory, which the program might want.
        let hasSpace =
            ResourceLimit.soft(ResourceLimit.addressSpace) == .max && ResourceLimit.soft(ResourceLimit.data) == .max
            && TraceSpace.isRealKernel
        for n in 0..<called.count where called[n].replaced.pointee.state == .isToBePutBack {
            if !hasSpace || !replaceBlock(of: n) { leave(n) }
        }
        called.removeAll()
        let now = Clock.monotonic()
        due = now &+ max((now &- begin) &* pauseFactor, leastPause)
    }
    private static func leave(_ n: Int) {
        called[n].replaced.pointee.state = .isOver
        end(called[n].hook)
    }

    /// With all that are to be put back there. False: it cannot be done for this one.
    private static func replaceBlock(of first: Int) -> Bool {
        guard let block = block(of: called[first].replaced.pointee, in: called[first].module) else { return false }
        let byteCount = Int(block.upperBound &- block.lowerBound)
        guard let wanted = Memory.pages(byteCount) else { return false }
        defer { Memory.release(wanted, byteCount) }
        Memory.populate(wanted, byteCount)
        wanted.copyMemory(from: UnsafeRawPointer(bitPattern: UInt(block.lowerBound))!, byteCount: byteCount)
        forEach(in: block, from: first) { n in
            let replaced = called[n].replaced.pointee
            if !replaced.putBack(into: wanted + Int(replaced.address &- block.lowerBound)) { leave(n) }
        }
        guard let code = FilePages.map(block, of: ModuleTable.modules.pointer(called[first].module).pointee.image) else { return false }
        let address = UInt64(UInt(bitPattern: code))
        if !Memory.protect(address, UInt64(byteCount), Memory.readWrite) || !become(wanted, code, byteCount)
            || !Memory.protectCode(address, UInt64(byteCount)) || !Memory.move(code, byteCount, to: block.lowerBound)
        {
            Memory.release(code, byteCount)
            return false
        }
        forEach(in: block, from: first) { leave($0) }
        return true
    }
    /// A page that is as it is to be stays the file's own. False: no memory for the others.
    private static func become(_ wanted: UnsafeMutableRawPointer, _ code: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        let page = Memory.pageBytes
        var offset = 0
        while offset < byteCount {
            if !Memory.isSame(wanted + offset, code + offset, page) {
                if Memory.populate(code + offset, page) != 0 { return false }
                (code + offset).copyMemory(from: wanted + offset, byteCount: page)
            }
            offset = offset &+ page
        }
        return true
    }
    private static func forEach(in block: Range<UInt64>, from first: Int, _ body: (Int) -> Void) {
        for n in first..<called.count {
            let replaced = called[n].replaced.pointee
            if replaced.state == .isToBePutBack && replaced.address >= block.lowerBound && replaced.end <= block.upperBound { body(n) }
        }
    }

    /// As much of the module's code as is copied at once. Always the same blocks, so that they stay few: each is a mapping of its own
    /// afterwards, of which a process has 65,530 (vm.max_map_count). nil: the bytes are in two of them, or this code is not to be replaced,
    /// or the module's first page, which FilePages takes for a moment, has such bytes too.
    private static func block(of replaced: ReplacedBytes, in module: Int) -> Range<UInt64>? {
        let entry = ModuleTable.modules.pointer(module)
        // Nothing reports when modules of other namespaces are unloaded.
        if entry.pointee.state == .retired || !entry.pointee.inBaseNamespace { return nil }
        let image = entry.pointee.image, page = UInt64(Memory.pageBytes), most = page &* 64
        if PatchedFunctions.firstReplaced(in: module) < (image.low & ~(page &- 1)) &+ page { return nil }
        for n in 0..<image.segmentCount {
            let segment = image.segment(n), start = image.bias &+ segment.address
            if segment.type != ProgramHeader.load || replaced.address &- start >= segment.memoryBytes { continue }
            if segment.flags != ProgramHeader.readable | ProgramHeader.executable { return nil }
            let segmentLow = start & ~(page &- 1), segmentHigh = (start &+ segment.memoryBytes &+ page &- 1) & ~(page &- 1)
            let low = segmentLow &+ (replaced.address &- segmentLow) / most &* most, high = min(low &+ most, segmentHigh)
            return replaced.end <= high && !isWritable(low..<high, page) ? low..<high : nil
        }
        return nil
    }
    /// A program that has made its code writable writes to it.
    private static func isWritable(_ block: Range<UInt64>, _ page: UInt64) -> Bool {
        var address = block.lowerBound
        while address < block.upperBound {
            if Memory.tryWriting(address) != -Failure.address { return true }
            address = address &+ page
        }
        return false
    }
}
