// Finds who wrote what a thread waited to read, or read what it waited to write: another opener of a pipe, the peer of a socket. The
// recorder has looked for their descriptors (KernelRecords.Descriptor); the calls on those tell when.
import Presentation
import Symbols
import TraceFormat

/// A call on a descriptor of the other end, or the end of a process that had it open.
private struct EndAct: Sendable {
    var process: Int
    /// Number of the thread in its trace, and the call; nil: the process ended.
    var call: ThreadCall?
    /// CLOCK_MONOTONIC.
    var at: Int64
    var until: Int64
    /// The object as the waiting thread names it: of a socket the waiter's own.
    var object: String
}

/// A descriptor as it was found at a moment.
private struct EndPlace: Sendable {
    var process: Int
    var number: UInt64
    var at: UInt64
}

/// Who waits on one side of something.
private struct EndKey: Hashable {
    var object: String
    var flow: WaitingFunction.Flow
    /// nil: the object is the same in all.
    var process: Int?
}

extension WaitSearch {
    /// From the descriptors that were found to the calls on them: who let a thread go on; where no call did, who has the other end.
    static func findOtherEnds(_ processes: inout [WaitSearch], _ workers: Int) {
        var waits: [(process: Int, wait: Int, keys: [EndKey])] = [], places: [EndKey: [EndPlace]] = [:]
        for (process, search) in processes.enumerated() {
            for (index, wait) in search.waits.enumerated() where wait.waker == nil {
                let keys = search.ends(of: wait, in: process, &places)
                if !keys.isEmpty { waits.append((process, index, keys)) }
            }
        }
        guard !waits.isEmpty else { return }
        let asked = Set(waits.lazy.flatMap { $0.keys })
        for (process, search) in processes.enumerated() {
            for end in search.openEnds {
                let place = EndPlace(
                    process: process, number: WaitingFunction.descriptor(end.number), at: end.at)
                let other = end.object.hasPrefix("socket:[") ? end.peer : end.object
                for flow in [WaitingFunction.Flow.takes, .gives] where flow == .takes ? end.isWritable : end.isReadable {
                    let key = EndKey(object: other, flow: flow)
                    if asked.contains(key) { places[key, default: []].append(place) }
                }
            }
        }
        let uses = processes.indices.map { process in
            processes[process].calls(on: Set(places.values.joined().lazy.filter { $0.process == process }.map { $0.number }), workers)
        }
        let acts = places.reduce(into: [EndKey: [EndAct]]()) { acts, one in
            acts[one.key] = Self.acts(one.value, on: one.key.object, one.key.flow.opposite, processes, uses)
        }
        for (process, wait, keys) in waits {
            let found = keys.flatMap { places[$0] ?? [] }
            if found.isEmpty { continue }
            // In the order of time: those of one are.
            let all = keys.count == 1 ? acts[keys[0]] ?? [] : keys.flatMap { acts[$0] ?? [] }.sorted { $0.at < $1.at }
            Self.note(all, found, of: wait, in: process, &processes)
        }
    }

    /// Returns the objects of a wait that have another end. An eventfd(2) has none: its writers use the same descriptor, which is
    /// added to `places`.
    private func ends(of wait: Wait, in process: Int, _ places: inout [EndKey: [EndPlace]]) -> [EndKey] {
        guard wait.kind == .pipe else { return [] }
        let members = members(of: wait)
        if !members.isEmpty {
            var keys: [EndKey] = []
            for member in members {
                if Self.hasOtherEnd(member.object) {
                    if member.isToRead { keys.append(EndKey(object: member.object, flow: .takes)) }
                    if member.isToWrite { keys.append(EndKey(object: member.object, flow: .gives)) }
                } else if member.object == "anon_inode:[eventfd]" && member.isToRead {
                    let key = EndKey(object: "eventfd, descriptor \(member.number)", flow: .takes, process: process)
                    let number = WaitingFunction.descriptor(member.number)
                    places[key, default: []].append(EndPlace(process: process, number: number, at: member.at))
                    keys.append(key)
                }
            }
            return keys
        }
        guard let object = wait.object, Self.hasOtherEnd(object),
            let flow = function(wait.call.row)?.flow ?? wait.systemCall.flatMap({ WaitingFunction($0)?.flow })
        else { return [] }
        return [EndKey(object: object, flow: flow)]
    }
    private static func hasOtherEnd(_ object: String) -> Bool { ["pipe:[", "socket:[", "/"].contains { object.hasPrefix($0) } }

    /// The descriptors that it was last found waiting for, where it waits for several at once.
    private func members(of wait: Wait) -> ArraySlice<KernelRecords.Polled> {
        guard let all = polled[threads[wait.thread].tid] else { return [] }
        let next = bisect(all.count) { all[$0].at <= wait.end }
        guard next > 0, all[next - 1].at >= wait.begin else { return [] }
        let first = all[..<next].lastIndex { $0.at != all[next - 1].at }.map { $0 + 1 } ?? 0
        return all[first..<next]
    }

    // MARK: - Calls

    private struct Calls {
        /// Calls by descriptor, in the order of time.
        var acts: [UInt64: [ThreadCall]] = [:]
        var closings: [UInt64: DescriptorUse] = [:]
    }

    /// Returns the calls on these descriptors, and when they may have been closed.
    private func calls(on numbers: Set<UInt64>, _ workers: Int) -> Calls {
        guard !numbers.isEmpty else { return Calls() }
        // A directory is no end of anything.
        let isCloser = isCloser(but: ["closedir"]), isEnd = functions.map { $0?.flow != nil }
        let isWanted = zip(isCloser, isEnd).map { $0 || $1 }
        let found = ThreadCalls.all(in: trace.narrowed(to: .whole), table, isWanted, workers: workers) { call in
            call.argument == noArgument ? isCloser[Int(call.row)] : numbers.contains(WaitingFunction.descriptor(call.argument))
        }
        var calls = Calls(), closings: [UInt64: [UInt64]] = [:]
        for one in (found ?? []).sorted(by: { $0.call.enter < $1.call.enter }) {
            let argument = one.call.argument
            for number in argument == noArgument ? Array(numbers) : [WaitingFunction.descriptor(argument)] {
                calls.acts[number, default: []].append(one)
                if isCloser[Int(one.call.row)] { closings[number, default: []].append(one.call.enter) }
            }
        }
        for number in numbers { calls.closings[number] = DescriptorUse(closings: closings[number] ?? [], evidence: []) }
        return calls
    }

    /// In the order of time. Who takes what was given, or the other way round, lets others go on; so does who closes, or ends.
    private static func acts(
        _ places: [EndPlace], on object: String, _ flow: WaitingFunction.Flow, _ processes: [WaitSearch], _ uses: [Calls]
    ) -> [EndAct] {
        var acts: [EndAct] = [], seen: Set<[UInt64]> = []
        for place in places {
            let search = processes[place.process]
            guard let use = uses[place.process].closings[place.number] else { continue }
            let life = use.life(around: place.at)
            // It may have been found several times.
            guard seen.insert([UInt64(place.process), place.number, life.lowerBound]).inserted else { continue }
            for one in uses[place.process].acts[place.number] ?? [] {
                // A call that may close any descriptor need not have closed this one.
                let isLast = one.call.enter == life.upperBound && one.call.argument != noArgument
                guard
                    life.contains(one.call.enter) && one.call.enter > life.lowerBound && search.function(one.call.row)?.flow == flow
                        || isLast
                else { continue }
                acts.append(
                    EndAct(
                        process: place.process, call: one, at: search.monotonic(ofCall: one.call.enter),
                        until: one.isOver ? search.monotonic(ofCall: one.call.end) : .max, object: object))
            }
            if life.upperBound == .max, let end = search.end {
                acts.append(EndAct(process: place.process, at: end.at, until: end.at, object: object))
            }
        }
        return acts.sorted { $0.at < $1.at }
    }

    // MARK: - Who

    private static func note(_ acts: [EndAct], _ places: [EndPlace], of index: Int, in process: Int, _ processes: inout [WaitSearch]) {
        let search = processes[process], wait = search.waits[index], own = search.threads[wait.thread].thread
        let begin = search.monotonic(wait.begin), end = search.monotonic(wait.end)
        // The last that had begun: what came before it was there already, or had the thread run in between.
        let last = acts[..<bisect(acts.count) { acts[$0].at <= end }].last { act in
            act.process != process || act.call == nil || act.call?.thread != own
        }
        if let last, last.until >= begin {
            processes[process].note(object: last.object, of: index)
            processes[process].note(last, isOwn: last.process == process, processes[last.process], of: index)
            return
        }
        var ends: [Wait.OtherEnd] = []
        for place in places where place.process != process && ends.count < 16 {
            let other = processes[place.process], at = other.monotonic(place.at), pid = other.trace.header.pid
            guard at >= begin, at <= end, !ends.contains(where: { $0.pid == pid }) else { continue }
            let name = other.threads.last { $0.tid == pid }?.name ?? other.trace.programName
            ends.append(Wait.OtherEnd(name: name, pid: pid, descriptor: Int32(truncatingIfNeeded: place.number)))
        }
        processes[process].note(ends, of: index)
    }

    private mutating func note(_ act: EndAct, isOwn: Bool, _ other: WaitSearch, of index: Int) {
        let wait = waits[index], thread = act.call.flatMap { call in other.threads.firstIndex { $0.thread == call.thread } }
        if isOwn {
            guard let thread, let call = act.call?.call else { return }
            note(Wait.Waker(thread: thread, act: call, at: call.enter, late: late(wait.thread, after: call.enter)), of: index)
            return
        }
        let named = thread.map { other.threads[$0] } ?? other.threads.last { $0.tid == other.trace.header.pid }
        let pid = other.trace.header.pid
        note(
            Wait.OtherProcess(
                name: named?.name ?? other.trace.programName, pid: pid, tid: named?.tid ?? pid,
                begun: other.trace.header.first.monotonic_ns, thread: named?.thread,
                function: act.call.flatMap { other.name($0.call.row) }, caller: act.call.flatMap { other.name($0.call.parent) },
                late: Nanoseconds(UInt64(max(monotonic(wait.end) &- act.at, 0)))), of: index)
    }
}
