import Glibc
import Statistics
import Testing
import Unwinding

/// Files and stacks that hold anything.
@Suite struct HostileTests {
    @Test func damagedFilesAndStacksEndAWalk() throws {
        let libc = try #require(ProcessMaps(pid: getpid()).first { $0.isExecutable && $0.path.contains("/libc.so.6") })
        let bytes = try #require(contents(libc.path))
        var random = SplitMix(seed: 1)
        let whole = try #require(image(bytes))
        let text = try #require(whole.segments.first { $0.isExecutable })
        let frames = Int(whole.framesAddress &- whole.segments[0].address)..<Int(whole.framesAddress) + whole.frames.count
        var rules = 0
        for round in 0..<60 {
            var damaged = bytes
            for _ in 0..<(round % 6 == 0 ? 0 : 1 << UInt(round % 14)) {
                let offset = Int.random(in: round % 3 == 0 ? 0..<4096 : frames, using: &random)
                if offset < damaged.count { damaged[offset] = UInt8.random(in: 0...255, using: &random) }
            }
            if round % 5 == 4 { damaged.removeLast(Int.random(in: 0..<damaged.count, using: &random)) }
            guard let image = image(damaged) else { continue }
            let module = UnwindModule(image), unwinder = Unwinder()
            var space = AddressSpace()
            let start: UInt64 = 0x7f00_0000_0000
            space.add(AddressSpace.Mapping(start: start, end: start + text.byteCount, bias: start &- text.address, module: module))
            for _ in 0..<200 {
                let address = text.address + UInt64.random(in: 0..<text.byteCount, using: &random)
                if module.rule(at: address) != nil { rules += 1 }
                let stack = (0..<512).map { _ in
                    Bool.random(using: &random) ? start + UInt64.random(in: 0..<text.byteCount, using: &random) : random.next()
                }
                var registers = Processor.current.sampleOrder.map { _ in random.next() }
                registers[Processor.current.sampleOrder.firstIndex(of: Processor.current.programCounter)!] =
                    start &+ address &- text.address
                registers[Processor.current.sampleOrder.firstIndex(of: Processor.current.stackPointer)!] = 0x7fff_0000_0000
                registers[Processor.current.sampleOrder.firstIndex(of: Processor.current.framePointer)!] = 0x7fff_0000_0100
                var found: [UInt64] = []
                _ = registers.withUnsafeBufferPointer { registers in
                    stack.withUnsafeBytes { unwinder.unwind(registers, stack: $0, in: space, nil, into: &found) }
                }
                #expect(found.count <= Unwinder.mostFrames)
            }
        }
        #expect(rules > 1000)
    }

    private func image(_ bytes: [UInt8]) -> ModuleImage? {
        ModuleImage { offset, count in
            guard offset < UInt64(bytes.count), count > 0 else { return [] }
            return Array(bytes[Int(offset)..<min(Int(offset) + count, bytes.count)])
        }
    }

    private func contents(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var result: [UInt8] = [], part = [UInt8](repeating: 0, count: 1 << 20)
        while case let count = fread(&part, 1, part.count, file), count > 0 { result += part[..<count] }
        return result
    }
}
