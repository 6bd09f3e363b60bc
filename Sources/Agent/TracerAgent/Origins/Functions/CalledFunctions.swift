// Records which functions were called, and nothing else (TRACER_MODE=counts). The first call gives a function its number, and that is
// all that the file gets. Soon afterwards its first bytes are restored, so that it costs nothing from then on, however often it is
// called.
//
// Other threads may be running there (ExchangedCode.swift). A thread that has jumped to the stub goes on there, since stubs stay for ever.
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
        let isPossible =
            ResourceLimit.soft(ResourceLimit.addressSpace) == .max && ResourceLimit.soft(ResourceLimit.data) == .max
            && TraceSpace.isRealKernel
        for n in 0..<called.count where called[n].replaced.pointee.state == .isToBePutBack {
            if !isPossible || !replaceBlock(of: n) { leave(n) }
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
        let image = ModuleTable.modules.pointer(called[first].module).pointee.image
        var code = ExchangedCode(image)
        defer { code.end() }
        let isDone = code.exchange(block, isOnly: true) { copy in
            forEach(in: block, from: first) { n in
                let replaced = called[n].replaced.pointee
                if !replaced.putBack(into: copy + Int(replaced.address &- block.lowerBound)) { leave(n) }
            }
        }
        if isDone { forEach(in: block, from: first) { leave($0) } }
        return isDone
    }
    private static func forEach(in block: Range<UInt64>, from first: Int, _ body: (Int) -> Void) {
        for n in first..<called.count {
            let replaced = called[n].replaced.pointee
            if replaced.state == .isToBePutBack && replaced.address >= block.lowerBound && replaced.end <= block.upperBound { body(n) }
        }
    }

    /// nil: this code is not to be replaced, or the module's first page has replaced bytes, too.
    private static func block(of replaced: ReplacedBytes, in module: Int) -> Range<UInt64>? {
        let entry = ModuleTable.modules.pointer(module), page = UInt64(Memory.pageBytes)
        // Nothing reports when modules of other namespaces are unloaded.
        if entry.pointee.state == .retired || !entry.pointee.inBaseNamespace { return nil }
        let image = entry.pointee.image
        if PatchedFunctions.firstReplaced(in: module) < (image.low & ~(page &- 1)) &+ page { return nil }
        return ExchangedCode.block(of: replaced.address..<replaced.end, in: image)
    }
}
