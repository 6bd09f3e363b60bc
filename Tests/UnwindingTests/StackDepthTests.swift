import Glibc
import Statistics
import Testing
import Unwinding

/// The stack pointer as the code says it, against descriptions that have the frame by the stack pointer.
@Suite struct StackDepthTests {
    @Test(.enabled(if: Processor.current.programCounter == Processor.x86.programCounter))
    func codeSaysWhatDescriptionsSay() throws {
        var random = SplitMix(seed: 2), agreed = 0, described = 0, framed = 0, withFrames = 0
        let maps = ProcessMaps(pid: getpid()).filter { $0.isExecutable && $0.path.hasPrefix("/") }
        // What compilers make: libc has assembly that does not describe what it pushes.
        for map in maps where ["/libstdc++.so.6", "/libm.so.6", "/libgcc_s.so.1"].contains(where: map.path.contains) {
            let module = try #require(UnwindModule(path: map.path))
            let text = try #require(module.text)
            for _ in 0..<4000 {
                let address = UInt64.random(in: text, using: &random)
                guard let rule = module.rule(at: address) else { continue }
                let state = module.stackState(at: address)
                if let distance = rule.frameDistance(from: Processor.x86.stackPointer) {
                    described += 1
                    guard let state else { continue }
                    #expect(state.depth == distance, "\(map.path) \(String(address, radix: 16))")
                    agreed += 1
                } else if let distance = rule.frameDistance(from: Processor.x86.framePointer) {
                    withFrames += 1
                    guard let state, state.hasFrame else { continue }
                    #expect(distance == StackDepth.frameDistance, "\(map.path) \(String(address, radix: 16))")
                    framed += 1
                }
            }
        }
        #expect(agreed > described / 2 && described > 2000, "\(agreed) of \(described), and \(framed) of \(withFrames) with frame pointers")
    }
}
