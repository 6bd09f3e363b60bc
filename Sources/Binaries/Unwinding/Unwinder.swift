// One stack, from the registers of a thread and what lies at its stack pointer: a copy, or the memory of a thread that waits. Nothing is
// guessed: where a frame cannot be known, the walk ends.
import CTraceLayout
import ELF

package final class Unwinder {
    private let processor: Processor
    /// Memory, not arrays: they are what each frame is made of.
    private let registers: UnsafeMutablePointer<UInt64>
    private let count: Int
    /// A bit for each that is not known.
    private var unknown: UInt64 = 0

    /// True if the last stack has code of no file; a perf map or jitdump may have its names.
    private(set) var hasFoundMadeCode = false

    package static let mostFrames = 4096

    package init(_ processor: Processor = .current) {
        self.processor = processor
        count = processor.registerCount
        registers = .allocate(capacity: 2 * count) // the frame's, and its caller's while they are found
        registers.initialize(repeating: 0, count: 2 * count)
    }

    deinit { registers.deallocate() }

    /// - Parameters:
    ///   - sampled: in the kernel's order, those of `Processor.sampleMask`
    ///   - stack: from the stack pointer up, as far as there is a copy
    ///   - labels: of the process, where the agent may be in it
    ///   - frames: innermost first: the next instruction, then the addresses that calls return to. That of an interrupted
    ///     instruction (by a signal) is one more than its own, as if it were a call's. TRACE_SAMPLE_CALL stands where a recorded call
    ///     is open: between the frames of what was called and the one that called it
    /// - Returns: whether the last frame is the outermost
    package func unwind(
        _ sampled: UnsafeBufferPointer<UInt64>, stack: UnsafeRawBufferPointer, in space: AddressSpace, _ labels: ReturnLabels?,
        into frames: inout [UInt64]
    ) -> Bool {
        guard sampled.count == processor.sampleOrder.count else { return false }
        for (index, register) in processor.sampleOrder.enumerated() { registers[register] = sampled[index] }
        unknown = 0
        frames.append(registers[processor.programCounter])
        let memory = Memory(start: registers[processor.stackPointer], stack: stack, reservedAreas: space.reservedAreas, labels: labels)
        return walk(space, memory, isReturn: false, followsFramePointers: true, &frames)
    }

    /// Unwinds the stack of a thread that waits. All registers but two are unknown until a frame restores them.
    /// - Parameters:
    ///   - isInSystemCall: the program counter is where that returns to; else it is the instruction that waits, for a page
    ///   - pages: the memory of its process
    ///   - frames: as above, but the first address is one to return to as well, and that of an instruction that waits is one more
    /// - Returns: whether the last frame is the outermost
    package func unwind(
        waitingAt programCounter: UInt64, isInSystemCall: Bool, stackPointer: UInt64, _ pages: ProcessPages, in space: AddressSpace,
        into frames: inout [UInt64]
    ) -> Bool {
        registers[processor.programCounter] = programCounter
        registers[processor.stackPointer] = stackPointer
        unknown = ~(1 << UInt64(processor.programCounter) | 1 << UInt64(processor.stackPointer))
        frames.append(isInSystemCall ? programCounter : programCounter &+ 1)
        let memory = Memory(start: stackPointer, pages: pages, reservedAreas: space.reservedAreas)
        // What has no description may have left the frame pointer of its caller where it was, which would then be missing.
        return walk(space, memory, isReturn: isInSystemCall, followsFramePointers: false, &frames)
    }

    /// - Parameter isReturn: the program counter is where a call returns to: what is asked about is the call
    private func walk(
        _ space: AddressSpace, _ memory: Memory, isReturn: Bool, followsFramePointers: Bool, _ frames: inout [UInt64]
    ) -> Bool {
        var isReturn = isReturn
        hasFoundMadeCode = false
        while frames.count < Self.mostFrames {
            let pc = registers[processor.programCounter]
            if let area = space.reservedAreas.first(where: { $0.isLabel(pc) }) {
                // Its frame has no size: everything but the program counter is as it will be.
                if isReturn { frames[frames.count - 1] = UInt64(TRACE_SAMPLE_CALL) } else { frames.append(UInt64(TRACE_SAMPLE_CALL)) }
                guard let next = memory.word(area.returnWord(ofLabel: pc)), next != 0 else { return false }
                registers[processor.programCounter] = next
                frames.append(next)
                isReturn = true
                continue
            }
            guard let mapping = space.mapping(at: isReturn ? pc &- 1 : pc) else { return false }
            if mapping.module == nil { hasFoundMadeCode = true }
            let before = registers[processor.stackPointer]
            let address = (isReturn ? pc &- 1 : pc) &- mapping.bias
            if let module = mapping.module, let rule = module.rule(at: address) {
                if rule.isOutermost { return true }
                guard apply(rule, module, at: address, memory) else { return false }
                // The stack grows down: a caller's frame lies above, but where another stack was interrupted. What has called nobody may
                // have none.
                let after = registers[processor.stackPointer]
                if !rule.isSignalFrame, after < before || after == before && isReturn { return false }
                isReturn = !rule.isSignalFrame
            } else if isReturn, let begins = mapping.module?.rule(at: address &+ 1) {
                // Nobody has called it: it is what a stack of the program's own begins with (__start_context, for makecontext(3)).
                frames[frames.count - 1] = pc &+ 1
                return begins.isOutermost
            } else {
                // Made at run time, or without description in a file that has some: V8's builtins in node.
                guard followsFramePointers, followFramePointer(memory) else { return false }
                isReturn = true
                guard let caller = space.mapping(at: registers[processor.programCounter] &- 1) else { return false }
                // The agent's own code is called by itself: else that was not a frame pointer.
                if space.isAgent(mapping), !space.isAgent(caller) { return false }
            }
            let next = registers[processor.programCounter]
            if next == 0 { return true } // the start of a thread or coroutine whose first frame is not described
            frames.append(isReturn ? next : next &+ 1)
        }
        return false
    }

    private func value(_ register: Int) -> UInt64? {
        register < count && unknown & 1 << UInt64(register) == 0 ? registers[register] : nil
    }

    private func computed(_ range: Range<Int>, first: UInt64?, _ module: UnwindModule, _ memory: Memory) -> UInt64? {
        module.withFrames { bytes in
            Expression(bytes: bytes, range: range).value(first: first, register: { self.value($0) }, memory: { memory.word($0) })
        }
    }

    private func apply(_ rule: FrameRule, _ module: UnwindModule, at address: UInt64, _ memory: Memory) -> Bool {
        let frameAddress: UInt64?
        switch rule.frameAddress {
        case .register(let register, let offset):
            frameAddress =
                value(register).map { $0 &+ UInt64(bitPattern: offset) } ?? self.frameAddress(by: register, offset, module, address)
        case .expression(let range): frameAddress = computed(range, first: nil, module, memory)
        }
        guard let frameAddress else { return false }
        let results = registers + count
        var found: UInt64 = 0, lost: UInt64 = 0
        for index in rule.saved {
            let each = module.saved[index], bit: UInt64 = 1 << UInt64(each.register)
            guard each.register < count else { continue }
            let result: UInt64?
            switch each.rule {
            case .offset(let offset): result = saved(each.register, at: frameAddress &+ UInt64(bitPattern: offset), rule, memory)
            case .valueOffset(let offset): result = frameAddress &+ UInt64(bitPattern: offset)
            case .register(let register): result = value(register)
            case .expression(let range):
                result = computed(range, first: frameAddress, module, memory).flatMap { saved(each.register, at: $0, rule, memory) }
            case .valueExpression(let range): result = computed(range, first: frameAddress, module, memory)
            case .undefined: result = nil
            }
            if let result {
                results[each.register] = result
                found |= bit
            } else {
                lost |= bit
            }
        }
        unknown = unknown & ~found | lost
        guard rule.returnColumn < count, unknown & 1 << UInt64(rule.returnColumn) == 0 else { return false }
        registers[processor.stackPointer] = frameAddress
        while found != 0 {
            let register = found.trailingZeroBitCount
            registers[register] = results[register]
            found &= found - 1
        }
        registers[processor.programCounter] = registers[rule.returnColumn] & processor.addressMask
        return true
    }

    /// The frame address where the register that says it is not known: code tells how far it is from the stack pointer.
    private func frameAddress(by register: Int, _ offset: Int64, _ module: UnwindModule, _ address: UInt64) -> UInt64? {
        guard register == Processor.x86.framePointer, processor.framePointer == register, offset == StackDepth.frameDistance else {
            return nil
        }
        guard let state = module.stackState(at: address), state.hasFrame else { return nil }
        return registers[processor.stackPointer] &+ UInt64(bitPattern: state.depth)
    }

    /// The value of a register that the function has saved here. Where a function ends it has taken back what it saved, and the address is
    /// below its stack pointer, while the description still has it: then the register has its value already.
    private func saved(_ register: Int, at address: UInt64, _ rule: FrameRule, _ memory: Memory) -> UInt64? {
        if address < registers[processor.stackPointer], register != rule.returnColumn {
            return value(register)
        }
        return memory.word(address)
    }

    /// Code that nobody describes: the frame pointer points to the caller's, and to the address to return to after it.
    private func followFramePointer(_ memory: Memory) -> Bool {
        let (frame, stack) = (processor.framePointer, processor.stackPointer)
        guard unknown & 1 << UInt64(frame) == 0, registers[frame] >= registers[stack], registers[frame] % 8 == 0,
            let below = memory.word(registers[frame]), let next = memory.word(registers[frame] &+ 8)
        else { return false }
        registers[stack] = registers[frame] &+ 16
        registers[frame] = below
        registers[processor.programCounter] = next & processor.addressMask
        unknown = ~(1 << UInt64(frame) | 1 << UInt64(stack) | 1 << UInt64(processor.programCounter))
        return true
    }

    /// What is known of the memory: the copy of the stack, or that of a process which waits, and the return addresses of labels, which do
    /// not change.
    private struct Memory {
        /// The stack pointer.
        let start: UInt64
        var stack = UnsafeRawBufferPointer(start: nil, count: 0)
        var pages: ProcessPages?
        let reservedAreas: [ReservedArea]
        var labels: ReturnLabels?

        func word(_ address: UInt64) -> UInt64? {
            if address >= start, let offset = Int(exactly: address - start) {
                return stack.load(offset, as: UInt64.self) ?? outside(address)
            }
            return outside(address)
        }
        private func outside(_ address: UInt64) -> UInt64? {
            if let pages { return pages.word(address) }
            return reservedAreas.contains { $0.isReturnWord(address) } ? labels?.address(at: address) : nil
        }
    }
}
