// Samples, each with its merged stack, as Perfetto has those of perf: tables perf_sample and stack_profile_callsite, and a flame graph of
// any time that is selected.
import Symbols
import TraceFormat

struct PerfettoSamples {
    private typealias Field = PerfettoField
    private let source: ExportSource

    init(_ source: ExportSource) { self.source = source }

    /// Behind those of threads, which count up from 1.
    private var sequence: UInt64 { 1 << 30 + UInt64(source.index) }
    private static let samplesOfPiece = 10_000

    func write(_ write: ([UInt8]) throws -> Void) throws {
        let trace = source.trace
        guard let stacks = SampleStacks(trace, SampleRecords(trace), Symbolizer(), workers: TraceFile.processorCount) else { return }
        var piece = ProtobufMessage(), names = StackNames()
        start(to: &piece)
        for (number, sample) in stacks.records.samples.enumerated() where trace.window.touches(sample.at, sample.at) {
            let functions = stacks.stack(number)
            let (stack, news) = names.stack(functions, stacks.functions)
            piece.packet(sequence: sequence, flags: Field.needsState) {
                $0.add(Field.Packet.timestamp, source.monotonic(sample.at))
                $0.add(Field.Packet.clock, Field.monotonicClock)
                if let news { $0.add(Field.Packet.internedData, news) }
                $0.add(Field.Packet.sample) {
                    $0.add(Field.Sample.pid, UInt64(source.pid))
                    $0.add(Field.Sample.tid, UInt64(sample.tid))
                    $0.add(Field.Sample.stack, stack)
                    $0.add(Field.Sample.mode, sample.isInKernel ? Field.inKernel : Field.inProgram)
                }
            }
            if number % Self.samplesOfPiece == 0 {
                try write(piece.bytes)
                piece = ProtobufMessage()
            }
        }
        try write(piece.bytes)
    }

    private func start(to message: inout ProtobufMessage) {
        message.packet(sequence: sequence, flags: Field.cleared) {
            $0.add(Field.Packet.defaults) {
                $0.add(Field.SampleDefaults.samples) {
                    $0.add(Field.SampleDefaults.timebase) {
                        if let period = source.trace.metadata.kernel?.period, period.count > 0 {
                            $0.add(Field.SampleDefaults.frequency, (1_000_000_000 + period.count / 2) / period.count)
                        }
                        $0.add(Field.SampleDefaults.name, "samples")
                    }
                }
            }
        }
    }
}

/// What a sequence has been told: modules, functions and stacks, each by a number from 1.
private struct StackNames {
    private typealias Field = PerfettoField
    private var modules: [String: UInt64] = [:]
    private var functions: Set<Int> = []
    private var stacks: [[Int]: UInt64] = [:]

    /// - Returns: the stack's number; what is to be told before it is used, nil if nothing
    mutating func stack(_ stack: [Int], _ all: [CallTree.Function]) -> (UInt64, [UInt8]?) {
        if let known = stacks[stack] { return (known, nil) }
        let number = UInt64(stacks.count) + 1
        stacks[stack] = number
        var news = ProtobufMessage()
        for index in stack where functions.insert(index).inserted { tell(index, all[index], to: &news) }
        news.add(Field.Interned.stacks) {
            $0.add(Field.Stack.id, number)
            for index in stack { $0.add(Field.Stack.frames, Self.number(index)) }
        }
        return (number, news.bytes)
    }

    private static func number(_ index: Int) -> UInt64 { UInt64(index) + 1 }

    /// A frame is a function: where in it the sample was, its stack does not keep.
    private mutating func tell(_ index: Int, _ function: CallTree.Function, to news: inout ProtobufMessage) {
        let known = modules[function.module], module = known ?? UInt64(modules.count) + 1
        if known == nil {
            modules[function.module] = module
            news.add(Field.Interned.paths) {
                $0.add(Field.InternedString.id, module)
                $0.add(Field.InternedString.text, function.module)
            }
            news.add(Field.Interned.mappings) {
                $0.add(Field.Mapping.id, module)
                $0.add(Field.Mapping.path, module)
            }
        }
        news.add(Field.Interned.functions) {
            $0.add(Field.InternedString.id, Self.number(index))
            $0.add(Field.InternedString.text, function.name)
        }
        news.add(Field.Interned.frames) {
            $0.add(Field.StackFrame.id, Self.number(index))
            $0.add(Field.StackFrame.function, Self.number(index))
            $0.add(Field.StackFrame.mapping, module)
        }
    }
}
