// Finds who wrote what a thread waited to read, or read what it waited to write: another opener of a pipe, the peer of a socket. The
// recorder has looked for their descriptors (KernelRecords.Descriptor); the calls on those show when.
import Presentation
import TraceFormat

/// A call on a descriptor of the peer, or the end of a process that had it open.
private struct PeerAct: Sendable {
    var process: Int
    /// Number of the thread in its trace, and the call; nil: the process ended.
    var call: ThreadCall?
    /// CLOCK_MONOTONIC.
    var at: Int64
    var until: Int64
    /// The object as the waiting thread names it: of a socket the waiter's own.
    var object: String
    /// It closed a descriptor, which lets others go on if nobody has another one on that side.
    var isClosing = false
}

/// A call on a descriptor; not certain: it closes one, and nobody knows which.
private struct PeerCall: Sendable {
    var call: ThreadCall
    var isCertain: Bool
}

/// A descriptor as it was found at a moment.
private struct PeerDescriptor: Sendable {
    var process: Int
    var number: UInt64
    var at: UInt64
}

/// Who waits on one side of something.
private struct PeerKey: Hashable {
    var object: String
    var flow: WaitingFunction.Flow
    /// nil: the object is the same in all.
    var process: Int?
}

extension WaitSearch {
    /// From the descriptors that were found to the calls on them: who let a thread go on; where no call did, who the peers are.
    static func findPeers(_ processes: inout [WaitSearch], _ workers: Int) {
        var waits: [(process: Int, wait: Int, keys: [PeerKey])] = [], descriptors: [PeerKey: [PeerDescriptor]] = [:]
        for (process, search) in processes.enumerated() {
            for (index, wait) in search.waits.enumerated() where wait.waker == nil {
                let keys = search.peerKeys(of: wait, in: process, &descriptors)
                if !keys.isEmpty { waits.append((process, index, keys)) }
            }
        }
        guard !waits.isEmpty else { return }
        let asked = Set(waits.lazy.flatMap { $0.keys })
        for (process, search) in processes.enumerated() {
            for found in search.openPeers {
                let descriptor = PeerDescriptor(
                    process: process, number: WaitingFunction.descriptor(found.number), at: found.at)
                let other = found.object.hasPrefix("socket:[") ? found.peer : found.object
                for flow in [WaitingFunction.Flow.takes, .gives] where flow == .takes ? found.isWritable : found.isReadable {
                    let key = PeerKey(object: other, flow: flow)
                    if asked.contains(key) { descriptors[key, default: []].append(descriptor) }
                }
            }
        }
        let uses = processes.indices.map { process in
            processes[process].calls(on: Set(descriptors.values.joined().lazy.filter { $0.process == process }.map { $0.number }), workers)
        }
        // A process that has a descriptor open until it ends may have many: its end is looked for once.
        let ends = Set(descriptors.values.joined().lazy.map { $0.process }).reduce(into: [Int: Int64]()) { ends, process in
            let search = processes[process]
            ends[process] = search.end?.at ?? search.monotonic(TraceEnd(search.trace).ticks.raw)
        }
        let acts = descriptors.reduce(into: [PeerKey: [PeerAct]]()) { acts, one in
            acts[one.key] = Self.acts(one.value, on: one.key.object, one.key.flow.opposite, processes, uses, ends)
        }
        for (process, wait, keys) in waits {
            let found = keys.flatMap { descriptors[$0] ?? [] }
            if found.isEmpty { continue }
            // In the order of time: those of one are.
            let all = keys.count == 1 ? acts[keys[0]] ?? [] : keys.flatMap { acts[$0] ?? [] }.sorted { $0.at < $1.at }
            Self.note(all, found, of: wait, in: process, &processes)
        }
    }

    /// Returns the objects of a wait that have a peer. An eventfd(2) has none: its writers use the same descriptor, which is
    /// added to `descriptors`.
    private func peerKeys(of wait: Wait, in process: Int, _ descriptors: inout [PeerKey: [PeerDescriptor]]) -> [PeerKey] {
        guard wait.kind == .pipe || wait.kind == .socket || wait.kind == .event else { return [] }
        let members = members(of: wait)
        if !members.isEmpty {
            var keys: [PeerKey] = []
            for member in members {
                if Self.hasPeer(member.object) {
                    if member.isToRead { keys.append(PeerKey(object: member.object, flow: .takes)) }
                    if member.isToWrite { keys.append(PeerKey(object: member.object, flow: .gives)) }
                } else if member.object == Self.eventfd && member.isToRead {
                    keys.append(eventfdKey(WaitingFunction.descriptor(member.number), at: member.at, in: process, &descriptors))
                }
            }
            return keys
        }
        if wait.isOpenOn, wait.object == Self.eventfd, function(wait.call.row)?.flow == .takes {
            return [eventfdKey(wait.call.argument, at: wait.call.enter, in: process, &descriptors)]
        }
        guard let object = wait.object, Self.hasPeer(object),
            let flow = function(wait.call.row)?.flow ?? wait.systemCall.flatMap({ WaitingFunction($0)?.flow })
        else { return [] }
        return [PeerKey(object: object, flow: flow)]
    }
    private static let eventfd = "anon_inode:[eventfd]"
    private func eventfdKey(
        _ argument: UInt64, at moment: UInt64, in process: Int, _ descriptors: inout [PeerKey: [PeerDescriptor]]
    ) -> PeerKey {
        let number = WaitingFunction.descriptor(argument)
        let key = PeerKey(object: "eventfd, descriptor \(number)", flow: .takes, process: process)
        descriptors[key, default: []].append(PeerDescriptor(process: process, number: number, at: moment))
        return key
    }
    private static func hasPeer(_ object: String) -> Bool { ["pipe:[", "socket:[", "/"].contains { object.hasPrefix($0) } }

    /// The descriptors that it was last found waiting for, where it waits for several at once.
    func members(of wait: Wait) -> ArraySlice<KernelRecords.Polled> {
        guard let all = polled[threads[wait.thread].tid] else { return [] }
        let next = bisect(all.count) { all[$0].at <= wait.end }
        guard next > 0, all[next - 1].at >= wait.begin else { return [] }
        let first = all[..<next].lastIndex { $0.at != all[next - 1].at }.map { $0 + 1 } ?? 0
        return all[first..<next]
    }

    // MARK: - Calls

    private struct Calls {
        /// Calls by descriptor, in the order of time.
        var acts: [UInt64: [PeerCall]] = [:]
        var closings: [UInt64: DescriptorUse] = [:]
    }

    /// Returns the calls on these descriptors, and when they may have been closed.
    private func calls(on numbers: Set<UInt64>, _ workers: Int) -> Calls {
        guard !numbers.isEmpty else { return Calls() }
        // A directory has no peer.
        let closers = Closers(table, opened, but: ["closedir"]), hasFlow = functions.map { $0?.flow != nil }
        let isWanted = hasFlow.indices.map { closers.includes($0) || hasFlow[$0] }
        let found = ThreadCalls.all(in: trace.narrowed(to: .whole), table, isWanted, workers: workers) { call in
            closers.includes(Int(call.row)) || call.argument != noArgument && numbers.contains(WaitingFunction.descriptor(call.argument))
        }
        var calls = Calls(), closings: [UInt64: [UInt64]] = [:]
        for one in (found ?? []).sorted(by: { $0.call.enter < $1.call.enter }) {
            let isClosing = closers.includes(Int(one.call.row))
            let number = isClosing ? closers.closed(by: one.call) : WaitingFunction.descriptor(one.call.argument)
            for number in number.map({ [$0] }) ?? Array(numbers) where numbers.contains(number) {
                calls.acts[number, default: []].append(PeerCall(call: one, isCertain: !isClosing || closers.closed(by: one.call) != nil))
                if isClosing { closings[number, default: []].append(one.call.enter) }
            }
        }
        for number in numbers {
            let openings = (knownDescriptors[number] ?? []).filter { $0.isOpening }
            calls.closings[number] = DescriptorUse(closings: closings[number] ?? [], evidence: openings)
        }
        return calls
    }

    /// In the order of time. Who takes what was given, or the other way round, lets others go on; so does who closes, or ends.
    private static func acts(
        _ descriptors: [PeerDescriptor], on object: String, _ flow: WaitingFunction.Flow, _ processes: [WaitSearch], _ uses: [Calls],
        _ ends: [Int: Int64]
    ) -> [PeerAct] {
        var acts: [PeerAct] = [], seen: Set<[UInt64]> = []
        var closed = Int64.min // when the last of the descriptors was, as far as they are known
        for descriptor in descriptors {
            let search = processes[descriptor.process]
            guard let use = uses[descriptor.process].closings[descriptor.number] else { continue }
            let life = use.life(around: descriptor.at)
            // It may have been found several times.
            guard seen.insert([UInt64(descriptor.process), descriptor.number, life.lowerBound]).inserted else { continue }
            for act in uses[descriptor.process].acts[descriptor.number] ?? [] {
                let one = act.call, isLast = one.call.enter == life.upperBound && act.isCertain
                guard
                    life.contains(one.call.enter) && one.call.enter > life.lowerBound && search.function(one.call.row)?.flow == flow
                        || isLast
                else { continue }
                acts.append(
                    PeerAct(
                        process: descriptor.process, call: one, at: search.monotonic(one.call.enter),
                        until: one.isOver ? search.monotonic(one.call.end) : .max, object: object, isClosing: isLast))
            }
            if life.upperBound == .max, let end = search.end {
                acts.append(PeerAct(process: descriptor.process, at: end.at, until: end.at, object: object, isClosing: true))
            }
            let end = life.upperBound == .max ? ends[descriptor.process] : nil
            closed = max(closed, end ?? search.monotonic(life.upperBound))
        }
        // What has no name is not opened once more: as long as somebody has it on that side, the other side waits on.
        if !object.hasPrefix("/") { acts.removeAll { $0.isClosing && $0.at < closed } }
        return acts.sorted { $0.at < $1.at }
    }

    // MARK: - Who

    private static func note(
        _ acts: [PeerAct], _ descriptors: [PeerDescriptor], of index: Int, in process: Int, _ processes: inout [WaitSearch]
    ) {
        let search = processes[process], wait = search.waits[index], own = search.threads[wait.thread].thread
        let begin = search.monotonic(wait.begin), end = search.monotonic(wait.end)
        // The last that had begun: what came before it was there already, or had the thread run in between.
        let last = acts[..<bisect(acts.count) { acts[$0].at <= end }].last { act in
            act.process != process || act.call == nil || act.call?.thread != own
        }
        if let last, last.until >= begin {
            processes[process].waits[index].object = last.object
            processes[process].note(last, isOwn: last.process == process, processes[last.process], of: index)
            return
        }
        var peers: [Wait.Peer] = []
        for descriptor in descriptors where descriptor.process != process && peers.count < 16 {
            let other = processes[descriptor.process], at = other.monotonic(descriptor.at), pid = other.trace.header.pid
            guard at >= begin, at <= end, !peers.contains(where: { $0.pid == pid }) else { continue }
            let name = other.threads.last { $0.tid == pid }?.name ?? other.trace.processName
            peers.append(Wait.Peer(name: name, pid: pid, descriptor: Int32(truncatingIfNeeded: descriptor.number)))
        }
        processes[process].waits[index].peers = peers
    }

    private mutating func note(_ act: PeerAct, isOwn: Bool, _ other: WaitSearch, of index: Int) {
        let wait = waits[index], thread = act.call.flatMap { call in other.threads.firstIndex { $0.thread == call.thread } }
        if isOwn {
            guard let thread, let call = act.call?.call else { return }
            waits[index].waker = Wait.Waker(thread: thread, act: call, at: call.enter, late: late(wait.thread, after: call.enter))
            return
        }
        let named = thread.map { other.threads[$0] } ?? other.threads.last { $0.tid == other.trace.header.pid }
        let pid = other.trace.header.pid
        waits[index].otherProcess = Wait.OtherProcess(
            name: named?.name ?? other.trace.processName, pid: pid, tid: named?.tid ?? pid,
            begun: other.trace.header.first.monotonic_ns, thread: named?.thread,
            function: act.call.flatMap { other.name($0.call.row) }, caller: act.call.flatMap { other.name($0.call.parent) },
            late: Nanoseconds(UInt64(max(monotonic(wait.end) &- act.at, 0))))
    }
}
