// Instructions that stand at a function's entry, rewritten so that they do the same elsewhere.
import CTraceLayout

struct MovedCode {
    var bytes: [UInt8] = []
    var fixups: [plan_fixup] = []
    /// Of each original instruction: its distance from the function's first byte, and that from the first moved byte.
    var places: [(from: Int, to: Int)] = []
    /// How many original bytes from the function's start are done with: it goes on there.
    var resume = 0
    /// The last one leaves the function, or returns to where it stood.
    var isEnded = false
    /// It ends with a call, which returns to `resume`.
    var isCall = false
    /// From here on a return address is on the stack that the original's frames do not tell of.
    var pushed: Int?
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

/// The frames of moved code: the DWARF call frame instructions that its originals have, at their new places. They begin at what
/// holds at a function's entry; the code alignment factor is 1, that of data -8.
enum MovedFrames {
    /// nil: they cannot be expressed.
    static func program(_ code: MovedCode, patch: Int, _ function: FrameTable.Function, _ table: FrameTable) -> [UInt8]? {
        var program: [UInt8] = []
        var at = 0, isPossible = true, isWhole = true
        func advance(to place: Int) {
            let delta = place - at
            if delta <= 0 { return }
            if delta < 64 { program.append(0x40 | UInt8(delta)) } else { program += [0x02, UInt8(truncatingIfNeeded: delta)] }
            at = place
        }
        // The rows of the copy end where the function goes on. There the jump back stands, with what holds behind the last original.
        let end = code.resume
        let understood = table.walk(function, includesCommon: false) { location, step, bytes in
            if location > end || code.isEnded && location >= end { return false }
            var place = 0
            if location > patch {
                guard let found = code.places.first(where: { $0.from == location }) else {
                    isWhole = false
                    return false
                }
                place = found.to
            }
            advance(to: place)
            switch step {
            case .saved(let register, let offset):
                guard offset % -8 == 0, register < 64 else {
                    isPossible = false
                    return false
                }
                if offset <= 0 {
                    program.append(0x80 | UInt8(register))
                    append(UInt64(-offset / 8), &program)
                } else {
                    program += [0x11, UInt8(register)] // DW_CFA_offset_extended_sf
                    append(signed: offset / -8, &program)
                }
            case .define(let register, let offset):
                guard offset >= 0 else {
                    isPossible = false
                    return false
                }
                program.append(0x0c)
                append(register, &program)
                append(UInt64(offset), &program)
            case .defineRegister(let register):
                program.append(0x0d)
                append(register, &program)
            case .defineOffset(let offset):
                guard offset >= 0 else {
                    isPossible = false
                    return false
                }
                program.append(0x0e)
                append(UInt64(offset), &program)
            case .defineByExpression, .remember, .recall, .other: program += bytes
            }
            return program.count < Int(PLAN_MOVED_ROOM)
        }
        if let pushed = code.pushed, let row = table.row(of: function, at: code.places.last?.from ?? 0), row.register == 7,
            !row.isExpression
        {
            advance(to: pushed)
            program.append(0x0e)
            append(UInt64(max(row.offset + 8, 0)), &program)
        }
        return understood && isPossible && isWhole && program.count <= Int(PLAN_MOVED_ROOM) ? program : nil
    }

    private static func append(_ value: UInt64, _ program: inout [UInt8]) {
        var value = value
        while value >= 0x80 {
            program.append(UInt8(value & 0x7f) | 0x80)
            value >>= 7
        }
        program.append(UInt8(value))
    }

    private static func append(signed value: Int64, _ program: inout [UInt8]) {
        var value = value
        while true {
            let byte = UInt8(value & 0x7f)
            value >>= 7
            if value == 0 && byte & 0x40 == 0 || value == -1 && byte & 0x40 != 0 {
                program.append(byte)
                return
            }
            program.append(byte | 0x80)
        }
    }
}
