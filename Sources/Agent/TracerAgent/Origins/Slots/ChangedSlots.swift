// What slots held before the agent changed them, where it has been attached: detaching puts it back. ModuleLock is held.
import CSupport

enum ChangedSlots {
    nonisolated(unsafe) private static var changes = Table<SlotChange>()
    /// False between detaching and attaching again: no slot may be changed.
    nonisolated(unsafe) static var mayChange = true

    /// The slot may be written to (WriteAccess). `old`: what it holds, or would hold without the agent.
    static func store(_ new: UInt64, at address: UInt64, insteadOf old: UInt64) {
        if Process.isAttached && (!mayChange || !changes.append(SlotChange(address: address, old: old, new: new))) { return }
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(address))!, new)
    }

    /// The module that had these addresses is no longer mapped.
    static func forget(_ low: UInt64, _ high: UInt64) { changes.forget(low, high) }

    static func putBack() {
        mayChange = false
        changes.putBack()
    }
}

struct SlotChange: BitwiseCopyable {
    var address: UInt64 // 0: its module is gone
    let old: UInt64, new: UInt64
}

extension Table where Element == SlotChange {
    /// The module that had these addresses is no longer mapped.
    mutating func forget(_ low: UInt64, _ high: UInt64) {
        for n in 0..<count where self[n].address &- low < high &- low { pointer(n).pointee.address = 0 }
    }
    /// One store each. A slot that somebody else has changed since is left.
    mutating func putBack() {
        var latest = -1, access: WriteAccess?
        for n in 0..<count {
            let change = self[n]
            guard change.address != 0, let index = ModuleTable.index(of: change.address) else { continue }
            if index != latest {
                access?.close()
                access = WriteAccess(
                    withUnsafeMutablePointer(to: &ModuleTable.modules.pointer(index).pointee.image) { $0 }, isRelocated: true)
                latest = index
            }
            let slot = UnsafeMutablePointer<UInt64>(bitPattern: UInt(change.address))!
            if slot.pointee == change.new && access!.open(change.address) { tracer_store_release_64(slot, change.old) }
        }
        access?.close()
        removeAll()
    }
}
