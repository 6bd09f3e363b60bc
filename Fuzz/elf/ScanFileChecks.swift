// The file in which searches are remembered, made by anybody: nothing is read outside of it (it lies at the end of readable
// pages), no slot is marked that was not asked for, and what was found comes back as it was.
@testable import AgentReading
import CSupport
import Glibc

enum ScanFileChecks {
    private static let page = 4096
    /// Up to an unreadable page.
    nonisolated(unsafe) private static let end: UnsafeMutableRawPointer = {
        let bytes = (Int(SCAN_MOST_BYTES) + page - 1) / page * page
        let start = mmap(nil, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        mprotect(start + bytes, page, PROT_NONE)
        return start + bytes
    }()
    nonisolated(unsafe) private static let buffer = UnsafeMutableRawPointer.allocate(byteCount: ScanFileBuilder.bufferBytes, alignment: 8)
    private static let low: UInt64 = 0x7000_0000, slotCount = 200

    /// Some hundred slots, two of three of which are asked for.
    private static func slots() -> CallOnlySlots {
        let slots = CallOnlySlots(low: low, high: low + UInt64(slotCount - 1) * 8)!
        for n in 0..<slotCount where n % 3 != 0 { slots.add(low + UInt64(n) * 8) }
        return slots
    }
    private static func states(_ slots: CallOnlySlots) -> [UInt8] { (0..<Int(slots.count)).map { slots.states[$0] } }

    static func read(_ content: UnsafeRawBufferPointer) {
        let count = min(content.count, Int(SCAN_MOST_BYTES)) & ~7
        guard count >= ScanFile.headerBytes else { return }
        let start = end - count
        start.copyMemory(from: content.baseAddress!, byteCount: count)
        let header = start.assumingMemoryBound(to: scan_file.self)
        let agent = FileIdentity(words: header.pointee.agent)
        // As it is; then with all that can be checked made right, so that it is what it says that counts.
        if let file = ScanFile(start, count, by: agent) { use(file, agent) }
        header.pointee.magic = UInt64(SCAN_MAGIC)
        header.pointee.version = UInt32(SCAN_VERSION)
        header.pointee.byte_count = UInt32(count)
        header.pointee.module_count %= UInt32((count - ScanFile.headerBytes) / ScanFile.rowBytes + 1)
        header.pointee.checksum = ScanFile.checksum(start, ScanFile.headerBytes - 8, ScanFile.seed)
        guard let file = ScanFile(start, count, by: agent) else {
            precondition(header.pointee.module_count > UInt32(SCAN_MOST_MODULES))
            return
        }
        for n in 0..<file.count {
            let row = UnsafeMutablePointer(mutating: file.row(n))
            let words = ScanFile.wordCount(row.pointee.slot_count), first = Int(row.pointee.bits)
            if row.pointee.slot_count % 2 == 0 { row.pointee.slot_count = UInt32(slotCount) }
            if first % 8 == 0, first + max(words, ScanFile.wordCount(row.pointee.slot_count)) * 8 <= count {
                row.pointee.checksum = ScanFile.checksum(of: row, file.bits(row))
            }
        }
        use(file, agent)
    }

    private static func use(_ file: ScanFile, _ agent: FileIdentity) {
        for n in 0..<file.count {
            let row = file.row(n)
            let key = ScanKey(
                identity: FileIdentity(words: row.pointee.identity), layout: row.pointee.layout, low: row.pointee.low,
                slotCount: row.pointee.slot_count)
            if let found = file.find(key) { precondition(file.isWhole(found)) }
            guard file.isWhole(row) else { continue }
            let slots = slots(), before = states(slots)
            slots.recall(row, file.bits(row))
            for (was, now) in zip(before, states(slots)) {
                precondition(was == now || was == CallOnlySlots.candidate && now == was | CallOnlySlots.called)
            }
            slots.release()
        }
        let slots = slots()
        for n in 0..<slotCount where n % 7 == 0 { slots.states[n] |= CallOnlySlots.called }
        remember(slots, ScanKey(identity: agent, layout: 1, low: low, slotCount: UInt32(slotCount)), file)
        slots.release()
    }

    /// Into a file, beside what another one has, and back.
    static func remember(_ slots: CallOnlySlots, _ key: ScanKey, _ old: ScanFile? = nil) {
        let agent = FileIdentity(words: (1, 2, 3))
        memset(buffer, 0, ScanFileBuilder.bufferBytes)
        var builder = ScanFileBuilder(buffer)
        builder.add(key, slots)
        if let old { builder.add(old) }
        let count = builder.finish(by: agent, generation: (old?.generation ?? 0) &+ 1)
        precondition(count <= Int(SCAN_MOST_BYTES))
        guard let file = ScanFile(buffer, count, by: agent), let row = file.find(key) else { preconditionFailure("lost") }
        for n in 0..<file.count {
            precondition(file.isWhole(file.row(n)) && (n == 0 || file.row(n - 1).pointee.identity.0 <= file.row(n).pointee.identity.0))
        }
        let before = states(slots)
        for n in 0..<Int(slots.count) { slots.states[n] &= CallOnlySlots.candidate }
        slots.recall(row, file.bits(row))
        for (was, now) in zip(before, states(slots)) {
            let both = CallOnlySlots.candidate | CallOnlySlots.called
            precondition((was == both) == (now == both))
        }
    }
}
