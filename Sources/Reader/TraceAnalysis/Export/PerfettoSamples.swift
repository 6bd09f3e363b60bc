// Samples, each with its merged stack, as Perfetto has those of perf: tables perf_sample and stack_profile_callsite, and a flame graph of
// any time that is selected.
import Symbols
import TraceFormat

struct PerfettoSamples {
    private typealias Field = PerfettoField
    private let source: ExportSource

    init(_ source: ExportSource) { self.source = source }

    /// Packet sequence of the samples, above those of the process events (1) and of threads (2 and up).
    private var sequence: UInt64 { 1 << 30 + UInt64(source.index) }

    func write(_ write: ([UInt8]) throws -> Void, _ symbolizer: Symbolizer) throws {
        let stacks = SampledStacks(source.trace, symbolizer)
        guard let tree = stacks.tree else { return }
        var piece = ProtobufMessage(), names = StackNames(tree)
        start(to: &piece)
        for sample in stacks.samples {
            let (tid, news) = names.introduce(sample.node)
            piece.packet(sequence: sequence, flags: Field.needsState) {
                $0.time(source.monotonic(sample.at))
                if let news { $0.add(Field.Packet.internedData, news) }
                $0.add(Field.Packet.sample) {
                    $0.add(Field.Sample.pid, UInt64(source.pid))
                    $0.add(Field.Sample.tid, UInt64(tid))
                    $0.add(Field.Sample.stack, StackNames.number(sample.node))
                }
            }
            try piece.flush(to: write)
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

/// Modules, functions and stacks that a sequence has been given, each by a number from 1. A node of the tree is a stack.
private struct StackNames {
    private typealias Field = PerfettoField
    private let tree: CallTree
    private let tids: [Int: UInt32]
    private var modules: [String: UInt64] = [:]
    private var functions: Set<Int> = []
    private var stacks: [Int: UInt32] = [:]

    init(_ tree: CallTree) {
        self.tree = tree
        tids = Dictionary(tree.roots.map { ($0.node, $0.tid ?? 0) }, uniquingKeysWith: { first, _ in first })
    }

    static func number(_ index: Int) -> UInt64 { UInt64(index) + 1 }

    /// - Returns: the thread's id; what is to be written before the stack is used, nil if nothing
    mutating func introduce(_ node: Int) -> (tid: UInt32, [UInt8]?) {
        if let known = stacks[node] { return (known, nil) }
        var path: [Int] = [], current = node
        while tids[current] == nil, tree.nodes[current].parent >= 0 {
            path.append(tree.nodes[current].function)
            current = tree.nodes[current].parent
        }
        var news = ProtobufMessage()
        for index in path where functions.insert(index).inserted { introduce(index, tree.functions[index], to: &news) }
        news.add(Field.Interned.stacks) {
            $0.add(Field.Stack.id, Self.number(node))
            for index in path.reversed() { $0.add(Field.Stack.frames, Self.number(index)) }
        }
        let tid = tids[current] ?? 0
        stacks[node] = tid
        return (tid, news.bytes)
    }

    /// A frame is a function: the stack does not keep where in it the sample was.
    private mutating func introduce(_ index: Int, _ function: CallTree.Function, to news: inout ProtobufMessage) {
        let known = modules[function.module], module = known ?? UInt64(modules.count) + 1
        if known == nil {
            modules[function.module] = module
            news.interned(Field.Interned.paths, module, function.module)
            news.add(Field.Interned.mappings) {
                $0.add(Field.Mapping.id, module)
                $0.add(Field.Mapping.path, module)
            }
        }
        news.interned(Field.Interned.functions, Self.number(index), function.name)
        news.add(Field.Interned.frames) {
            $0.add(Field.StackFrame.id, Self.number(index))
            $0.add(Field.StackFrame.function, Self.number(index))
            $0.add(Field.StackFrame.mapping, module)
        }
    }
}
