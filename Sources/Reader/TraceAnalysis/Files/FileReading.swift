// Goes through the calls of one process in the order of time, follows its descriptors, and gives each call to its file.
import Presentation
import TraceFormat

struct FileReading {
    enum Step {
        /// Number of what a call had made, as the agent saw it.
        case opened(Int)
        /// Number of a call that begins, or has ended.
        case begins(Int)
        case ended(Int)
    }

    private let trace: TraceFile
    private let clock: FileClock
    private let names: FunctionNames
    let opened: OpenedDescriptors
    private let evidence: [UInt64: DescriptorUse]
    private var states: [UInt32: StateClock] = [:]
    private let hasStates: Bool

    init(_ trace: TraceFile, _ clock: FileClock, _ names: FunctionNames) {
        self.trace = trace
        self.clock = clock
        self.names = names
        opened = OpenedDescriptors(trace)
        let records = KernelRecords(trace)
        evidence = DescriptorUse.found(opened, records).mapValues { DescriptorUse(closings: [], evidence: $0) }
        hasStates = trace.noSwitches == nil
        if hasStates {
            for known in ThreadStates.all(trace.ofAllThreads, records) {
                if let thread = known.thread { states[thread] = StateClock(known) }
            }
        }
    }

    /// What a call opened is known to the agent at the moment in which the call ends.
    static func steps(_ calls: [FileCall], _ opened: OpenedDescriptors) -> [Step] {
        var steps: [(at: UInt64, order: Int, step: Step)] = []
        steps.reserveCapacity(calls.count * 2)
        for (n, one) in opened.all.enumerated() { steps.append((one.at, 0, .opened(n))) }
        for (n, call) in calls.enumerated() {
            steps.append((call.begin, 2, .begins(n)))
            if call.end != .max { steps.append((call.end, 1, .ended(n))) }
        }
        return steps.sorted { ($0.at, $0.order) < ($1.at, $1.order) }.map(\.step)
    }

    mutating func take(_ step: Step, _ calls: [FileCall], _ table: inout FileTable, _ report: inout FileReport) {
        switch step {
        case .opened(let n):
            let one = opened.all[n], at = clock.time(one.at)
            let isFile = one.object.hasPrefix("/") && WaitKind(of: one.object, isPipe: one.isPipe).mayBeFile
            guard isFile || !one.object.isEmpty else { return }
            table.set(one.number, isFile ? .file(one.object) : .other, at: at)
            if one.stream != 0 {
                table.set(stream: one.stream, isFile ? .file(one.object) : .other, descriptor: one.number)
            }
        case .begins(let n): begins(calls[n], &table, &report)
        case .ended(let n): ended(calls[n], &table, &report)
        }
    }

    private mutating func begins(_ call: FileCall, _ table: inout FileTable, _ report: inout FileReport) {
        switch call.function {
        case .open, .openStream, .adopt, .duplicate, .control, .enterFolder:
            if call.end == .max { account(call, targets(call, table), &report) }
        case .close:
            account(call, targets(call, table), &report)
            if let number = call.descriptor { table.set(number, nil, at: clock.time(call.begin)) }
        case .closeStream:
            account(call, targets(call, table), &report)
            if let stream = call.stream { table.close(stream: stream, at: clock.time(call.begin)) }
        default: account(call, targets(call, table), &report)
        }
    }

    private mutating func ended(_ call: FileCall, _ table: inout FileTable, _ report: inout FileReport) {
        let at = clock.time(call.end)
        switch call.function {
        case .open:
            guard let result = call.result else { return account(call, targets(call, table), &report) }
            let number = Int32(truncatingIfNeeded: result), made = result >= 0 ? table.descriptors[number] : nil
            if call.function == .open, result >= 0 {
                // The kernel's name of it, where the path could not be read, or was relative to a folder that is not known.
                let target = named(call, table) ?? made
                if let target { table.set(number, target, isClosedOnExec: call.flags.contains("O_CLOEXEC"), at: at) }
                account(call, [target], &report)
            } else {
                account(call, targets(call, table), &report)
            }
        case .openStream:
            guard let result = call.result, result != 0 else { return account(call, targets(call, table), &report) }
            let stream = UInt64(bitPattern: result) & (1 << 56 - 1), made = opened.number(ofStream: stream, at: call.end)
            let target = named(call, table) ?? table.target(ofStream: stream)
            if let target { table.set(stream: UInt64(bitPattern: result), target, descriptor: made) }
            if let made, let target { table.set(made, target, at: at) }
            account(call, [target], &report)
        case .adopt:
            let target = call.descriptor.flatMap { self.target($0, call.begin, table) }
            if let result = call.result, result != 0, let target {
                table.set(stream: UInt64(bitPattern: result), target, descriptor: call.descriptor)
            }
        case .duplicate:
            guard let result = call.result, result >= 0, let number = call.descriptor else { return }
            let target = target(number, call.begin, table)
            if Int32(truncatingIfNeeded: result) != number {
                table.set(Int32(truncatingIfNeeded: result), target, isClosedOnExec: call.flags.contains("O_CLOEXEC"), at: at)
            }
        case .control:
            guard call.flags.hasPrefix("F_DUPFD"), let result = call.result, result >= 0, let number = call.descriptor else { return }
            let target = target(number, call.begin, table)
            table.set(Int32(truncatingIfNeeded: result), target, isClosedOnExec: call.flags == "F_DUPFD_CLOEXEC", at: at)
        case .enterFolder:
            guard call.result == 0 else { return }
            if let path = call.paths.first {
                let whole = table.path(path, in: FileCall.currentFolder)
                table.enter(whole.hasPrefix("/") ? whole : nil, at: at)
            } else if let number = call.descriptor, case .file(let path) = table.descriptors[number] {
                table.enter(path, at: at)
            } else {
                table.enter(nil, at: at)
            }
        default: break
        }
    }

    // MARK: - Files

    /// The file at the path that the call names; nil: it names none that is known.
    private func named(_ call: FileCall, _ table: FileTable) -> FileTable.Target? {
        guard let path = call.paths.first, !path.isEmpty else { return nil }
        return .file(table.path(path, in: call.folders.first ?? FileCall.currentFolder))
    }

    private func target(_ number: Int32, _ moment: UInt64, _ table: FileTable) -> FileTable.Target? {
        if let known = table.descriptors[number] { return known }
        guard number >= 0, !table.seen.contains(number), let found = evidence[WaitingFunction.descriptor(number)]?.target(at: moment) else {
            return nil
        }
        guard let object = found.object, found.kind.mayBeFile, object.hasPrefix("/") else { return .other }
        return .file(object)
    }

    /// What the call uses; nil: it is not known.
    private func targets(_ call: FileCall, _ table: FileTable) -> [FileTable.Target?] {
        switch call.function {
        case .readStream, .writeStream, .closeStream: return [call.stream.flatMap { table.target(ofStream: $0) }]
        case .map where call.descriptor.map({ $0 < 0 }) ?? true || call.flags.contains("MAP_ANONYMOUS"): return []
        case .copy: return [call.descriptor, call.other].map { $0.flatMap { target($0, call.begin, table) } }
        default: break
        }
        if call.paths.isEmpty || call.paths == [""] {
            // An empty path with AT_EMPTY_PATH means the descriptor.
            let number = call.descriptor ?? call.folders.first
            return [number.flatMap { target($0, call.begin, table) }]
        }
        return call.paths.enumerated().map { n, path in
            .file(table.path(path, in: n < call.folders.count ? call.folders[n] : FileCall.currentFolder))
        }
    }

    private mutating func account(_ call: FileCall, _ targets: [FileTable.Target?], _ report: inout FileReport) {
        guard let kind = call.function.kind else { return }
        let end = call.end == .max ? call.begin : call.end
        let length = clock.length(from: call.begin, to: end), begin = clock.time(call.begin), over = clock.time(end)
        let pid = trace.header.pid
        var waiting: UInt64?
        if hasStates, var states = states[call.thread] {
            waiting = states.offCPU(from: call.begin, to: end).waiting
            self.states[call.thread] = states
        }
        for (n, target) in targets.enumerated() {
            guard case .file(let path) = target else {
                if target == nil {
                    report.addUnknown()
                } else {
                    report.addOther(call.stream ?? UInt64(UInt32(bitPattern: call.descriptor ?? -1)), of: pid)
                }
                continue
            }
            let isSource = call.function == .copy && n == 0
            // The time of a copy is that of its source, if this is a file.
            var hasTime = true
            if n > 0, call.function == .copy, case .file? = targets[0] { hasTime = false }
            report.add(path) { use in
                var counts = use[isSource ? .read : kind]
                switch call.function {
                case .close, .closeStream, .adopt: counts.time = Nanoseconds(counts.time.count &+ length.count)
                case .map:
                    use.maps.calls += 1
                    if call.hasFailed { use.maps.failed += 1 } else { use.maps.bytes &+= call.size }
                    counts.time = Nanoseconds(counts.time.count &+ length.count)
                default:
                    counts.calls += 1
                    let isNull = call.function == .openStream && call.result == 0
                    if call.hasFailed || isNull { counts.failed += 1 }
                    if hasTime { counts.time = Nanoseconds(counts.time.count &+ length.count) }
                    if let result = call.result, result > 0 {
                        switch call.function {
                        case .read, .write, .copy: counts.bytes &+= UInt64(result)
                        case .readStream, .writeStream: counts.bytes &+= UInt64(result) &* call.size
                        default: break
                        }
                    }
                }
                use[isSource ? .read : kind] = counts
                if let error = call.error { use.error = error }
                if let waiting {
                    let time = hasTime ? clock.length(from: 0, to: waiting) : Nanoseconds(0)
                    use.waiting = Nanoseconds(use.waiting.count &+ time.count)
                    if waiting > 0, kind == .read || isSource { use.readWaits = true }
                } else {
                    use.isWaitingKnown = false
                }
                use.first = min(use.first, begin)
                use.last = max(use.last, over)
                use.threads.insert(UInt64(pid) << 32 | UInt64(call.thread))
                use.processes.insert(pid)
                if kind == .open, call.function == .open || call.function == .openStream, !call.hasFailed, begin < use.openedAt {
                    use.openedAt = begin
                    let row = Int(call.caller) - 1
                    use.opener = FileUse.Opener(
                        caller: names.rows.indices.contains(row) ? (names.rows[row].name, names.rows[row].module) : nil, pid: pid)
                }
            }
        }
    }
}

extension WaitKind {
    /// Not so of terminals and pipes, which have paths, too.
    fileprivate var mayBeFile: Bool { self == .disk || self == .other }
}
