// A process that runs under the agent, and what may be asked of it from outside: by words in its file's first page (trace_file_header.control).
import CRecorder
import CTraceLayout
import ELF
import Glibc

package struct RecordedProcess {
    package enum Wish: Sendable {
        case start
        case stop
        /// Calls that are shorter, in nanoseconds, are not kept from now on.
        case minimum(UInt64)
        /// Functions that these lists admit, of those that it can record; an empty list admits all.
        case names(functions: [String], include: [String], exclude: [String])
    }

    package let pid: pid_t
    package let header: TraceHeader

    /// Throws a `Refusal` where the trace that the process is writing cannot be written to.
    package init(pid: pid_t, trace path: String) throws(Refusal) {
        guard let header = TraceHeader(path: path) else {
            throw .cannotRun("the trace of process \(pid), \(path), cannot be written to: is it another user's, or in a container?")
        }
        self.init(pid: pid, header)
    }
    init(pid: pid_t, _ header: TraceHeader) {
        self.pid = pid
        self.header = header
    }

    /// The other processes that its run has had. Some may have ended.
    package var others: [pid_t] {
        let session = header.current.session,
            directory = String(header.path.prefix(upTo: header.path.lastIndex(of: "/") ?? header.path.startIndex))
        guard session != 0, let names = RunDirectory.names(in: directory) else { return [] }
        let found = names.compactMap { name -> pid_t? in
            guard let other = TraceHeader(path: directory + "/" + name)?.current, other.session == session else { return nil }
            return ProcessNumbers.number(of: other.pid, in: other.pid_namespace)
        }
        return Set(found).subtracting([pid]).sorted()
    }

    /// What the process is called.
    package var name: String { SnapshotName.program(of: header.path, pid: header.current.pid) }
    package func nanoseconds(_ ticks: UInt64) -> UInt64 { Scale(header.current).nanoseconds(ticks) }

    /// Copies what its trace has now, of the last so many nanoseconds (nil: all of it). Returns the path of the copy.
    /// - Parameter path: nil: by program and time, in the directory
    package func snapshot(last: UInt64?, to path: String?, in directory: String = ".") throws(Refusal) -> String {
        let state = header.current, scale = Scale(state), now = clockTime()
        let since = last.map {
            now > state.first.monotonic_ns &+ $0 ? state.first.ticks &+ scale.ticks(now - state.first.monotonic_ns - $0) : 0
        }
        var info = stat()
        if let path, lstat(path, &info) == 0 { throw .usage("\(path) exists: give another name with -o") }
        let name = path ?? SnapshotName.free(in: directory, program: self.name, SnapshotName.time(clockTime(CLOCK_REALTIME)), "asked")
        do {
            _ = try Snapshot.take(of: header.file, since: since ?? 0, to: name)
        } catch {
            throw .cannotRun("\(name): \(error.text)")
        }
        return name.hasPrefix("./") ? String(name.dropFirst(2)) : name
    }

    /// Appends to a copy of its trace when its threads ran and waited, which its recorder knows, of the last so many nanoseconds (nil: all).
    /// False: the recorder has it and did not give it, or it could not be written. Where nobody records that it is true.
    package func addStates(to path: String, last: UInt64?) -> Bool {
        let state = header.current, now = clockTime()
        var info = stat()
        guard state.session != 0, fstat(header.file, &info) == 0 else { return true }
        let connection = recorder_connect(state.session, info.st_uid)
        guard connection >= 0 else { return true }
        defer { close(connection) }
        let since = last.map { now > $0 ? now - $0 : 0 } ?? 0
        let question = ExcerptQuestion(namespace: state.pid_namespace, pid: state.pid, moment: state.first.monotonic_ns, since: since)
        guard let chunks = question.ask(connection) else { return false }
        return chunks.isEmpty || TraceHeader(path: path)?.append(chunks) ?? false
    }

    /// Says what is wanted. It is done when `hasDone` says so: at the next call that the agent sees.
    package func ask(_ wish: Wish) throws(Refusal) -> UInt32 {
        let state = header.current
        guard state.state == UInt32(TRACE_RECORDING) else { throw .cannotRun("process \(pid) is not recorded any more: \(header.path)") }
        var wanted: UInt32 = 0
        switch wish {
        case .start: wanted = UInt32(TRACE_WANTED_ON)
        case .stop: wanted = UInt32(TRACE_WANTED_OFF)
        case .minimum(let nanoseconds):
            guard state.flags & UInt32(TRACE_FLAG_FILTERED) != 0 else {
                throw .cannotRun("process \(pid) was started without --min-ms: only a process that has it can be given another time")
            }
            wanted = UInt32(TRACE_WANTED_MINIMUM)
            header.write(nanoseconds, to: \.wanted_minimum)
        case .names(let functions, let include, let exclude):
            guard state.mode != UInt32(TRACE_MODE_COUNTS) else {
                throw .cannotRun("process \(pid) only says which functions were called (--mode counts): all of them")
            }
            let record = Self.choice([functions, include, exclude])
            guard record.count + MemoryLayout<trace_chunk_header>.size <= Int(TRACE_CHOICE_BYTES) else {
                throw .usage("the globs have \(record.count) bytes: give fewer")
            }
            guard let offset = header.place(record, opened: state.last, isGone: false) else {
                throw .cannotRun("\(header.path) cannot be written to: is it another user's, or is the disk full?")
            }
            wanted = UInt32(TRACE_WANTED_NAMES)
            header.write(offset, to: \.wanted_names)
        }
        header.write(wanted, to: \.wanted)
        let number = state.control &+ 1
        header.write(number, to: \.control)
        return number
    }
    package func hasDone(_ number: UInt32) -> Bool { header.current.controlled == number }
    /// It has looked at it, and could not do it.
    package func hasRefused(_ number: UInt32) -> Bool { header.current.refused == number }

    private static func choice(_ lists: [[String]]) -> [UInt8] {
        let texts = lists.map { Array($0.joined(separator: ":").utf8) }, size = MemoryLayout<trace_choice_record>.size
        let byteCount = UInt64(size + texts.reduce(0) { $0 + $1.count }).roundedUp(to: 8)
        var record = trace_choice_record()
        record.record.type = UInt16(TRACE_RECORD_CHOICE)
        record.record.byte_count = UInt32(byteCount)
        record.functions_bytes = UInt32(texts[0].count)
        record.include_bytes = UInt32(texts[1].count)
        record.exclude_bytes = UInt32(texts[2].count)
        let bytes = withUnsafeBytes(of: record) { Array($0) } + texts.joined()
        return bytes + [UInt8](repeating: 0, count: Int(byteCount) - bytes.count)
    }
}
