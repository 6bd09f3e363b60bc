// Code that ran once because somebody was the first to need it: swift_once, local statics of C++, pthread_once.
import Presentation
import TraceFormat

package struct LazyRun: Sendable {
    /// swift_once, __cxa_guard_acquire, pthread_once.
    package var means: String
    /// The code that ran, or the variable that was initialized.
    package var name: CodeName
    package var tid: UInt32
    package var start: Nanoseconds
    /// nil: its end is not known.
    package var duration: Nanoseconds?
    /// Estimated cost of recording the calls in it, contained in `duration`.
    package var recording: Nanoseconds
    /// The call during which it happened, or the constructor.
    package var during: String?
    /// Index of its thread in the trace; it lasts from the call that found nothing done to the end of the code that it ran.
    let thread: UInt32
    let begin: Ticks
    let end: Ticks?
    /// nil: the kernel has not reported it.
    package internal(set) var offCPU: OffCPUTime?

    static func all(_ context: StartupContext) -> [LazyRun] {
        let metadata = context.trace.metadata, records = metadata.start
        return records.onces.enumerated().compactMap { index, once in
            guard once.ticks <= context.end else { return nil }
            let run = context.calls.onceRuns[index]
            let within = records.initializers.last {
                $0.thread == once.thread && $0.begin.ticks <= once.ticks && ($0.end.map { $0.usage.ticks >= once.ticks } ?? true)
            }
            let parent = run?.parent.flatMap { metadata.functions[$0] }
            let during =
                parent.flatMap { Self.onceFunctions.contains($0.rawName) ? nil : context.names.function($0.id).name }
                ?? within.map { context.names.name(at: $0.address, in: $0.module).name }
            let (means, name) = self.name(once, metadata.functions[once.function].map { demangled($0.rawName) } ?? "?", context)
            return LazyRun(
                means: means, name: name,
                tid: context.tid(once.thread), start: context.clock.since(once.ticks),
                duration: run.map { context.clock.net(once.ticks, $0.end, on: once.thread) }, recording: context.recording(run?.calls ?? 0),
                during: during,
                thread: once.thread, begin: once.ticks, end: run?.end)
        }
    }

    private static let guardPrefix = "guard variable for "
    private static let swiftPrefix = "one-time initialization function for "

    private static let onceFunctions: Set<String> = ["pthread_once", "swift_once", "__cxa_guard_acquire"]

    private static func name(_ once: Once, _ means: String, _ context: StartupContext) -> (means: String, name: CodeName) {
        if once.code != 0 {
            var name = context.names.name(at: once.code)
            // libstdc++'s std::call_once gives pthread_once this, and what it is to run in a thread-local variable: the flag
            // has a name of its own.
            if name.symbol == "__once_proxy" { return ("std::call_once", self.name(ofVariable: once.token, context)) }
            if name.name.hasPrefix(swiftPrefix) { name.name = String(name.name.dropFirst(swiftPrefix.count)) }
            return (means, name)
        }
        return (means, self.name(ofVariable: once.token, context))
    }

    private static func name(ofVariable token: UInt64, _ context: StartupContext) -> CodeName {
        let module = context.names.module(at: token)
        if let symbol = context.names.variable(at: token) {
            var name = demangled(symbol)
            if name.hasPrefix(guardPrefix) { name = String(name.dropFirst(guardPrefix.count)) }
            return CodeName(name: name, symbol: symbol, module: module?.name ?? FunctionNames.noModule)
        }
        let offset = token &- (module?.loadBias ?? 0)
        return CodeName(
            name: (module.map { $0.name + "+" } ?? "") + "0x" + String(offset, radix: 16), symbol: "",
            module: module?.name ?? FunctionNames.noModule)
    }
}
