import ELF
import Testing
import TraceAnalysis

/// Parameters of Rust and Swift, by where the debug information says that they are and what the code puts there.
@Suite struct EntryCodeTests {
    private let x86: UInt16 = 62, arm: UInt16 = 183
    private let int = SourceType(.integer(isSigned: true), bytes: 4), long = SourceType(.integer(isSigned: true), bytes: 8)
    private let bool = SourceType(.boolean, bytes: 1), byte = SourceType(.integer(isSigned: false), bytes: 1)
    private let float = SourceType(.floatingPoint(isExtended: false), bytes: 4)

    /// sub $0x38,%rsp; mov %r9,(%rsp); mov %dil,%al; mov %esi,0x24(%rsp); movss %xmm0,0x20(%rsp); and $1,%al; mov %al,0x2f(%rsp);
    /// mov %rdx,8(%rsp); mov %rcx,0x10(%rsp); call; mov (%rsp),%rax; mov %rax,0x18(%rsp); add $0x38,%rsp; ret
    private let rust: [UInt8] = [
        0x48, 0x83, 0xec, 0x38, 0x4c, 0x89, 0x0c, 0x24, 0x40, 0x88, 0xf8, 0x89, 0x74, 0x24, 0x24, 0xf3, 0x0f, 0x11, 0x44, 0x24, 0x20,
        0x24, 0x01, 0x88, 0x44, 0x24, 0x2f, 0x48, 0x89, 0x54, 0x24, 0x08, 0x48, 0x89, 0x4c, 0x24, 0x10, 0xe8, 0, 0, 0, 0,
        0x48, 0x8b, 0x04, 0x24, 0x48, 0x89, 0x44, 0x24, 0x18, 0x48, 0x83, 0xc4, 0x38, 0xc3,
    ]
    /// push %rbp; mov %rsp,%rbp; push %rbx; sub $0x28,%rsp; mov %rdi,%rbx; mov 0x10(%rbp),%rax; xorps %xmm1,%xmm1;
    /// movaps %xmm1,-0x20(%rbp); movq $0,-0x28(%rbp); movb $0,-0x30(%rbp); mov %rbx,-0x20(%rbp); mov %rsi,-0x18(%rbp);
    /// mov %rax,-0x28(%rbp); mov %dl,-0x30(%rbp); ret
    private let swift: [UInt8] = [
        0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x45, 0x10, 0x0f, 0x57, 0xc9,
        0x0f, 0x29, 0x4d, 0xe0, 0x48, 0xc7, 0x45, 0xd8, 0, 0, 0, 0, 0xc6, 0x45, 0xd0, 0, 0x48, 0x89, 0x5d, 0xe0,
        0x48, 0x89, 0x75, 0xe8, 0x48, 0x89, 0x45, 0xd8, 0x88, 0x55, 0xd0, 0xc3,
    ]
    /// sub sp, sp, #0x50; stp x29, x30, [sp, #64]; add x29, sp, #0x40; mov w8, w0; str x2, [sp]; add x0, sp, #8; str w8, [sp, #8];
    /// strb w1, [sp, #15]; str d0, [sp, #24]; and w3, w3, #1; sturb w3, [x29, #-25]; stur x4, [x29, #-24]; stur x5, [x29, #-16];
    /// stur s1, [x29, #-4]; ldr x2, [x29, #16]; bl; ldr x0, [sp]; str x0, [sp, #16]; ldp x29, x30, [sp, #64]; add sp, sp, #0x50; ret
    private let other: [UInt8] = [
        0xff, 0x43, 0x01, 0xd1, 0xfd, 0x7b, 0x04, 0xa9, 0xfd, 0x03, 0x01, 0x91, 0xe8, 0x03, 0x00, 0x2a, 0xe2, 0x03, 0x00, 0xf9,
        0xe0, 0x23, 0x00, 0x91, 0xe8, 0x0b, 0x00, 0xb9, 0xe1, 0x3f, 0x00, 0x39, 0xe0, 0x0f, 0x00, 0xfd, 0x63, 0x00, 0x00, 0x12,
        0xa3, 0x73, 0x1e, 0x38, 0xa4, 0x83, 0x1e, 0xf8, 0xa5, 0x03, 0x1f, 0xf8, 0xa1, 0xc3, 0x1f, 0xbc, 0xa2, 0x0b, 0x40, 0xf9,
        0x01, 0x00, 0x00, 0x94, 0xe0, 0x03, 0x40, 0xf9, 0xe0, 0x0b, 0x00, 0xf9, 0xfd, 0x7b, 0x44, 0xa9, 0xff, 0x43, 0x01, 0x91,
        0xc0, 0x03, 0x5f, 0xd6,
    ]

    private func function(
        _ parameters: [(SourceType, ParameterHome?)], _ language: SourceFunction.Language = .rust, result: SourceType? = nil,
        name: String = "own", isOptimized: Bool = false, isLocal: Bool = true
    ) -> SourceFunction {
        SourceFunction(
            name: name, isLocal: isLocal, address: 0x1000, language: language, compiler: .llvm, isOptimized: isOptimized,
            isPrototyped: true,
            convention: .standard,
            parameters: parameters.enumerated().map {
                SourceParameter(name: "p\($0)", type: $1.0, isArtificial: false, location: .none, home: $1.1)
            }, result: result ?? SourceType(.void, bytes: 0))
    }
    private func prototype(_ function: SourceFunction, _ code: [UInt8], _ machine: UInt16) throws -> Prototype {
        try code.withUnsafeBytes { code in
            do throws(PrototypeRefusal) { return try DebugPrototype(function, machine: machine, code: code).prototype } catch {
                throw error
            }
        }
    }
    /// Sources of the parameters as plans have them; nil: one is not known.
    private func sources(
        _ parameters: [(SourceType, ParameterHome?)], _ code: [UInt8], _ machine: UInt16, _ language: SourceFunction.Language = .rust,
        isOptimized: Bool = false
    ) throws -> [UInt8?] {
        // One that is known keeps the function from being refused.
        let all = parameters + [(int, machine == x86 ? .place(register: 7, offset: 0x40) : .place(register: 31, offset: 0x50))]
        let own = try prototype(function(all, language, isOptimized: isOptimized), code, machine)
        var operations = own.operations(on: machine).map(\.source)[...]
        return own.parameters.dropLast().map { $0.type == .unavailable ? nil : operations.popFirst() }
    }
    /// The same numbers each time (Knuth's linear congruential generator, MMIX).
    private struct Sequence: RandomNumberGenerator {
        var state: UInt64 = 7
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 33
        }
    }
    private func at(_ register: Int, _ offset: Int) -> ParameterHome { .place(register: register, offset: offset) }

    @Test func aPlaceHasWhatTheFirstInstructionsPutThere() throws {
        let places: [(SourceType, ParameterHome?)] = [
            (bool, at(7, 0x2f)), (int, at(7, 0x24)), (float, at(7, 0x20)), (long, at(7, 8)), (long, at(7, 0x10)), (long, at(7, 0x40)),
        ]
        #expect(try sources(places, rust, x86) == [0, 1, 0x40, 2, 3, 0x80])
    }

    @Test func aValueThatWasKeptDuringACallIsStillTheArgument() throws {
        #expect(try sources([(long, at(7, 0x18))], rust, x86) == [5])
        #expect(try sources([(long, at(31, 16))], other, arm) == [2])
    }

    @Test func whatIsNotAllOfTheArgumentIsNotKnown() throws {
        // One bit of a byte; four bytes of eight; a place that nothing is written to; the middle of one; another kind of register.
        let places: [(SourceType, ParameterHome?)] = [
            (byte, at(7, 0x2f)), (long, at(7, 0x24)), (int, at(7, 0x34)), (int, at(7, 12)), (float, at(7, 8)), (int, at(7, 0x20)),
            (int, nil),
        ]
        #expect(try sources(places, rust, x86) == Array(repeating: nil, count: places.count))
    }

    @Test func placesThatAreClearedFirstAreSwifts() throws {
        let places: [(SourceType, ParameterHome?)] = [
            (long, at(6, -0x20)), (long, at(6, -0x18)), (long, at(6, -0x28)), (byte, at(6, -0x30)),
        ]
        #expect(try sources(places, swift, x86, .swift) == [0, 1, 0x80, 2])
        #expect(try sources(places, swift, x86, .rust) == [nil, nil, nil, nil])
        #expect(try sources(places, swift, x86, .swift, isOptimized: true) == [nil, nil, nil, nil])
    }

    @Test func aarch64HasThemInTheSameWay() throws {
        let places: [(SourceType, ParameterHome?)] = [
            (int, at(31, 8)), (byte, at(31, 15)), (SourceType(.floatingPoint(isExtended: false), bytes: 8), at(31, 24)),
            (bool, at(29, -25)),
            (long, at(29, -24)), (long, at(29, -16)), (float, at(29, -4)), (byte, at(29, -25)), (long, at(29, 16)),
        ]
        #expect(try sources(places, other, arm) == [0, 1, 0x40, 3, 4, 5, 0x41, nil, 0x80])
    }

    @Test func aStringOfTwoWordsIsInWhatBothOfItsWordsGet() throws {
        var text = SourceType(.aggregate, bytes: 16, alignment: 8)
        text.text = .counted(pointer: 0, length: 8)
        let own = try prototype(function([(text, at(7, 8))]), rust, x86)
        #expect(own.operations(on: x86).map { [$0.source, $0.length_source] } == [[2, 3]])
        text.text = .swift
        let swifts = try prototype(function([(text, at(6, -0x20))], .swift), swift, x86)
        #expect(swifts.operations(on: x86).map { [$0.source, $0.length_source] } == [[0, 1]])
    }

    @Test func anAddressIsFollowed() throws {
        var text = SourceType(.aggregate, bytes: 24, alignment: 8)
        text.text = .counted(pointer: 8, length: 16)
        for home in [ParameterHome.address(register: 7, offset: 8), .held(register: 1, before: 4)] {
            let own = try prototype(function([(text, home)]), rust, x86)
            #expect(own.operations(on: x86).map { [Int($0.source), Int($0.step_count), Int($0.steps.0)] } == [[2, 1, 8]])
        }
        #expect(throws: PrototypeRefusal.unplaced) { try prototype(function([(text, .held(register: 1, before: 5))]), rust, x86) } // within one
        // After the call nothing is in the register any more.
        #expect(throws: PrototypeRefusal.unplaced) { try prototype(function([(text, .held(register: 1, before: 42))]), rust, x86) }
    }

    @Test func onlyAVariableOfSwiftIsPassedByItsAddress() throws {
        let home = ParameterHome.address(register: 6, offset: -0x20)
        #expect(try prototype(function([(long, home)], .swift), swift, x86).parameters.map(\.type) == [.pointer])
        var constant = long
        constant.isConstant = true
        #expect(throws: PrototypeRefusal.unplaced) { try prototype(function([(constant, home)], .swift), swift, x86) }
    }

    @Test func ofABoolOfSwiftOneBitCounts() throws {
        var own = bool
        own.isBit = true
        #expect(try prototype(function([(own, at(6, -0x30))], .swift), swift, x86).text == "own(p0: bit)")
        let recorded = try #require(RecordedPrototype(text: "f(a: bit) -> bit", machine: 62))
        for (byte, text) in [(0, "0"), (1, "1"), (255, "1"), (0xfe, "0")] as [(UInt8, String)] {
            #expect(recorded.arguments(RecordedValues(program: 1, bytes: [byte])).map(\.value.text) == [text])
            #expect(recorded.result(RecordedValues(program: 1, bytes: [byte]))?.value.text == text)
        }
        func tests(_ condition: String) throws -> [PlannedTest] { try recorded.tests(try CallCondition(condition), of: 0) }
        let isSet = try tests("f(a == 1)")
        #expect(try isSet == tests("f(a != 0)") && isSet == tests("f(a > 0)") && isSet != tests("f(a == 0)"))
        #expect(try tests("f(a >= 0)").isEmpty && tests("f(a == 255)") == tests("f(a > 1)"))
    }

    @Test func aResultIsKnownIfTheFunctionReturnsAsItIsDeclared() throws {
        func hasResult(_ language: SourceFunction.Language, _ name: String, _ isOptimized: Bool, _ isLocal: Bool) throws -> Bool {
            try prototype(
                function([], language, result: long, name: name, isOptimized: isOptimized, isLocal: isLocal), [], x86
            ).result != nil
        }
        #expect(try hasResult(.rust, "own", false, true) && hasResult(.rust, "own", true, false))
        #expect(try !hasResult(.rust, "own", true, true))
        for (name, isKnown) in [
            ("$s1a4taskyS2iF", true), ("$s1a4TaskV4propSivg", true), ("$s1a1CC4statyS2iFZ", true), ("$s1a4taskyS2iKF", false),
            ("$s1a4taskyS2iYKF", false), ("$s1a4taskyS2iKYTF", false), ("$s1a4taskyS2iYaF", false), ("$s1a3genyxxKlF", false),
            ("$s1a3genyxxlF", true), ("$s1a1SVSivM", false), ("$s1a4taskyS2iFTf4d_n", false), ("$s1a4taskyS2iFTW", false), ("own", false),
            ("$s1a3KeyyS2iF", true),
        ] { #expect(try hasResult(.swift, name, false, true) == isKnown, "\(name)") }
    }

    @Test func codeThatIsCutOrMadeOfAnythingEndsInNothing() throws {
        var random = Sequence()
        for machine in [x86, arm] {
            for _ in 0..<3000 {
                let code = (0..<Int.random(in: 0...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                let places: [(SourceType, ParameterHome?)] = [
                    (long, at(7, Int.random(in: -1000...1000, using: &random))), (long, .address(register: 31, offset: 1 << 29)),
                    (int, .held(register: -1, before: -5)), (int, at(400, .max)), (bool, .held(register: 1000, before: 0)),
                    (long, at(6, .min)),
                ]
                _ = try? prototype(function(places), code, machine)
                _ = try? prototype(function(places, .swift), rust.dropLast(Int.random(in: 0...50, using: &random)) + code, machine)
            }
        }
    }
}
