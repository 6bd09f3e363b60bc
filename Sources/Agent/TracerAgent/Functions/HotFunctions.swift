// Functions that record their calls themselves, are called very often, and are so short that recording costs more than they do: an
// accessor would take ten times as long as without. What a thread has written is looked at, a word in some dozens, when its chunk is
// full. Who is found leads past the recorder from then on, by one store of a word that its stub reads at each call. The file says
// when that was; until then all its calls are in it.
import CSupport
import CTraceLayout

enum HotFunctions {
    /// TRACER_KEEPHOT.
    nonisolated(unsafe) static var areKept = Variables.keepsHot.standard

    /// About this many complete calls are needed to decide.
    private static let calls = 100_000
    /// One word in `stride` is looked at: a prime, so that no loop of the program keeps step with it.
    private static let stride = 61
    private static let samples = UInt32(calls / stride)
    /// A call, measured with a clock read in it, is short if it takes less than this many times the cost of recording one.
    private static let shortness: UInt64 = 2

    /// Sums over the calls that were looked at. A call of more than 2^20 ticks counts as 2^20, so that the sum fits.
    private struct Seen: BitwiseCopyable {
        var hook: UnsafeMutablePointer<function_hook>? // nil: its calls come through slots, or it is suppressed
        var calls: UInt32 = 0
        var ticks: UInt32 = 0
    }
    nonisolated(unsafe) private static var functions = Table<Seen>() // indexed by id; appended to with FunctionTable's lock held
    nonisolated(unsafe) private static var lock = Lock()
    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    /// The function got this id. FunctionTable's lock is held.
    static func add(_ id: UInt32, _ hook: UnsafeMutablePointer<function_hook>) {
        if areKept { return }
        while functions.count <= Int(id) { if !functions.append(Seen(hook: nil)) { return } }
        functions.pointer(Int(id)).pointee.hook = hook
    }

    /// Signals are blocked. No word below `end` is written any more, but those that an interrupted trampoline has reserved.
    static func look(_ words: UnsafePointer<UInt64>, _ end: UnsafePointer<UInt64>) {
        if functions.count == 0 { return }
        let cost = UInt64(TraceOutput.cost.leaf)
        if cost == 0 { return } // not known, or a time filter omits what is short
        lock.lock()
        defer { lock.unlock() }
        var word = words
        while word < end {
            let event = Event(word: word.pointee)
            word += stride
            if event.kind != .complete || Int(event.function) >= functions.count { continue }
            let function = functions.pointer(Int(event.function))
            if function.pointee.hook == nil { continue }
            function.pointee.calls &+= 1
            function.pointee.ticks &+= UInt32(min(event.duration, 1 &<< 20))
            if function.pointee.calls < samples { continue }
            if UInt64(function.pointee.ticks) &* UInt64(TRACE_COST_PARTS) < UInt64(samples) &* cost &* shortness {
                suppress(event.function, function)
            }
            function.pointee.calls = 0
            function.pointee.ticks = 0
        }
    }

    private static func suppress(_ id: UInt32, _ function: UnsafeMutablePointer<Seen>) {
        guard let hook = function.pointee.hook else { return }
        function.pointee.hook = nil
        MetadataWriter.suppressed(id, ticks: Clock.ticks())
        tracer_store_release_64(&hook.pointee.instant, tracer_address_pass()) // FUNCTION_ENTER
    }
}
