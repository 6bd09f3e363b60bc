// The lock of all that the agent knows of modules and does with their slots and stubs.
import CSupport

/// Held while modules are added or retired, stubs made or slots bound: in the loader's hook, in initializers and finalizers, at the end
/// of dlopen, at the first call of a lazy slot. Only the loader's hook and initializers have the loader's lock, too, which is then taken
/// before; nothing of the loader or the program is called with this one.
enum ModuleLock {
    nonisolated(unsafe) private static var lock = Lock()
    static func locked<Result>(_ body: () -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }
    /// Does nothing if another thread has the lock.
    static func ifFree(_ body: () -> Void) {
        if !lock.tryLock() { return }
        defer { lock.unlock() }
        body()
    }
    /// True while the loader removes modules of the base namespace: which ones is not known yet, so what is noted of any of them may be
    /// out of date. Changed with the lock held.
    nonisolated(unsafe) static var isUnloading = false
    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }
}
