// Chooses anew, while the process runs, which functions are recorded (`tracer control PID filter --functions`, `--include`, `--exclude`), of those
// that have a stub. Slots are led past their stubs (GatedSlots.swift), stubs of patched functions past the recorder (GatedFunctions.swift), by one
// store each. The lists lie in a chunk of the file that somebody outside has put there (trace_choice_record).
import CSupport
import CTraceLayout

enum ChosenCalls {
    /// The lists in use.
    nonisolated(unsafe) private static var texts: UnsafeMutableRawPointer?
    private static let bytes = Int(TRACE_CHOICE_BYTES)

    enum Answer { case done, refused, later }

    /// No lock is held, signals are blocked. `.later`: another thread is changing what is known of modules, and may be waiting for the loader, in
    /// which this thread may be.
    static func take(_ header: UnsafeMutablePointer<trace_file_header>) -> Answer {
        if CalledFunctions.areWanted { return .refused }
        var answer = Answer.later
        ModuleLock.ifFree {
            if ModuleLock.isUnloading { return }
            answer = choose(header) ? .done : .refused
        }
        return answer
    }

    private static func choose(_ header: UnsafeMutablePointer<trace_file_header>) -> Bool {
        guard let buffer = Memory.pages(bytes) else { return false }
        var job = FileJob(.read, at: header.pointee.wanted_names, bytes)
        job.bytes = buffer
        job.run()
        guard job.isOpened, let names = lists(in: buffer, job.result) else {
            Memory.release(buffer, bytes)
            return false
        }
        takeBack()
        texts = buffer
        NameFilter.later = names
        var areRead = true
        for n in 0..<ModuleTable.modules.count where !leaveOut(in: n) { areRead = false }
        describe(header)
        return areRead
    }
    /// For who looks from outside.
    static func describe(_ header: UnsafeMutablePointer<trace_file_header>) {
        header.pointee.left_functions = UInt32(truncatingIfNeeded: GatedFunctions.count)
        header.pointee.left_slots = UInt32(truncatingIfNeeded: GatedSlots.count)
    }
    /// The module is bound and patched. False: not all of its functions could be asked for their names.
    static func leaveOut(in index: Int) -> Bool {
        if NameFilter.later.admitsAll || ModuleTable.modules[index].state == .retired { return true }
        GatedSlots.leaveOut(in: index)
        return GatedFunctions.leaveOut(in: index)
    }

    /// All functions are recorded as before. ModuleLock is held.
    static func takeBack() {
        NameFilter.later = LaterNames()
        GatedSlots.takeBack()
        GatedFunctions.takeBack()
        Memory.release(texts, bytes)
        texts = nil
    }

    /// Notes the choice, and makes three texts of what was read of the file, moved so that each ends with a NUL. nil: it is not what was to be there.
    private static func lists(in buffer: UnsafeMutableRawPointer, _ count: Int) -> LaterNames? {
        let headBytes = MemoryLayout<trace_chunk_header>.size, fixedBytes = MemoryLayout<trace_choice_record>.size
        if count < headBytes &+ fixedBytes { return nil }
        let head = buffer.load(as: trace_chunk_header.self)
        let record = buffer.load(fromByteOffset: headBytes, as: trace_choice_record.self)
        let lengths: InlineArray<3, Int> = [Int(record.functions_bytes), Int(record.include_bytes), Int(record.exclude_bytes)]
        guard head.magic == UInt32(TRACE_CHUNK_MAGIC), Int(head.body_offset) == headBytes,
            record.record.type == UInt16(TRACE_RECORD_CHOICE),
            lengths[0] &+ lengths[1] &+ lengths[2] <= count &- headBytes &- fixedBytes
        else { return nil }
        // Before the first call is left out.
        MetadataWriter.append(
            Int(TRACE_RECORD_CHOICE), 1,
            trace_choice_record(
                record: trace_record(), ticks: Clock.ticks(), functions_bytes: record.functions_bytes, include_bytes: record.include_bytes,
                exclude_bytes: record.exclude_bytes, reserved: 0),
            CText((buffer + (headBytes &+ fixedBytes)).assumingMemoryBound(to: UInt8.self)), lengths[0] &+ lengths[1] &+ lengths[2])
        var names = LaterNames(), from = headBytes &+ fixedBytes, to = 0 // what is before has been read: it has space for the NULs
        for n in 0..<3 {
            let text = buffer + to
            for k in 0..<lengths[n] { (text + k).storeBytes(of: buffer.load(fromByteOffset: from &+ k, as: UInt8.self), as: UInt8.self) }
            (text + lengths[n]).storeBytes(of: 0, as: UInt8.self)
            from &+= lengths[n]
            to &+= lengths[n] &+ 1
            let list = lengths[n] == 0 ? nil : CText(text.assumingMemoryBound(to: UInt8.self))
            if n == 0 { names.functions = list } else if n == 1 { names.include = list } else { names.exclude = list }
        }
        return names
    }
}
