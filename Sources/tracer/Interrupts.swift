// Signals by which a user ends the tool.
@preconcurrency import Glibc

/// Has `handler` run from now on, at any moment (signal-safety(7)): none that comes is lost between an old disposition and
/// the new one. A signal that is ignored stays so, as nohup asks for, and a shell for what it runs in the background.
func handle(_ signals: [Int32], by handler: @escaping @convention(c) (Int32) -> Void) {
    for number in signals {
        var before = sigaction()
        sigaction(number, nil, &before)
        let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == 1 // SIG_IGN
        if !isIgnored { signal(number, handler) }
    }
}
