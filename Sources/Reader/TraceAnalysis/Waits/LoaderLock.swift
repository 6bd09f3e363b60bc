// Waits for the loader's lock (glibc elf/dl-open.c, _dl_load_lock). The dlopen that brings a library has it until the library's
// constructors have returned, and every other dlopen and dlclose waits for that.
import TraceFormat

extension WaitSearch {
    private static let waiters: Set = ["dlopen", "dlmopen", "dlclose", "dladdr", "dladdr1", "dlinfo"]

    mutating func findLoaderLock(_ workers: Int, _ progress: ReadingProgress?) {
        let loads = trace.metadata.start.loads.filter { $0.end != nil }
        let isWaiter = waiterRows(Self.waiters)
        let wanted = waits.indices.filter { index in
            let wait = waits[index], row = Int(wait.call.row)
            return row < isWaiter.count && isWaiter[row] && (wait.kind == .other || wait.kind == .lock)
        }
        guard !loads.isEmpty, !wanted.isEmpty else { return }
        let calls = ThreadCalls.all(in: trace.narrowed(to: .whole), table, waiterRows(["dlopen"]), workers: workers, progress: progress) {
            _ in
            true
        }
        let holds = loads.map { load in
            (load, from: (load.opened ?? load.mapped.ticks).raw, until: load.end!.ticks.raw)
        }.sorted { $0.from < $1.from }
        let indexOfThread = indexOfThread
        for index in wanted {
            let wait = waits[index], own = threads[wait.thread].thread
            let others = holds.filter { $0.0.thread != own && $0.from < wait.end && $0.until > wait.begin }
            guard let first = others.first, let thread = indexOfThread[first.0.thread] else { continue }
            func call(of hold: (Load, from: UInt64, until: UInt64)) -> OpenCall? {
                calls?.first { $0.thread == hold.0.thread && $0.call.enter <= hold.from && $0.end >= hold.from }?.call
            }
            settle(index, .lock, "the loader's lock")
            waits[index].holder = Wait.Holder(
                thread: thread, since: first.from, until: first.until, act: call(of: first) ?? OpenCall(), load: first.0.number)
            waits[index].handovers = others.count
            // It lets go a little before it returns.
            if let last = others.last, let waker = indexOfThread[last.0.thread], let act = call(of: last) {
                let at = min(last.until, wait.end)
                waits[index].waker = Wait.Waker(thread: waker, act: act, at: at, late: wait.end - at)
            }
        }
    }

    private func waiterRows(_ names: Set<String>) -> [Bool] {
        [false] + table.rows.map { names.contains($0.symbol.isEmpty ? $0.name : $0.symbol) }
    }

    /// The library that a holder of the loader's lock was opening, as it was asked for; nil: it holds another lock, or that is unknown.
    func library(of holder: Wait.Holder) -> String? {
        guard let number = holder.load, let load = trace.metadata.start.loads.first(where: { $0.number == number }) else { return nil }
        return load.path.isEmpty ? nil : load.path
    }
}
