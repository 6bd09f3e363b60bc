// Write access to the parts of an image that the agent changes: its slots, its initializer arrays, its dynamic entries. What the loader
// protected after relocation (PT_GNU_RELRO) is made writable for a moment and protected again; the rest of a writable segment is made
// writable first, in case a loader has protected more than it should.
import CSupport

struct WriteAccess {
    private let image: UnsafeMutablePointer<Image>
    private let isRelocated: Bool
    private var relroIsOpen = false
    private var openLow: UInt64 = 0, openHigh: UInt64 = 0

    /// - Parameter isRelocated: the loader has relocated the image, and protected its RELRO part.
    init(_ image: UnsafeMutablePointer<Image>, isRelocated: Bool) {
        self.image = image
        self.isRelocated = isRelocated
    }

    /// The word at this address may be written to until `close`. False: it must be left alone.
    @inline(__always) mutating func open(_ address: UInt64) -> Bool {
        address &- openLow < openHigh &- openLow || openPart(around: address)
    }
    @inline(never) private mutating func openPart(around address: UInt64) -> Bool {
        if image.pointee.isRelro(address) {
            if !isRelocated { return image.pointee.isData(address) } // found to be writable, and left so (RelocationState)
            let low = image.pointee.relroLow, high = image.pointee.relroHigh
            if !relroIsOpen { relroIsOpen = Memory.protect(low, high &- low, Memory.readWrite) }
            if relroIsOpen { (openLow, openHigh) = (low, high) }
            return relroIsOpen
        }
        guard let (low, high, protection) = image.pointee.writablePart(around: address),
            Memory.protect(low, high &- low, protection)
        else { return false }
        (openLow, openHigh) = (low, high)
        return true
    }

    func close() {
        if relroIsOpen { Memory.protect(image.pointee.relroLow, image.pointee.relroHigh &- image.pointee.relroLow, Memory.readOnly) }
    }
}

/// State of a new module when the loader's hook reports it. glibc calls the hook before relocation until 2.40, and after it from 2.41 on
/// (elf/dl-open.c, dl_open_worker_begin); the agent need not know which glibc it is, since the module's RELRO part shows it.
enum RelocationState: UInt8 { // a raw value: comparing plain enums brings the standard library's hashing with it
    case notYet // or there is nothing that would show it: a loader of either kind may write to it now
    case done
    case unknown // nothing of the module may be written to

    init(_ image: borrowing Image) {
        if image.relroLow == image.relroHigh {
            self = .notYet
            return
        }
        self =
            switch Memory.tryWriting(image.relroLow) {
            case 0...: .notYet
            case -Failure.address: .done
            default: .unknown
            }
    }
}
