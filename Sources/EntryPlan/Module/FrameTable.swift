// .eh_frame: where functions lie, also those without a symbol, how far the stack pointer is from their return address at each
// instruction, and where their exceptions land.
import ELF
import TraceFormat

struct FrameTable {
    struct Common { // CIE
        var codeFactor: UInt64
        var dataFactor: Int64
        var addressEncoding: UInt8
        var lsdaEncoding: UInt8
        var hasLength: Bool // augmentation data is preceded by its length
        var isSignalFrame: Bool
        var program: Range<Int>
    }
    struct Function { // FDE
        var address: UInt64
        var byteCount: UInt64
        var common: Int
        var program: Range<Int>
        var lsda: UInt64?
    }

    private(set) var functions: [Function] = [] // ascending by address
    private var commons: [Common] = []
    private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    private var address: UInt64 = 0
    private let architecture: Architecture

    init(_ file: CodeFile, _ code: ModuleCode) {
        architecture = code.architecture
        if let section = file.section(".eh_frame"), section.byteCount > 0 {
            bytes = file.bytes(of: section)
            address = section.address
        } else if let header = file.programHeaders(.frameIndex).first { // a file without sections
            guard let index = FrameIndex(code.content(at: header.address), address: header.address) else { return }
            bytes = code.content(at: index.framesAddress)
            address = index.framesAddress
        }
        read()
        functions.sort { ($0.address, $0.byteCount) < ($1.address, $1.byteCount) }
    }

    private mutating func read() {
        var reader = DwarfReader(bytes, address: address)
        var known: [Int: Int] = [:] // offset of a CIE to its index in commons; -1: one that is not understood
        while !reader.isAtEnd {
            var length = UInt64(reader.number(UInt32.self))
            if length == 0xffff_ffff { length = reader.number(UInt64.self) }
            if length == 0 || reader.failed || length > UInt64(reader.end - reader.offset) { return }
            let body = reader.offset, end = reader.offset + Int(length)
            var entry = DwarfReader(bytes, address: address, offset: body, end: end)
            let back = Int(entry.number(UInt32.self))
            if back != 0, back <= body {
                let start = body - back
                let common = known[start] ?? readCommon(start)
                known[start] = common
                if common >= 0 { readFunction(&entry, common) }
            }
            reader.offset = end
        }
    }

    private mutating func readCommon(_ start: Int) -> Int {
        var reader = DwarfReader(bytes, address: address, offset: start)
        var length = UInt64(reader.number(UInt32.self))
        if length == 0xffff_ffff { length = reader.number(UInt64.self) }
        if reader.failed || length > UInt64(reader.end - reader.offset) { return -1 }
        reader.end = reader.offset + Int(length)
        let id = reader.number(UInt32.self), version = reader.byte()
        guard id == 0, version == 1 || version == 3 else { return -1 }
        var augmentation: [UInt8] = []
        while true {
            let byte = reader.byte()
            if byte == 0 { break }
            augmentation.append(byte)
            if augmentation.count > 8 { return -1 }
        }
        var common = Common(
            codeFactor: reader.unsigned(), dataFactor: reader.signed(), addressEncoding: 0, lsdaEncoding: 0xff,
            hasLength: false, isSignalFrame: false, program: 0..<0)
        if version == 1 { _ = reader.byte() } else { _ = reader.unsigned() } // the column of the return address
        if augmentation.first == UInt8(ascii: "z") {
            common.hasLength = true
            let length = reader.unsigned()
            guard !reader.failed, length <= UInt64(reader.end - reader.offset) else { return -1 }
            let after = reader.offset + Int(length)
            for letter in augmentation.dropFirst() {
                switch letter {
                case UInt8(ascii: "R"): common.addressEncoding = reader.byte()
                case UInt8(ascii: "L"): common.lsdaEncoding = reader.byte()
                case UInt8(ascii: "P"): _ = reader.pointer(reader.byte())
                case UInt8(ascii: "S"): common.isSignalFrame = true
                case UInt8(ascii: "B"), UInt8(ascii: "G"): break
                default: return -1
                }
            }
            reader.offset = after
        } else if !augmentation.isEmpty {
            return -1
        }
        guard !reader.failed, reader.offset <= reader.end else { return -1 }
        common.program = reader.offset..<reader.end
        commons.append(common)
        return commons.count - 1
    }

    private mutating func readFunction(_ reader: inout DwarfReader, _ index: Int) {
        let common = commons[index]
        let start = reader.pointer(common.addressEncoding)
        let count = reader.pointer(common.addressEncoding & 0xf)
        guard let start, let count, count < 1 << 31 else { return } // 0 bytes: the linker has discarded the function
        var lsda: UInt64?
        if common.hasLength {
            let length = reader.unsigned()
            guard !reader.failed, length <= UInt64(reader.end - reader.offset) else { return }
            let after = reader.offset + Int(length)
            lsda = reader.pointer(common.lsdaEncoding)
            if common.lsdaEncoding & 0x80 != 0 { lsda = nil }
            reader.offset = after
            reader.failed = false
        }
        functions.append(Function(address: start, byteCount: count, common: index, program: reader.offset..<reader.end, lsda: lsda))
    }

    /// The description that begins at this address.
    func function(at address: UInt64) -> Function? {
        let index = position(of: address)
        return index < functions.count && functions[index].address == address ? functions[index] : nil
    }

    func function(containing address: UInt64) -> Function? {
        var index = position(of: address)
        if index == functions.count || functions[index].address > address { index -= 1 }
        guard index >= 0, address - functions[index].address < functions[index].byteCount else { return nil }
        return functions[index]
    }

    func isSignalFrame(_ function: Function) -> Bool { commons[function.common].isSignalFrame }

    private func position(of address: UInt64) -> Int { bisect(functions.count) { functions[$0].address < address } }
}

/// One DWARF call frame instruction, with numbers in bytes.
enum FrameStep {
    case define(register: UInt64, offset: Int64)
    case defineRegister(UInt64)
    case defineOffset(Int64)
    case defineByExpression
    case remember, recall
    /// x30, in which calls on aarch64 leave their return address, is kept so far from the frame's address.
    case savesLink(Int64)
    /// x30 holds what the call has left in it.
    case keepsLink
    /// Anything else.
    case other
}

/// Rule that gives a frame's address: a register and a distance.
struct FrameRow: Equatable {
    var register: UInt64
    var offset: Int64
    var isExpression = false
    /// The distance of the saved x30 from the frame's address; nil: x30 holds it.
    var link: Int64?

    mutating func take(_ step: FrameStep, _ kept: inout [FrameRow]) {
        switch step {
        case .define(let register, let distance): (self.register, offset, isExpression) = (register, distance, false)
        case .defineRegister(let register): (self.register, isExpression) = (register, false)
        case .defineOffset(let distance): offset = distance
        case .defineByExpression: isExpression = true
        case .remember: if kept.count < 64 { kept.append(self) }
        case .recall: self = kept.popLast() ?? self
        case .savesLink(let distance): link = distance
        case .keepsLink: link = nil
        case .other: break
        }
    }
}

extension FrameTable {
    /// x30; x86-64 has no register of this number that a frame keeps.
    private static let link: UInt64 = 30

    /// The row at the first instruction of a function, whoever called it.
    var rowAtEntry: FrameRow { architecture == .x86 ? FrameRow(register: 7, offset: 8) : FrameRow(register: 31, offset: 0) }

    /// Goes through a function's call frame instructions. `body` gets each with the offset in the function from which it holds, and
    /// ends the walk by returning false. Returns false when an instruction is not understood.
    func walk(_ function: Function, _ body: (Int, FrameStep) -> Bool) -> Bool {
        let common = commons[function.common]
        var location: UInt64 = 0
        for (part, program) in [common.program, function.program].enumerated() {
            var reader = DwarfReader(bytes, address: address, offset: program.lowerBound, end: program.upperBound)
            while !reader.isAtEnd {
                let op = reader.byte()
                var step = FrameStep.other, isAdvance = false
                func scaled(_ value: Int64) -> Int64 { value &* common.dataFactor }
                func saves(_ register: UInt64, _ distance: Int64) { if register == Self.link { step = .savesLink(scaled(distance)) } }
                func keeps(_ register: UInt64) { if register == Self.link { step = .keepsLink } }
                switch op {
                case 0x40...0x7f: (location, isAdvance) = (location &+ UInt64(op & 0x3f) &* common.codeFactor, true)
                case 0x80...0xbf: saves(UInt64(op & 0x3f), Int64(truncatingIfNeeded: reader.unsigned()))
                case 0xc0...0xff: keeps(UInt64(op & 0x3f))
                case 0x00: continue
                case 0x02: (location, isAdvance) = (location &+ UInt64(reader.byte()) &* common.codeFactor, true)
                case 0x03: (location, isAdvance) = (location &+ UInt64(reader.number(UInt16.self)) &* common.codeFactor, true)
                case 0x04: (location, isAdvance) = (location &+ UInt64(reader.number(UInt32.self)) &* common.codeFactor, true)
                case 0x06, 0x07, 0x08: keeps(reader.unsigned())
                case 0x2e: _ = reader.unsigned()
                case 0x05: saves(reader.unsigned(), Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x09:
                    _ = reader.unsigned()
                    _ = reader.unsigned()
                case 0x0a: step = .remember
                case 0x0b: step = .recall
                case 0x0c: step = .define(register: reader.unsigned(), offset: Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x0d: step = .defineRegister(reader.unsigned())
                case 0x0e: step = .defineOffset(Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x0f:
                    reader.skip(reader.unsigned())
                    step = .defineByExpression
                case 0x10, 0x16:
                    _ = reader.unsigned()
                    reader.skip(reader.unsigned())
                case 0x11: saves(reader.unsigned(), reader.signed())
                case 0x12: step = .define(register: reader.unsigned(), offset: scaled(reader.signed()))
                case 0x13: step = .defineOffset(scaled(reader.signed()))
                case 0x2d: break // DW_CFA_AARCH64_negate_ra_state
                default: return false
                }
                if reader.failed { return false }
                if isAdvance || part == 0 && location != 0 { continue }
                if !body(Int(clamping: location), step) { return true }
            }
        }
        return true
    }

    /// Each row and the part of the function in which it holds, in order. False from `body` ends it.
    func forEachRow(of function: Function, _ body: (FrameRow, Range<Int>) -> Bool) {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = [], start = 0, isOver = false
        _ = walk(function) { location, step in
            if location > start {
                if !body(row, start..<location) {
                    isOver = true
                    return false
                }
                start = location
            }
            row.take(step, &kept)
            return true
        }
        if !isOver, start < Int(function.byteCount) { _ = body(row, start..<Int(function.byteCount)) }
    }

    /// How the frame is found when the instruction at `offset` of the function is the next one; nil: not known.
    func row(of function: Function, at offset: Int) -> FrameRow? {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = []
        let isUnderstood = walk(function) { location, step in
            if location > offset { return false }
            row.take(step, &kept)
            return true
        }
        return isUnderstood && row.register != .max ? row : nil
    }
}
