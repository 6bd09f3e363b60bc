// Kernel records: their bytes, and the process image that they belong to.
import CRecorder
import CTraceLayout
import Glibc
import Recorder
import Testing
import Unwinding

/// The ring of CPU 3.
private var ring: recorder_ring {
    var ring = recorder_ring()
    ring.cpu = 3
    return ring
}

/// A record as the kernel writes it: header, body, and what sample_id_all adds after it.
private struct RecordBytes {
    var bytes: [UInt8] = []

    init(type: UInt32, flags: UInt16 = 0, _ body: [UInt8], pid: Int32 = 7, tid: Int32 = 8, time: UInt64 = 1000) {
        var trailer: [UInt8] = []
        trailer.add(UInt32(bitPattern: pid))
        trailer.add(UInt32(bitPattern: tid))
        trailer.add(time)
        bytes.add(type)
        bytes.add(flags)
        bytes.add(UInt16(8 + body.count + trailer.count))
        bytes += body + trailer
    }

    func read() -> (KernelRecord, KernelRecord.Origin)? { bytes.withUnsafeBytes { KernelRecord.read($0, ring)?.record } }
}

extension [UInt8] {
    fileprivate mutating func add<T: FixedWidthInteger>(_ value: T) {
        Swift.withUnsafeBytes(of: value.littleEndian) { self.append(contentsOf: $0) }
    }
}

@Suite struct KernelRecordTests {
    @Test func aSwitchShowsWhetherTheThreadCouldHaveGoneOn() throws {
        for (flags, kind) in [(0, TRACE_SWITCH_IN), (1 << 13, TRACE_SWITCH_WAITS), (3 << 13, TRACE_SWITCH_PREEMPTED)] {
            let bytes = RecordBytes(type: 14, flags: UInt16(flags), []).bytes
            let (found, origin) = try #require(bytes.withUnsafeBytes { KernelRecord.readSwitch($0, ring) })
            #expect(Int(found) == kind)
            #expect(origin.pid == 7 && origin.tid == 8 && origin.nanoseconds == 1000 && origin.cpu == 3)
        }
    }

    @Test func aMappingHasItsOffsetInTheFile() throws {
        var body: [UInt8] = []
        for half in [7, 8] as [UInt32] { body.add(half) }
        for word in [0x1000, 0x3000, 0x2000] as [UInt64] { body.add(word) }
        body += [UInt8](repeating: 0, count: 32) + Array("/lib/x.so\0\0\0\0\0\0\0".utf8)
        let (record, _) = try #require(RecordBytes(type: 10, body).read())
        guard case .mapped(let mapping) = record else { throw Unexpected() }
        #expect(mapping.addresses == 0x1000..<0x4000 && mapping.offset == 0x2000 && mapping.path == "/lib/x.so")
    }

    /// instruction; pid, tid; time; address; and what the event that it is of has asked for besides.
    private func sample(_ more: [UInt64], hasKernelStacks: Bool = false) -> (KernelRecord, KernelRecord.Origin)? {
        var source = ring
        source.has_kernel_stacks = hasKernelStacks ? 1 : 0
        var bytes: [UInt8] = []
        bytes.add(UInt32(9))
        bytes.add(UInt16(0))
        bytes.add(UInt16(8 + 32 + more.count * 8))
        bytes.add(UInt64(0x401000))
        for half in [7, 8] as [UInt32] { bytes.add(half) }
        for word in [2000, 0x5000] + more { bytes.add(word) }
        return bytes.withUnsafeBytes { KernelRecord.read($0, source)?.record }
    }

    @Test func aSampleOfTheFaultEventIsAFault() throws {
        let (record, origin) = try #require(sample([]))
        guard case .fault(let address, let code, let isMajor) = record else { throw Unexpected() }
        #expect(isMajor && address == 0x5000 && code == 0x401000)
        #expect(origin.pid == 7 && origin.tid == 8 && origin.nanoseconds == 2000 && origin.cpu == 3)
    }

    @Test func aSampleWithItsPeriodIsAMinorFault() throws {
        let (record, _) = try #require(sample([1]))
        guard case .fault(0x5000, 0x401000, isMajor: false) = record else { throw Unexpected() }
    }

    @Test func aSampleOfAThreadWithoutRegistersHasAnEmptyStack() throws {
        let (record, _) = try #require(sample([0, 0])) // PERF_SAMPLE_REGS_ABI_NONE; no bytes
        guard case .sample(let stack) = record else { throw Unexpected() }
        #expect(stack.registers.isEmpty && stack.bytes.isEmpty)
    }

    @Test func aStackIsWhatThereWasOfIt() throws {
        let registers = (0..<SampleUnwinder.registerMask.nonzeroBitCount).map { UInt64($0 + 100) }
        let (record, _) = try #require(sample([2] + registers + [16, 0x0807060504030201, 0, 8]))
        guard case .sample(let stack) = record else { throw Unexpected() }
        #expect(stack.registers == registers && stack.bytes == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test func theStackOfTheKernelComesFirst() throws {
        let registers = (0..<SampleUnwinder.registerMask.nonzeroBitCount).map { UInt64($0 + 100) }
        let context = UInt64(bitPattern: -128) // PERF_CONTEXT_KERNEL
        for (chain, kernel) in [([0], []), ([1, context], []), ([3, context, 1 << 63 | 7, 1 << 63 | 8], [1 << 63 | 7, 1 << 63 | 8])]
            as [([UInt64], [UInt64])]
        {
            let more = chain + [2] + registers + [16, 0x0807060504030201, 0, 8]
            let (record, _) = try #require(sample(more, hasKernelStacks: true))
            guard case .sample(let stack) = record else { throw Unexpected() }
            #expect(stack.kernel == kernel && stack.registers == registers && stack.bytes == [1, 2, 3, 4, 5, 6, 7, 8])
        }
        #expect(sample([3, context, 1 << 63 | 7, 0], hasKernelStacks: true) == nil) // more addresses than there are
        #expect(sample([.max, 0], hasKernelStacks: true) == nil)
    }

    /// Nothing is read that is not there, whatever the bytes say.
    @Test func recordsThatAreCutOrContradictThemselvesAreLeft() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...96, using: &random)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            if count >= 8 {
                bytes[0] = UInt8.random(in: 0...16, using: &random)
                bytes.replaceSubrange(1..<4, with: [0, 0, 0])
                bytes[6] = UInt8(count - Int.random(in: 0...1, using: &random))
                bytes[7] = 0
            }
            bytes.withUnsafeBytes {
                var source = ring
                source.has_kernel_stacks = Int32(count & 1)
                _ = KernelRecord.readSwitch($0, source)
                _ = KernelRecord.read($0, source)
            }
        }
    }
}

private struct Unexpected: Error {}

@Suite struct KernelSymbolTests {
    private func symbols(_ lines: String...) -> KernelSymbols? { KernelSymbols(Array(lines.joined(separator: "\n").utf8)) }

    @Test func anAddressIsInTheFunctionThatBeginsBeforeIt() throws {
        let found = try #require(
            symbols(
                "ffffffff81001000 T vfs_read", "ffffffff81000000 T _stext", "ffffffff81000000 T _text", "ffffffff81000800 d some_data",
                "ffffffffc0000000 t ext4_readahead\t[ext4]", "0000000000001000 A fixed_percpu_data", ""))
        let functions = found.functions(
            holding: [0xffff_ffff_8100_0900, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_1010, 0xffff_ffff_c000_0004, 0xffff_ffff_9000_0000])
        #expect(functions.map { String(decoding: $0.name, as: UTF8.self) } == ["_stext", "vfs_read", "ext4_readahead"])
        #expect(functions.first.map { [$0.start, $0.end] } == [0xffff_ffff_8100_0000, 0xffff_ffff_8100_1000])
    }

    @Test func addressesThatAreHiddenTellNothing() {
        #expect(symbols("0000000000000000 T _stext", "0000000000000000 T vfs_read") == nil)
        #expect(symbols("") == nil && symbols("ffffffff81001000", "nonsense", "ffffffff81001000 T") == nil)
    }
}

@Suite struct MappedFilesTests {
    @Test func whatIsMappedOverAnotherTakesItsPlaceAlone() {
        var files = MappedFiles()
        files.add(.init(addresses: 0x1000..<0x9000, offset: 0, path: "/a"))
        files.add(.init(addresses: 0x3000..<0x5000, offset: 0x100000, path: "/b"))
        #expect(files.fileOffset(of: 0x1010).map { [$0.path, String($0.offset)] } == ["/a", String(0x10)])
        #expect(files.fileOffset(of: 0x3010).map { [$0.path, String($0.offset)] } == ["/b", String(0x100010)])
        #expect(files.fileOffset(of: 0x5010).map { [$0.path, String($0.offset)] } == ["/a", String(0x4010)])
        #expect(files.fileOffset(of: 0x9000) == nil)
        files.add(.init(addresses: 0x2000..<0x20000, offset: 0, path: "//anon"))
        #expect(files.fileOffset(of: 0x3010) == nil)
        #expect(files.fileOffset(of: 0x1fff)?.offset == 0xfff)
        #expect(files.fileOffset(of: 0) == nil)
    }
}

@Suite struct KernelHistoryTests {
    private let spool = KernelSpool(directory: "/nonexistent")
    private var storage: KernelStorage { KernelStorage(spool: spool, mostBytes: .max, keepsEnd: false) }

    private func origin(_ pid: pid_t, _ tid: pid_t? = nil, at time: UInt64) -> KernelRecord.Origin {
        .init(pid: pid, tid: tid ?? pid, nanoseconds: time, cpu: 0)
    }

    /// Keys and thread ids of the TASK records of an image.
    private func tasks(_ image: ImageHistory?) -> [String] {
        (image?.blocks ?? []).flatMap { block -> [String] in
            let bytes = spool.read(block) ?? []
            var found: [String] = [], at = 0
            while at + 8 <= bytes.count {
                let (type, key, count) = bytes.withUnsafeBytes {
                    (
                        $0.loadUnaligned(fromByteOffset: at, as: UInt16.self), $0.loadUnaligned(fromByteOffset: at + 2, as: UInt16.self),
                        Int($0.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self))
                    )
                }
                if Int(type) == TRACE_RECORD_TASK {
                    found.append("\(["began", "ended", "named", "executed"][Int(key) - 1]) \(bytes[at + 16])")
                }
                at += count
            }
            return found
        }
    }

    @Test func execBeginsAnotherImageAndAForkAnotherProcess() {
        var history = KernelHistory(root: 5, storage)
        history.add(.named("a", isExec: true), origin(5, at: 10))
        history.add(.began(child: 6, of: 5, by: 5), origin(5, 6, at: 20)) // a thread
        history.add(.began(child: 9, of: 5, by: 6), origin(9, at: 30)) // a process
        history.add(.named("b", isExec: true), origin(9, at: 40))
        history.add(.ended, origin(5, 6, at: 50))
        history.add(.ended, origin(9, at: 60))
        let images = history.end()
        #expect(images[5]?.map(\.begun) == [0, 10])
        #expect(tasks(images[5]?.last) == ["named 5", "began 6", "ended 6"])
        #expect(images[9]?.map(\.begun) == [30, 40])
        #expect(tasks(images[9]?.last) == ["named 9", "ended 9"])
        #expect(tasks(images[9]?.first) == ["began 9", "executed 9"])
        #expect(images[9]?.first?.ended == 40)
        #expect(images[9]?.last?.ended == 60)
    }

    @Test func aTaskOfTheAgentBesideTheProgramBelongsToIt() {
        var history = KernelHistory(root: 5, storage)
        for task in [8, 9] as [pid_t] {
            history.add(.began(child: task, of: 5, by: 6), origin(task, at: 10))
            history.add(.named(TRACE_AGENT_TASK, isExec: false), origin(task, at: 20))
            history.add(switched: UInt16(TRACE_SWITCH_WAITS), origin(task, at: 25))
            if task == 8 { history.add(.ended, origin(task, at: 30)) }
        }
        history.add(.began(child: 7, of: 5, by: 5), origin(7, at: 40))
        history.add(.named("child", isExec: false), origin(7, at: 50))
        history.add(.ended, origin(5, at: 60))
        history.add(.ended, origin(9, at: 70))
        let images = history.end()
        #expect(Set(images.keys) == [5, 7])
        #expect(tasks(images[5]?.last) == ["began 8", "named 8", "ended 8", "began 9", "named 9", "ended 5", "ended 9"])
        #expect(images[5]?.count == 1 && images[5]?.last?.ended == 70)
        #expect(tasks(images[7]?.last) == ["began 7", "named 7"])
    }

    @Test func aTaskOfTheAgentThatIsAThreadLeavesItsProcessWhereItIs() {
        var history = KernelHistory(root: 5, storage)
        history.add(.began(child: 7, of: 5, by: 5), origin(7, at: 10)) // a child, whose tasks are threads
        history.add(.began(child: 8, of: 7, by: 7), origin(7, 8, at: 20))
        history.add(.named(TRACE_AGENT_TASK, isExec: false), origin(7, 8, at: 30))
        history.add(.ended, origin(7, 8, at: 40))
        history.add(.ended, origin(7, at: 50))
        let images = history.end()
        #expect(tasks(images[7]?.last) == ["began 7", "began 8", "named 8", "ended 8", "ended 7"])
        #expect(tasks(images[5]?.last) == [])
    }

    @Test func aProcessThatWasThereBeforeHasItsThreadsAndTheirNames() throws {
        let me = getpid(), history = KernelHistory(root: me, begun: 100, threads: [me], storage)
        var changing = history
        changing.add(switched: UInt16(TRACE_SWITCH_WAITS), origin(me, at: 110))
        let found = changing.image(of: me, at: 105), early = changing.image(of: me, at: 99), image = try #require(found)
        #expect(image.begun == 100 && tasks(image).count == 1 && tasks(image)[0].hasPrefix("named "))
        let images = changing.end()
        #expect((early.map { _ in false } ?? true) && images[me]?.count == 1)
    }

    @Test func anExcerptHasWhatLastsAndWhatWasSince() throws {
        var history = KernelHistory(root: 5, storage)
        history.add(.named("a", isExec: true), origin(5, at: 10))
        history.add(switched: UInt16(TRACE_SWITCH_WAITS), origin(5, at: 20))
        let early = history.image(of: 5, at: 15), first = try #require(early), between = clockTime()
        history.add(switched: UInt16(TRACE_SWITCH_IN), origin(5, at: 30))
        history.add(.began(child: 6, of: 5, by: 5), origin(5, 6, at: 40))
        let late = history.image(of: 5, at: 15), image = try #require(late)
        #expect(first.blocks.count == 1 && image.blocks.count == 2)
        func kinds(since: UInt64) -> [Int] {
            KernelExcerpt(image, since: since, until: 50, trace_kernel_record(), spool).chunks.dropFirst().flatMap { bytes -> [Int] in
                var found: [Int] = [], at = 0
                while at < bytes.count {
                    let record = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: trace_record.self) }
                    found.append(Int(record.type))
                    at += Int(record.byte_count)
                }
                return found
            }
        }
        #expect(kinds(since: 0).sorted() == [TRACE_RECORD_TASK, TRACE_RECORD_TASK, TRACE_RECORD_SWITCHES, TRACE_RECORD_SWITCHES].sorted())
        #expect(kinds(since: between).sorted() == [TRACE_RECORD_TASK, TRACE_RECORD_TASK, TRACE_RECORD_SWITCHES].sorted())
    }

    @Test func aProcessIdMayBeUsedAgain() {
        var history = KernelHistory(root: 5, storage)
        for time in [10, 30] as [UInt64] {
            history.add(.began(child: 9, of: 5, by: 5), origin(9, at: time))
            history.add(.ended, origin(9, at: time + 5))
        }
        let account = KernelAccount(
            grant: .init(asked: 1, granted: 1, error: 0), paranoid: nil, lost: 0, images: history.end(), spool: spool)
        #expect(account.image(of: 9, at: 12)?.begun == 10)
        #expect(account.image(of: 9, at: 31)?.begun == 30)
        #expect(account.image(of: 8, at: 31) == nil)
    }

    @Test func ofALimitedTraceTheBeginningIsKeptAndOfARingTheEnd() {
        for keepsEnd in [false, true] {
            var history = KernelHistory(root: 5, KernelStorage(spool: spool, mostBytes: 1 << 20, keepsEnd: keepsEnd))
            for n in 0..<200_000 as Range<UInt64> { history.add(switched: UInt16(1 + n % 2), origin(5, at: n)) }
            let image = history.end()[5]?.last
            let bytes = (image?.blocks ?? []).flatMap { spool.read($0) ?? [] }
            #expect(bytes.count <= 1 << 20 && bytes.count > 1 << 19)
            let first = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
            #expect(keepsEnd ? first > 100_000 : first == 0)
            #expect(keepsEnd || image?.left ?? 0 > 0)
        }
    }

    @Test func whatDoesNotFitIntoMemoryGoesToAFileWithoutAName() {
        let directory = Scratch()
        let spool = KernelSpool(directory: directory.path)
        let blocks = (0..<80).compactMap { spool.keep([UInt8](repeating: UInt8($0), count: 1 << 20)) }
        #expect(blocks.count == 80)
        #expect(blocks.enumerated().allSatisfy { spool.read($0.element) == [UInt8](repeating: UInt8($0.offset), count: 1 << 20) })
        #expect(RunDirectory.names(in: directory.path) == [])
    }
}
