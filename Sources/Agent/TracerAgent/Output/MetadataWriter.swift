// The records that make the file self-contained: texts, modules, functions, threads. They stay mapped: a forked
// child copies them into its own file. Appended under one lock; a record's type is stored last, so that a file that
// ends in the middle of one reads as if it were not there.
import CSupport
import CTraceLayout

enum MetadataWriter {
    struct Piece {
        var address: UnsafeMutableRawPointer
        var used: Int
        var byteCount: Int
        var isInFile = true
    }
    nonisolated(unsafe) private static var pieces = Table<Piece>()
    /// While their records are copied: the pieces of the file before.
    nonisolated(unsafe) private static var former = Table<Piece>()
    nonisolated(unsafe) private static var lock = Lock()
    /// In ring mode the youngest of what passes by: loads, the initializers they run. Two pieces in turn; the older one
    /// is emptied when the younger one is full.
    nonisolated(unsafe) private static var passing = Table<Piece>()
    nonisolated(unsafe) private static var turn = 0
    private static var passingPiece: Int { Ring.chunkBytes }
    private static let headerBytes = MemoryLayout<trace_chunk_header>.size
    static let firstPiece = 32768
    private static let largestPiece = 1 << 20
    nonisolated(unsafe) private static var nextPiece = firstPiece
    /// Pieces are memory of this process alone for now.
    nonisolated(unsafe) private static var isCollecting = false

    /// `fixed` is the record's own structure without its text (none: zeros); its `record` part is filled in here. Where it stands, or nil.
    /// `isPassing`: a program may do it for ever, and ring mode need not keep it; nor does a forked child.
    @discardableResult
    static func append<Record: BitwiseCopyable>(
        _ type: Int, _ key: UInt16, _ fixed: Record,
        _ text: CText? = nil,
        _ textCount: Int = 0, isPassing: Bool = false
    ) -> UnsafeMutableRawPointer? {
        let fixedCount = MemoryLayout<Record>.size
        let count = (fixedCount &+ textCount &+ 7) & ~7
        lock.lock()
        defer { lock.unlock() }
        guard let address = isPassing && Limits.isRing ? reservePassing(count) : reserve(count) else { return nil }
        address.storeBytes(of: fixed, as: Record.self)
        if let text { (address + fixedCount).copyMemory(from: text, byteCount: textCount) }
        let record = address.assumingMemoryBound(to: trace_record.self)
        record.pointee.type = 0
        record.pointee.key = key
        record.pointee.byte_count = UInt32(count)
        tracer_store_release_16(&record.pointee.type, UInt16(type))
        return address
    }

    /// Space in the last piece, or in a new one. Lock held.
    @inline(never) private static func reserve(_ count: Int) -> UnsafeMutableRawPointer? {
        if pieces.count > 0 {
            let last = pieces.pointer(pieces.count &- 1)
            if last.pointee.used &+ count <= last.pointee.byteCount {
                if last.pointee.used &+ count > collectable && !last.pointee.isInFile { collectMore(last) }
                defer { last.pointee.used &+= count }
                return last.pointee.address + last.pointee.used
            }
        }
        var bytes = isCollecting ? largestPiece : nextPiece
        while bytes < count &+ headerBytes { bytes = bytes &* 2 }
        guard let address = isCollecting ? Memory.pages(bytes) : TraceSpace.map(bytes)?.address else { return nil }
        if !isCollecting { nextPiece = min(nextPiece &* 2, largestPiece) }
        open(address, bytes)
        collectable = 0
        if !pieces.append(Piece(address: address, used: headerBytes &+ count, byteCount: bytes, isInFile: !isCollecting)) { return nil }
        return address + headerBytes
    }

    /// Up to here the pages of such a piece are there: each by itself is a page fault.
    nonisolated(unsafe) private static var collectable = 0
    private static func collectMore(_ piece: UnsafeMutablePointer<Piece>) {
        let next = min(max(collectable, Memory.wholePages(piece.pointee.used)) &+ 65536, piece.pointee.byteCount)
        if collectable > 0 { Memory.populate(piece.pointee.address + collectable, next &- collectable) }
        collectable = next
    }

    /// Collects records in memory until `keepCollected`, which writes a megabyte at a time and leaves them at their addresses: to
    /// allocate and map a new page of a file takes 8 us (ext4), to write 64 of them 80. For the start, when nobody else is there, and
    /// no event speaks of it yet.
    static func collect() { isCollecting = TraceSpace.canMapOver }
    static func keepCollected() {
        isCollecting = false
        for n in 0..<pieces.count {
            let piece = pieces.pointer(n), bytes = Memory.wholePages(piece.pointee.used)
            if piece.pointee.isInFile { continue }
            Memory.release(piece.pointee.address + bytes, piece.pointee.byteCount &- bytes)
            piece.pointee.byteCount = bytes
            piece.pointee.isInFile = true
            piece.pointee.address.assumingMemoryBound(to: trace_chunk_header.self).pointee.byte_count = UInt32(bytes)
            if !TraceSpace.mapOver(piece.pointee.address, bytes) { piece.pointee.used = bytes } // nothing more is to go there
        }
    }

    /// Lock held.
    private static func reservePassing(_ count: Int) -> UnsafeMutableRawPointer? {
        if count > passingPiece &- headerBytes { return nil } // no record is so long
        if passing.count > 0 && passing[turn].used &+ count > passing[turn].byteCount { turn ^= 1 }
        if turn >= passing.count {
            guard let (address, _) = TraceSpace.map(passingPiece) else { return nil }
            open(address, passingPiece)
            if !passing.append(Piece(address: address, used: headerBytes, byteCount: passingPiece)) { return nil }
        }
        let piece = passing.pointer(turn)
        if piece.pointee.used &+ count > piece.pointee.byteCount {
            TraceSpace.clearChunk(piece.pointee.address, passingPiece)
            open(piece.pointee.address, passingPiece)
            piece.pointee.used = headerBytes
        }
        defer { piece.pointee.used &+= count }
        return piece.pointee.address + piece.pointee.used
    }

    private static func open(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int) {
        let header = chunk.assumingMemoryBound(to: trace_chunk_header.self)
        header.pointee.kind = UInt16(TRACE_CHUNK_METADATA)
        header.pointee.byte_count = UInt32(byteCount)
        header.pointee.body_offset = UInt32(headerBytes)
        header.pointee.opened = Clock.sample()
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
    }

    static func text(_ key: UInt16, _ text: CText, _ count: Int) {
        append(
            Int(TRACE_RECORD_TEXT), key, trace_text_record(record: trace_record(), text_bytes: UInt32(count), reserved: 0),
            text, count)
    }
    static func function(_ id: UInt32, module: UInt32, address: UInt64, flags: UInt32, name: Name) {
        append(
            Int(TRACE_RECORD_FUNCTION), 0,
            trace_function_record(
                record: trace_record(), function: id, module: module, address: address,
                flags: flags, name_bytes: UInt32(name.byteCount)),
            name.text, name.byteCount)
    }
    /// Appends a record for `count` functions. Returns where their offsets go, which are all 0.
    static func functions(_ first: UInt32, module: UInt32, count: UInt32) -> UnsafeMutablePointer<UInt32>? {
        let fixed = trace_functions_record(record: trace_record(), first: first, module: module, count: count, reserved: 0)
        let record = append(Int(TRACE_RECORD_FUNCTIONS), 0, fixed, nil, Int(count) &* 4)
        return record.map { ($0 + MemoryLayout<trace_functions_record>.size).assumingMemoryBound(to: UInt32.self) }
    }
    /// The prototype of a function whose arguments are recorded by this program.
    static func prototype(_ program: UInt32, _ text: CText, _ count: Int) {
        append(
            Int(TRACE_RECORD_PROTOTYPE), 0,
            trace_prototype_record(record: trace_record(), program: program, text_bytes: UInt32(truncatingIfNeeded: count)), text, count)
    }
    /// Records how many of the functions of a module that the user wants record their calls themselves; `running`: as in the record.
    static func patched(module: UInt32, functions: UInt32, patched: UInt32, running: UInt32 = 0) {
        append(
            Int(TRACE_RECORD_PATCHED), 0,
            trace_patched_record(record: trace_record(), module: module, functions: functions, patched: patched, running: running))
    }
    /// From `ticks` on the calls of the function are not recorded, but counted by this counter; 0: nor that.
    static func suppressed(_ id: UInt32, counter: UInt32, ticks: UInt64) {
        append(
            Int(TRACE_RECORD_SUPPRESSED), 0, trace_suppressed_record(record: trace_record(), function: id, counter: counter, ticks: ticks))
    }
    /// One a module, in `stored`. No ticks: it is loaded again.
    static func moduleEnd(_ index: UInt32, ticks: UInt64, _ stored: inout UnsafeMutablePointer<trace_module_end_record>?) {
        if let record = stored {
            tracer_store_release_64(&record.pointee.ticks, ticks)
            return
        }
        stored = append(
            Int(TRACE_RECORD_MODULE_END), 0,
            trace_module_end_record(record: trace_record(), module: index, reserved: 0, ticks: ticks))?
            .assumingMemoryBound(to: trace_module_end_record.self)
    }

    /// Returns true if records are there.
    static func has(_ address: UInt64) -> Bool {
        for n in 0..<pieces.count where UInt64(UInt(bitPattern: pieces[n].address)) == address { return true }
        return false
    }

    /// The agent is detached: the records stay, for the file of the next time, and nothing of this file stays mapped.
    static func leave() {
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<pieces.count {
            let piece = pieces.pointer(n)
            tracer_mapping_remove(piece.pointee.address)
            if Memory.makePrivate(piece.pointee.address, piece.pointee.byteCount) { continue }
            Memory.replace(piece.pointee.address, piece.pointee.byteCount) // they are lost
            piece.pointee.used = headerBytes
        }
        for n in 0..<passing.count { // a thread may be writing to a record that it has just appended
            tracer_mapping_remove(passing[n].address)
            Memory.replace(passing[n].address, passing[n].byteCount)
        }
    }

    /// In a forked child that is not recorded: its parent's file is not to be written to, and it has none.
    static func leaveParents() {
        lock = Lock() // another thread of the parent may have held it
        pieces.removeAll()
        passing.removeAll()
    }

    /// In a forked child, whose file has just been created: the parent's records, all but those of its threads,
    /// its messages and how it started. The parent's chunks are still mapped here, and are let go of afterwards.
    static func copyFromParent() {
        lock = Lock() // another thread of the parent may have held it
        ThreadRecords.becomeChild()
        copyRecords(withTexts: true)
    }
    /// The same where the agent is attached again: records that `leave` has kept. Functions are chosen anew.
    static func copyKept() { copyRecords(withTexts: false) }
    private static func copyRecords(withTexts: Bool) {
        lock.lock()
        defer { lock.unlock() }
        swap(&pieces, &former)
        pieces.removeAll() // in a forked child: a thread of the parent may have been here
        nextPiece = firstPiece
        for n in 0..<passing.count { TraceSpace.unmap(passing[n].address, passing[n].byteCount) }
        passing.removeAll()
        turn = 0
        collect()
        for n in 0..<former.count {
            copy(former[n], withTexts)
            TraceSpace.unmap(former[n].address, former[n].byteCount)
        }
        keepCollected()
    }
    private static func copy(_ piece: Piece, _ withTexts: Bool) {
        var offset = headerBytes
        // Up to what was there at the fork: the parent has gone on since, in the same pages.
        while offset &+ MemoryLayout<trace_record>.size <= piece.used {
            let record = (piece.address + offset).assumingMemoryBound(to: trace_record.self)
            let count = Int(record.pointee.byte_count)
            if record.pointee.type == 0 || count < 8 || count > piece.used &- offset { break }
            let type = Int(record.pointee.type)
            let isOfSettings = type == Int(TRACE_RECORD_TEXT) || type == Int(TRACE_RECORD_PATCHED) || type == Int(TRACE_RECORD_CHOICE)
            let isWanted = withTexts || !isOfSettings
            if isWanted && isInherited(record), let address = reserve(count) {
                address.copyMemory(from: record, byteCount: count)
            }
            offset &+= count
        }
    }
    private static func isInherited(_ record: UnsafeMutablePointer<trace_record>) -> Bool {
        switch Int(record.pointee.type) {
        case Int(TRACE_RECORD_THREAD), Int(TRACE_RECORD_THREAD_END), Int(TRACE_RECORD_REPLACED): false
        case Int(TRACE_RECORD_PHASE)...Int(TRACE_RECORD_ONCE), Int(TRACE_RECORD_SWITCHED): false
        case Int(TRACE_RECORD_OPENED): record.pointee.key & UInt16(TRACE_OPENED_REPLACED) == 0 && isStillOpen(record)
        case Int(TRACE_RECORD_TEXT): record.pointee.key != UInt16(TRACE_TEXT_MESSAGE) && record.pointee.key != UInt16(TRACE_TEXT_TITLE)
        default: true
        }
    }
    /// The parent may have closed it, which no record says.
    private static func isStillOpen(_ record: UnsafeMutablePointer<trace_record>) -> Bool {
        let opened = UnsafeMutableRawPointer(record).assumingMemoryBound(to: trace_opened_record.self)
        let text = UnsafeRawPointer(opened + 1).assumingMemoryBound(to: UInt8.self)
        var buffer = InlineArray<1024, UInt8>(repeating: 0) // DescriptorLink.capacity
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer { bytes in
            let link = bytes.baseAddress!, count = DescriptorLink.read(opened.pointee.descriptor, into: link)
            if count == 0 || count != Int(opened.pointee.object_bytes) { return false }
            for n in 0..<count where link[n] != text[n] { return false }
            return true
        }
    }
}
