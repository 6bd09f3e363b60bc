// A module's code, compared with its plan in copies of blocks that are about to take their places.
import CSupport
import CTraceLayout

struct PlannedCode {
    let plan: PlanContent
    let image: UnsafePointer<Image>
    /// Base of the plan's addresses.
    let base: UInt64
    /// All that was asked for is as planned.
    private(set) var isWhole = true
    private var function = 0
    private var latest: UInt64 = 0 // block

    init(plan: PlanContent, image: UnsafePointer<Image>, base: UInt64) { (self.plan, self.image, self.base) = (plan, image, base) }

    /// Entries of a block come by rising addresses.
    @inline(never) mutating func has(_ change: CodeChange, isSite: Bool, _ code: BlockCopy) -> Bool {
        var isThere = false
        if isSite {
            isThere = EntryPatch.leads(change.address, to: change.function, in: image, copied: code.distance(change.address &- 2, 6))
        } else {
            let address = UInt32(truncatingIfNeeded: change.function &- base)
            if code.block.lowerBound != latest { function = plan.number(at: address) ?? 0 }
            latest = code.block.lowerBound
            while function < plan.functionCount && plan.function(function).pointee.address < address { function = function &+ 1 }
            if function < plan.functionCount && plan.function(function).pointee.address == address { isThere = has(code) }
        }
        isWhole = isWhole && isThere
        return isThere
    }
    private func has(_ code: BlockCopy) -> Bool {
        let planned = plan.function(function).pointee, isShort = UInt32(planned.tactic) == PLAN_JUMP2.rawValue
        let bytes = code.distance(base &+ UInt64(planned.address) &+ UInt64(planned.patch), UInt64(planned.replaced))
        let landing = isShort ? code.distance(base &+ UInt64(planned.landing), 5) : bytes
        return EntryPatch.fits(planned, in: image, base: base, copied: bytes == landing ? bytes : 0)
    }
}

/// What a block is about to become.
struct BlockCopy {
    let block: Range<UInt64>
    let copy: UnsafeRawPointer

    /// How far the copy is from the code; 0 where it has not all of these bytes.
    func distance(_ address: UInt64, _ byteCount: UInt64) -> UInt64 {
        address >= block.lowerBound && address &+ byteCount <= block.upperBound ? UInt64(UInt(bitPattern: copy)) &- block.lowerBound : 0
    }
}
