// Where the next chunk goes. In full mode behind the last one, until TRACER_MAXSIZE; in ring mode, once that is
// reached, over the oldest chunk that no thread is writing.
import CSupport
import CTraceLayout

enum Ring {
    struct Slot {
        var offset: UInt64
        var order: UInt64
        var isBusy: Bool
    }
    nonisolated(unsafe) private static var slots = Table<Slot>() // number n of a unit is element n - 1
    nonisolated(unsafe) private static var lock = SpinLock()
    nonisolated(unsafe) private static var order: UInt64 = 0

    static var chunkBytes: Int { max(65536, min(1 << 20, Int(agent.settings.sizeLimit / 16))) & ~4095 }

    static func reset() {
        lock = SpinLock()
        slots.removeAll()
    }

    /// nil: recording has stopped. The slot is 0 in full mode.
    static func map(_ wanted: Int) -> (UnsafeMutableRawPointer, slot: UInt64)? {
        if !agent.settings.ring {
            if TraceFile.wouldExceedLimit(wanted) {
                _ = TraceFile.stop(TRACE_STOP_LIMIT, 0)
                return nil
            }
            return TraceFile.mapNew(wanted).map { ($0.address, 0) }
        }
        lock.lock()
        defer { lock.unlock() }
        order &+= 1
        if TraceFile.wouldExceedLimit(wanted), let oldest = oldestFree() {
            let slot = slots.pointer(oldest)
            guard let address = TraceFile.map(slot.pointee.offset, chunkBytes) else { return nil }
            slot.pointee.isBusy = true
            slot.pointee.order = order
            // Unmake it first: a reader must never see the new header over old events.
            address.storeBytes(of: 0, as: UInt32.self)
            (address + 4).initializeMemory(as: UInt8.self, repeating: 0, count: chunkBytes &- 4)
            return (address, UInt64(oldest &+ 1))
        }
        guard let (address, offset) = TraceFile.mapNew(wanted) else { return nil }
        if wanted != chunkBytes || !slots.append(Slot(offset: offset, order: order, isBusy: true)) { return (address, 0) }
        return (address, UInt64(slots.count))
    }

    private static func oldestFree() -> Int? {
        var best: Int?
        for n in 0..<slots.count where !slots[n].isBusy {
            if best == nil || slots[n].order < slots[best!].order { best = n }
        }
        return best
    }

    static func free(_ slot: UInt64) {
        if slot == 0 { return }
        lock.lock()
        slots.pointer(Int(slot) &- 1).pointee.isBusy = false
        lock.unlock()
    }
}
