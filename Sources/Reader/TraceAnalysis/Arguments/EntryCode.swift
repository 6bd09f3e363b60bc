// What the first instructions of a function do with the arguments that its caller has left in registers. Rust and Swift promise no calling
// convention, and the debug information of code that is not optimized says only where in its frame a function keeps each parameter. The code
// says what it puts there: it is followed from the entry on, in a straight line, and the first value that is written to a place of the frame is
// looked at. Whatever is not understood ends it, and what was not found until then is not known.
import ELF

struct EntryCode {
    /// What a register or a place of the frame holds.
    enum Content: Equatable {
        /// Its lowest bytes are those of an argument. `isBit`: the lowest bit, with zeros above it in its byte.
        case argument(ArgumentSource, bytes: Int, isBit: Bool)
        /// An address, by its distance from the canonical frame address.
        case frame(Int)
        case zero
        case unknown

        /// Its lowest bit: what is left of a boolean is one, as long as the caller has passed one.
        var bit: Content {
            if case .argument(let source, _, _) = self { .argument(source, bytes: 1, isBit: true) } else { .unknown }
        }

        /// Its lowest bytes, where higher ones may be anything.
        func narrowed(to count: Int) -> Content {
            switch self {
            case .argument(let source, let bytes, let isBit): .argument(source, bytes: min(bytes, count), isBit: isBit)
            case .zero: .zero
            case .frame where count == 8: self
            case .frame, .unknown: .unknown
            }
        }
    }
    private struct Word {
        var content: Content
        var byteCount: Int
    }

    static let vectors = 32
    /// Integer registers by their numbers in instructions, then vector registers.
    var registers = [Content](repeating: .unknown, count: 64)
    let stackPointer: Int
    /// Places of the frame, by their distance from the canonical frame address: what is there now, and what was written there first.
    private var memory: [Int: Word] = [:], first: [Int: Word] = [:]
    /// A place whose address is known elsewhere, or a higher one, may be written by anybody.
    private var lowestKnown = Int.max
    /// Registers before some instructions, by their offsets.
    private var history: [Int: [Content]] = [:]
    /// Places are cleared before they get their values, as Swift does for its debugger.
    private let mayBeCleared: Bool
    private let isArm: Bool

    /// A function's frame is filled within so many bytes, if it is.
    private static let mostBytes = 2048

    /// - Parameters:
    ///   - code: from the function's first instruction on
    ///   - machine: ELF's e_machine
    ///   - homes: what will be asked for
    init?(_ code: UnsafeRawBufferPointer, machine: UInt16, mayBeCleared: Bool, keeping homes: [ParameterHome]) {
        guard machine == 62 || machine == 183 else { return nil }
        self.mayBeCleared = mayBeCleared
        isArm = machine == 183
        stackPointer = isArm ? 31 : 4
        // psABI 3.2.3, AAPCS64 6.4: rdi, rsi, rdx, rcx, r8, r9.
        for (n, register) in (isArm ? Array(0..<8) : [7, 6, 2, 1, 8, 9]).enumerated() {
            registers[register] = .argument(.register(n), bytes: 8, isBit: false)
        }
        for n in 0..<8 { registers[Self.vectors + n] = .argument(.vector(n), bytes: 8, isBit: false) }
        registers[stackPointer] = .frame(isArm ? 0 : -8) // the return address is on the stack
        let code = UnsafeRawBufferPointer(rebasing: code.prefix(Self.mostBytes))
        let kept = homes.compactMap { if case .held(_, let before) = $0 { before } else { nil } }
        var offset = 0
        while offset < code.count {
            if kept.contains(offset) { history[offset] = registers }
            guard let length = isArm ? armStep(code, offset) : x86Step(code, offset) else { return }
            offset += length
        }
    }

    // MARK: - Answers

    /// The argument that a place of the frame gets before anything else; nil: it cannot be told.
    /// - Parameters:
    ///   - register: DWARF's number of the one that places count from (psABI figure 3.36)
    ///   - byteCount: of the parameter
    func argument(at offset: Int, from register: Int, bytes byteCount: Int, isBoolean: Bool = false) -> ArgumentSource? {
        // The stack pointer, and what is kept for a frame's whole life.
        let own = [31, 29].contains(register) && isArm ? register : register == 7 && !isArm ? 4 : register == 6 && !isArm ? 5 : nil
        guard let own, case .frame(let base) = registers[own],
            offset.magnitude < 1 << 30
        else { return nil }
        let place = base + offset
        if place >= 0 { return place % 8 == 0 ? .stack(place / 8) : nil } // the caller has put it there
        guard let word = first[place], word.byteCount >= byteCount else { return nil }
        return Self.source(word.content, byteCount, isBoolean)
    }

    /// The argument that a register still holds before an instruction; nil: it cannot be told.
    /// - Parameter register: its number in DWARF
    func argument(in register: Int, before offset: Int) -> ArgumentSource? {
        guard let state = history[offset] else { return nil }
        // psABI figure 3.36: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp
        let own = isArm || !(0..<8).contains(register) ? register : [0, 2, 1, 3, 6, 7, 5, 4][register]
        guard (0..<(isArm ? 31 : 16)).contains(own) else { return nil }
        return Self.source(state[own], 8, false)
    }

    private static func source(_ content: Content, _ byteCount: Int, _ isBoolean: Bool) -> ArgumentSource? {
        guard case .argument(let source, let bytes, let isBit) = content, bytes >= byteCount, !isBit || isBoolean else { return nil }
        return source
    }

    // MARK: - Effects of instructions

    mutating func load(_ address: Int?, _ byteCount: Int) -> Content {
        guard let address else { return .unknown }
        if let word = memory[address] { return word.byteCount >= byteCount ? word.content.narrowed(to: byteCount) : .unknown }
        guard address >= 0, address % 8 == 0, !isWritten(address, byteCount) else { return .unknown }
        return .argument(.stack(address / 8), bytes: min(byteCount, 8), isBit: false)
    }

    mutating func store(_ content: Content, _ address: Int?, _ byteCount: Int) {
        guard let address else { return forgetKnown() }
        if case .frame(let other) = content { lowestKnown = min(lowestKnown, other) }
        for near in (address - 15)..<(address + byteCount) {
            if let word = memory[near], near + word.byteCount > address { memory[near] = nil }
        }
        memory[address] = Word(content: content, byteCount: byteCount)
        if content == .zero, mayBeCleared { return }
        let isTaken = ((address - 15)..<(address + byteCount)).contains { near in first[near].map { near + $0.byteCount > address } ?? false
        }
        if !isTaken { first[address] = Word(content: content, byteCount: byteCount) }
    }
    private func isWritten(_ address: Int, _ byteCount: Int) -> Bool {
        ((address - 15)..<(address + byteCount)).contains { near in memory[near].map { near + $0.byteCount > address } ?? false }
    }

    /// A function is called, or something is written to a place that is not known: what others know the address of may change.
    mutating func forgetKnown() { memory = memory.filter { $0.key + $0.value.byteCount <= lowestKnown } }
    /// A register for integers gets something. The address of a place may go on to others from there.
    mutating func put(_ content: Content, _ register: Int) {
        if case .frame(let place) = content, register != stackPointer, register != (isArm ? 29 : 5) {
            lowestKnown = min(lowestKnown, place)
        }
        registers[register] = content
    }

    mutating func call() {
        forgetKnown()
        // What a call keeps (psABI 3.2.1, AAPCS64 6.1.1), without the registers that Swift gives a meaning of its own.
        let kept: Set = isArm ? Set(23...31) : [3, 4, 5, 15]
        for n in registers.indices where !kept.contains(n) { registers[n] = .unknown }
    }
}
