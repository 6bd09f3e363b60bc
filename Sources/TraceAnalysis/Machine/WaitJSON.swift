// `tracer waits --json`.
import Presentation
import TraceFormat

extension WaitReport {
    /// - Parameter limit: of waits; 0 all
    package func json(limit: Int) -> JSON {
        .object([
            ("schema", .unsigned(1)), ("window", window?.json ?? .null), ("missing", Self.text(missing.first)),
            ("notes", .array(WaitSearch.notes(processes).map { .string($0) })),
            (
                "totals",
                .object(
                    totals.map {
                        ($0.kind.rawValue, .object([("waits", .unsigned(UInt64($0.count))), ("duration_ns", .time($0.duration))]))
                    })
            ),
            ("waits", .array((limit == 0 ? order[...] : order.prefix(limit)).map { json($0.process, $0.wait) })),
            ("locks", .array(locks.map { json($0) })),
            ("major_faults", .array(pages.enumerated().flatMap { process, pages in pages.map { json($0, process) } })),
            ("minor_faults", isTold(.minorFaults) ? .array(minorFaults.map { json($0) }) : .null),
        ])
    }

    private func json(_ process: Int, _ index: Int) -> JSON {
        let search = processes[process], wait = search.waits[index], chain = WaitChain(of: index, in: search)
        let isMeasured = search.noSwitches == nil
        return .object(
            about(search.threads[wait.thread], search) + [
                ("start_ns", .signed(time(wait.begin, process))), ("end_ns", .signed(time(wait.end, process))),
                ("duration_ns", .time(length(wait.duration, process))), ("is_call_length", .bool(!isMeasured)),
                ("stretches", .unsigned(UInt64(wait.count))), ("is_of_agent", .bool(search.isOfAgent(wait))),
                ("function", Self.text(search.name(wait.call.row))), ("caller", Self.text(place(of: wait.call, process))),
                ("kind", .string(wait.kind.rawValue)), ("object", Self.text(wait.object)), ("system_call", Self.text(wait.systemCall)),
                ("holder", wait.holder.map { json($0, process, chain) } ?? .null), ("handovers", .unsigned(UInt64(wait.handovers))),
                ("chain", .array(chain.links.map { json($0, process) })), ("is_circular", .bool(chain.isCircular)),
                ("waker", wait.waker.map { json($0, process) } ?? wait.outsider.map { json($0, until: time(wait.end, process)) } ?? .null),
                ("late_ns", .time(wait.waker?.late.map { length($0, process) } ?? wait.outsider?.late)),
                (
                    "other_ends",
                    .array(
                        wait.otherEnds.map {
                            .object([
                                ("thread", .string($0.name)), ("pid", .unsigned(UInt64($0.pid))),
                                ("descriptor", .signed(Int64($0.descriptor))),
                            ])
                        })
                ),
            ])
    }

    private func about(_ thread: ThreadStates, _ search: WaitSearch) -> [(String, JSON)] {
        [
            ("thread", .string(thread.name)), ("tid", .unsigned(UInt64(thread.tid))), ("pid", .unsigned(UInt64(search.trace.header.pid))),
        ]
    }

    private func json(_ holder: Wait.Holder, _ process: Int, _ chain: WaitChain) -> JSON {
        let search = processes[process], thread = search.threads[holder.thread]
        return .object([
            ("thread", .string(thread.name)), ("tid", .unsigned(UInt64(thread.tid))), ("function", Self.text(place(of: holder, process))),
            ("since_ns", .signed(time(holder.since, process))),
            ("preempted_ns", search.noSwitches == nil ? .time(length(chain.preempted, process)) : .null),
            (
                "inversion",
                chain.inversion.map {
                    .object([("holder", .string($0.holder.text)), ("waiter", .string($0.waiter.text))])
                } ?? .null
            ),
        ])
    }

    private func json(_ waker: Wait.Waker, _ process: Int) -> JSON {
        let search = processes[process], thread = search.threads[waker.thread]
        return .object([
            ("thread", .string(thread.name)), ("tid", .unsigned(UInt64(thread.tid))), ("function", Self.text(search.name(waker.act.row))),
            ("caller", Self.text(waker.act.isKnown ? place(of: waker.act, process) : nil)), ("at_ns", .signed(time(waker.at, process))),
        ])
    }

    private func json(_ other: Wait.Outsider, until end: Int64) -> JSON {
        .object([
            ("thread", .string(other.name)), ("tid", .unsigned(UInt64(other.tid))), ("function", Self.text(other.function)),
            ("caller", Self.text(other.caller)), ("at_ns", .signed(end &- Int64(truncatingIfNeeded: other.late.count))),
        ])
    }

    private func json(_ link: WaitChain.Link, _ process: Int) -> JSON {
        let search = processes[process], wait = search.waits[link.wait], thread = search.threads[wait.thread]
        return .object([
            ("thread", .string(thread.name)), ("tid", .unsigned(UInt64(thread.tid))), ("function", Self.text(search.name(wait.call.row))),
            ("kind", .string(wait.kind.rawValue)), ("object", Self.text(wait.object)),
            ("duration_ns", .time(length(link.duration, process))),
        ])
    }

    private func json(_ lock: LockTotals) -> JSON {
        func places(_ places: [LockTotals.Place]) -> JSON {
            .array(
                places.map {
                    .object([
                        ("function", Self.text($0.name)), ("waits", .unsigned(UInt64($0.waits))),
                        ("duration_ns", .time(length($0.duration, lock.process))),
                    ])
                })
        }
        let queue = lock.longestQueue
        return .object([
            ("object", .string(lock.object)), ("pid", .unsigned(UInt64(processes[lock.process].trace.header.pid))),
            ("waits", .unsigned(UInt64(lock.waits))), ("duration_ns", .time(length(lock.duration, lock.process))),
            ("longest_ns", .time(length(lock.longest, lock.process))), ("threads", .unsigned(UInt64(lock.threads))),
            ("most_at_once", .unsigned(UInt64(lock.mostAtOnce))),
            (
                "convoy",
                queue.isConvoy
                    ? .object([
                        ("waits", .unsigned(UInt64(queue.waits))), ("threads", .unsigned(UInt64(queue.threads))),
                        ("duration_ns", .time(length(queue.duration, lock.process))),
                    ]) : .null
            ),
            ("waited_in", places(lock.waitedIn)), ("held_in", places(lock.heldIn)),
        ])
    }

    private func json(_ page: PageWait, _ process: Int) -> JSON {
        let search = processes[process]
        return .object(
            about(search.threads[page.thread], search) + [
                ("at_ns", .signed(time(page.at, process))), ("duration_ns", .time(page.duration.map { length($0, process) })),
                ("file", page.path.isEmpty ? .null : .string(page.path)), ("offset", .unsigned(page.offset)),
                ("symbol", Self.text(page.place)), ("stage", Self.text(page.stage)),
            ])
    }

    private func isTold(_ parts: KernelGrant.Parts) -> Bool {
        processes.contains { $0.trace.metadata.kernel?.granted.contains(parts) == true }
    }

    private func json(_ totals: PageTotals) -> JSON {
        .object([
            ("pid", .unsigned(UInt64(processes[totals.process].trace.header.pid))), ("stage", Self.text(totals.stage)),
            ("file", totals.path.isEmpty ? .null : .string(totals.path)), ("faults", .unsigned(UInt64(totals.count))),
        ])
    }

    private static func text(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }
}
