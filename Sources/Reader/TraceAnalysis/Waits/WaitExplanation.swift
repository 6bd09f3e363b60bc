// Explains a wait, for the terminal and for pages: what it was for, who held that, who woke the thread.
import Presentation
import Symbols
import TraceFormat

/// Not for use by two threads at once.
final class WaitExplanation {
    let search: WaitSearch
    private let sites: SiteNames
    private let symbolizer: Symbolizer
    private lazy var stacks = WaitStacks(search.trace, symbolizer)
    /// CLOCK_MONOTONIC from which times count.
    private let origin: UInt64

    init(_ search: WaitSearch, _ symbolizer: Symbolizer, origin: UInt64) {
        self.search = search
        self.origin = origin
        self.symbolizer = symbolizer
        sites = SiteNames(search.trace, symbolizer)
    }

    func time(_ ticks: UInt64) -> Int64 {
        let trace = search.trace
        let since = trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw))
        return Int64(truncatingIfNeeded: trace.header.first.monotonic_ns &- origin) &+ since
    }
    func length(_ ticks: UInt64) -> Nanoseconds { search.trace.timeScale.nanoseconds(ticks) }
    func site(of call: OpenCall) -> String? { sites.site(of: call, search) }
    func library(of call: OpenCall) -> String? { sites.library(of: call, search) }
    func site(of holder: Wait.Holder) -> String? { sites.site(of: holder, search) }

    /// "epoll_wait", or the system call that takes its place.
    func call(of call: OpenCall, _ systemCall: String?) -> String { search.name(call.row) ?? systemCall ?? "unknown calls" }

    /// "pthread_mutex_lock(0x559c) in refresh, dir.c:12 (git)"
    func what(_ wait: Wait, _ spelt: (String) -> String) -> String {
        guard let name = search.name(wait.call.row) else {
            let found = [wait.systemCall.map { "system call \($0)" }, wait.object].compactMap { $0 }
            if found.isEmpty { return search.isOfAgent(wait) ? "the agent's own start" : "-" }
            return found.joined(separator: ", ")
        }
        var text = spelt(name)
        if search.function(of: wait.call)?.kind != nil {
            text += "(\(wait.object ?? ""))"
        } else if let object = wait.object {
            text += ", \(object)"
        }
        if let systemCall = wait.systemCall, systemCall != name { text += ", system call \(systemCall)" }
        return text + (site(of: wait.call).map { " in \(spelt($0))" } ?? "")
    }

    /// The stack in which the thread waited, if somebody has looked.
    func stack(_ index: Int) -> WaitStacks.Stack? {
        let wait = search.waits[index], thread = search.threads[wait.thread]
        // A window may have cut the wait, but the thread did not run meanwhile.
        return thread.time(from: wait.begin, to: wait.end).flatMap { stacks.first(of: thread.tid, in: $0) }
    }

    /// "stack: read (libc.so.6) ← main (app) ← … 2 more"
    /// - Parameter deepest: frames to show, 0 all
    func stackText(_ index: Int, deepest: Int, _ spelt: (String) -> String) -> String? {
        stack(index).map { "stack: " + $0.text(deepest: deepest, spelt) }
    }

    /// Who held it, who waited for whom in the meantime, who woke the thread, and how late it then ran.
    func details(_ index: Int, _ spelt: (String) -> String) -> [String] {
        let wait = search.waits[index]
        var texts: [String] = []
        if let holder = wait.holder {
            let name = search.threads[holder.thread].title, chain = WaitChain(of: index, in: search)
            texts.append(
                (holder.since <= wait.begin ? "held by \(name) since " : "then taken by \(name) at ")
                    + readable(signed: time(holder.since))
                    + (search.library(of: holder).map { ", opening \($0)" } ?? "")
                    + (site(of: holder).map { ", in \(spelt($0))" } ?? "")
                    + (wait.handovers > 1 ? ", taken \(grouped(wait.handovers)) times during the wait" : ""))
            if chain.preempted > 0 {
                texts.append(
                    "\(name) was ready but had no CPU for \(readable(length(chain.preempted)))"
                        + (chain.inversion.map {
                            ": priority inversion, \(name) is \($0.holder.text), the waiting thread is \($0.waiter.text)"
                        }
                            ?? ""))
            }
            for link in chain.links {
                let other = search.waits[link.wait]
                texts.append(
                    "\(search.threads[other.thread].title) itself waited \(readable(length(link.duration))): "
                        + what(other, spelt) + (other.holder.map { ", held by \(search.threads[$0.thread].title)" } ?? ""))
            }
            if chain.isCircular { texts.append("they wait for each other") }
        }
        if let waker = wait.waker {
            let name = search.threads[waker.thread].title, ran = waker.late.map { ", ran \(readable(length($0))) after it" } ?? ""
            texts.append((search.name(waker.act.row).map { "woken by \(spelt($0)) of \(name)" } ?? "\(name) ended") + ran)
        }
        if let other = wait.otherProcess {
            let name = "\(other.name)/\(other.tid)", caller = other.caller.map { " in \(spelt($0))" } ?? ""
            texts.append(
                (other.function.map { "woken by \(spelt($0)) of \(name)\(caller)" } ?? "\(name) ended")
                    + ", ran \(readable(other.late)) after it")
        }
        if let first = wait.peers.first {
            let others = wait.peers.count - 1
            texts.append(
                "peer: \(first.name)/\(first.pid), file descriptor \(first.descriptor)"
                    + (others > 0 ? ", and \(counted(others, "process", "processes")) more" : ""))
        }
        return texts
    }
}

extension ThreadStates {
    /// The stretches that have both ends of a wait, as long as they are; nil: these are not known.
    fileprivate func time(from begin: UInt64, to end: UInt64) -> Range<UInt64>? {
        let first = bisect(stretches.count) { stretches[$0].end <= begin }, last = bisect(stretches.count) { stretches[$0].end < end }
        guard last < stretches.count, stretches[first].state == .waiting else { return nil }
        return stretches[first].begin..<max(stretches[last].end, stretches[first].begin)
    }
}
