import Glibc

/// A thread of the tool's own. It takes no signals, which are for the run loop.
enum ToolThread {
    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// nil: there is none to be had.
    static func begin(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
        var every = sigset_t(), before = sigset_t()
        sigfillset(&every)
        pthread_sigmask(SIG_BLOCK, &every, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let work = Unmanaged.passRetained(Work(body))
        var made = pthread_t()
        let result = pthread_create(
            &made, nil,
            { argument in
                Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, work.toOpaque())
        if result == 0 { return made }
        work.release()
        return nil
    }
}
