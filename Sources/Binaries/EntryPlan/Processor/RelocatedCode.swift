// Instructions that stand at a function's entry, rewritten so that they do the same elsewhere.
import CTraceLayout

struct RelocatedCode {
    var bytes: [UInt8] = []
    var fixups: [plan_fixup] = []
    /// For each original instruction, its distance from the function's first byte, and its copy's from the first relocated byte.
    var instructions: [(from: Int, to: Int)] = []
    /// How many original bytes from the function's start are done with: it goes on there.
    var resume = 0
    /// The last one leaves the function, or returns to where it stood.
    var isEnded = false
    /// It ends with a call, which returns to `resume`.
    var isCall = false
    /// Offset from which its call's return address is set, which the original's frames do not describe; 0: no call.
    var linked = 0
    /// Why it cannot be done.
    var reason = Reason.no

    mutating func fix(_ kind: plan_fixup_kind, _ target: UInt64, _ base: UInt64, at offset: Int, end: Int) {
        let distance = Int64(bitPattern: target &- base)
        if distance > Int64(Int32.max) || distance < Int64(Int32.min) {
            reason = .tooFar
            return
        }
        fixups.append(
            plan_fixup(
                target: Int32(distance), offset: UInt8(truncatingIfNeeded: offset), end: UInt8(truncatingIfNeeded: end),
                kind: UInt8(kind.rawValue), unused: 0))
    }
}

extension RelocatedCode {
    /// Returns where its instructions come from, as bytes of plan_instruction. Empty: each is as far after `patch` as its copy from the
    /// start.
    func originals(patch: Int) -> [UInt8] {
        guard let last = instructions.last else { return [] }
        let isSame = instructions.allSatisfy { $0.from - patch == $0.to } && !(isEnded && bytes.count - last.to > resume - last.from)
        return isSame ? [] : instructions.flatMap { [UInt8(truncatingIfNeeded: $0.to), UInt8(truncatingIfNeeded: $0.from)] }
    }
}
