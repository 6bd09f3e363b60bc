// Calls that may show that the program is ready: output to a terminal or standard output, sd_notify(3) with READY=1, a commit of a Wayland
// surface, a function that the user names. Their arguments decide, so their stubs are special until one of them has shown it, and
// ordinary afterwards but for one comparison. The first call of each kind is recorded; the tool chooses among them.
import CSupport
import CTraceLayout

enum Ready {
    nonisolated(unsafe) private static var seen: UInt32 = 0 // bits: 1 << TRACE_READY_…
    nonisolated(unsafe) private static var inspected: UInt32 = 0
    /// Most writes that are looked at: a program that has written so often elsewhere does not show by a write that it is ready.
    private static let mostInspected: UInt32 = 4096

    /// Something has shown that the program is ready.
    static var isPast: Bool { seen != 0 }

    /// A call of one of these functions begins.
    static func inspect(
        _ hook: UnsafeMutablePointer<function_hook>, _ policy: HookPolicy, _ spills: Spills,
        _ recorder: ThreadRecorder
    ) {
        let reason: UInt32
        switch policy {
        case .ready: reason = UInt32(TRACE_READY_SYMBOL)
        case .notify, .notifyOfPid: reason = UInt32(TRACE_READY_NOTIFY)
        case .waylandRequest: reason = UInt32(TRACE_READY_FRAME)
        default: reason = UInt32(TRACE_READY_OUTPUT)
        }
        inspected &+= policy == .output ? 1 : 0
        if isSeen(reason) || policy == .output && inspected > mostInspected {
            let entry = FunctionTable.entry(hook.pointee.function), later: HookPolicy = entry.isEntryOnly ? .entryOnly : .record
            let program = later == .record ? hook.pointee.counter : 0, isPlain = entry.trigger == 0 && ArgumentPlan.isPlain(program)
            let isOrdinary = program == 0 && entry.trigger == 0 || isPlain
            if isPlain { hook.pointee.argument |= UInt8(FUNCTION_HAS_VALUES) } // before the kind: no call goes without
            tracer_store_release_8(&hook.pointee.kind, isOrdinary ? later.kind : UInt8(KIND_ARGUMENTS))
            return
        }
        switch policy {
        case .output where !isOutput(spills.firstArgument): return
        case .notify where !saysReady(spills.secondArgument), .notifyOfPid where !saysReady(spills.thirdArgument): return
        case .waylandRequest where !isCommit(spills.secondArgument, of: spills.firstArgument): return
        default: record(reason, hook.pointee.function, recorder)
        }
    }

    static func record(_ reason: UInt32, _ function: UInt32, _ recorder: ThreadRecorder) {
        if isSeen(reason) || !TraceOutput.isWritable { return }
        seen |= 1 &<< reason
        var fixed = trace_ready_record()
        fixed.function = function
        fixed.thread = recorder.context.pointee.index
        fixed.ticks = Clock.ticks()
        MetadataWriter.append(Int(TRACE_RECORD_READY), UInt16(truncatingIfNeeded: reason), fixed)
    }
    private static func isSeen(_ reason: UInt32) -> Bool { seen &>> reason & 1 != 0 }

    private static func isOutput(_ descriptor: UInt64) -> Bool {
        let number = Int(Int32(truncatingIfNeeded: descriptor))
        if number == 1 { return true }
        var settings = InlineArray<16, UInt32>(repeating: 0) // struct termios of the kernel: 36 bytes
        var span = settings.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            SystemCall.call(SystemCall.ioctl, number, 0x5401, bits($0.baseAddress)) == 0 // TCGETS
        }
    }

    /// A request is known by its number and its object's interface (wl_surface in wayland.xml). The function is about to read both itself: a
    /// struct wl_proxy begins with the address of its struct wl_interface, and that with the address of the name (wayland-private.h).
    private static func isCommit(_ request: UInt64, of proxy: UInt64) -> Bool {
        let commit: UInt32 = 6
        guard UInt32(truncatingIfNeeded: request) == commit,
            let interface = UnsafePointer<UnsafePointer<CText>>(bitPattern: UInt(proxy))?.pointee
        else { return false }
        return equal(interface.pointee, literal: "wl_surface")
    }

    /// Lines of NAME=VALUE.
    private static func saysReady(_ argument: UInt64) -> Bool {
        guard var text = CText(bitPattern: UInt(argument)) else { return false }
        while true {
            if rest(of: text, after: "READY=1") != nil { return true }
            while text[0] != 0 && text[0] != 0x0a { text += 1 }
            if text[0] == 0 { return false }
            text += 1
        }
    }
}
