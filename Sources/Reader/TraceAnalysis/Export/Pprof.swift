// pprof's profile.proto, gzipped: https://github.com/google/pprof/blob/main/proto/profile.proto. A sample is a path with
// two values: calls and nanoseconds of self time; and with those by state, where they are known. A location is a function: traces know no lines.
import CTraceLayout
import ELF
import Presentation

struct PprofExport {
    private enum Field {
        enum Profile {
            static let sampleType = 1, sample = 2, mapping = 3, location = 4, function = 5, strings = 6, time = 9
            static let duration = 10, comment = 13, defaultSampleType = 14
        }
        enum ValueType { static let type = 1, unit = 2 }
        enum Sample { static let locations = 1, values = 2, labels = 3 }
        enum Label { static let key = 1, text = 2, number = 3 }
        enum Mapping { static let id = 1, start = 2, limit = 3, file = 5, buildID = 6, hasFunctions = 7 }
        enum Location { static let id = 1, mapping = 2, line = 4 }
        enum Line { static let function = 1 }
        enum Function { static let id = 1, name = 2, symbol = 3 }
    }

    private var strings: [String] = [""]
    private var numbers: [String: UInt64] = ["": 0]
    private var profile = ProtobufMessage()

    private mutating func string(_ text: String) -> UInt64 {
        if let number = numbers[text] { return number }
        numbers[text] = UInt64(strings.count)
        strings.append(text)
        return UInt64(strings.count - 1)
    }

    enum Measure {
        /// `states`: the time that is shown first, where times by state are there too.
        case calls(states: CallTime?)
        /// `period`: nanoseconds of each sample; 0 unknown.
        case samples(period: UInt64)

        var types: [(name: String, unit: String)] {
            switch self {
            case .calls(let states):
                [("calls", "count"), ("time", "nanoseconds")]
                    + (states == nil ? [] : ["running", "waiting", "runnable"].map { ($0, "nanoseconds") })
            case .samples: [("samples", "count"), ("cpu", "nanoseconds")]
            }
        }
        /// The one that is shown first.
        var shown: String {
            if case .calls(let states?) = self, states != .wall { return states.rawValue }
            return types[1].name
        }
        func values(_ node: CallTree.Node) -> [UInt64] {
            switch self {
            case .calls(let states):
                if states == nil { return [node.calls, UInt64(bitPattern: node.selfTime)] }
                let own = node.states.selfTime
                return [node.calls] + [own.whole, own.running, own.waiting, own.runnable].map { UInt64(bitPattern: $0) }
            case .samples(let period): return [node.calls, node.calls &* period]
            }
        }
    }

    static func write(
        _ tree: CallTree, _ sources: [ExportSource], _ measure: Measure, to output: ([UInt8]) throws -> Void
    ) throws {
        var export = PprofExport()
        let tree = tree.shortened()
        export.describe(sources, measure)
        export.add(tree, measure, mappings: export.mappings(sources))
        for text in export.strings { export.profile.add(Field.Profile.strings, text) }
        try output(Compressor(level: 6).gzip(export.profile.bytes))
    }

    private mutating func describe(_ sources: [ExportSource], _ measure: Measure) {
        for (type, unit) in measure.types {
            let (type, unit) = (string(type), string(unit))
            profile.add(Field.Profile.sampleType) {
                $0.add(Field.ValueType.type, type)
                $0.add(Field.ValueType.unit, unit)
            }
        }
        profile.add(Field.Profile.defaultSampleType, string(measure.shown))
        guard let first = sources.min(by: { $0.trace.header.first.monotonic_ns < $1.trace.header.first.monotonic_ns }) else { return }
        profile.add(Field.Profile.time, first.trace.header.first_realtime_ns)
        let end = sources.map { $0.monotonic($0.end.raw) }.max() ?? 0
        profile.add(Field.Profile.duration, end &- sources.origin)
        for source in sources { profile.add(Field.Profile.comment, string(source.trace.commandLine)) }
    }

    /// Adds a mapping for each module, numbered from 1; 0 is none. Returns the numbers by module name.
    private mutating func mappings(_ sources: [ExportSource]) -> [String: UInt64] {
        var ids: [String: UInt64] = [:]
        for source in sources {
            for module in source.trace.sortedModules where ids[module.name] == nil {
                let id = UInt64(ids.count + 1)
                ids[module.name] = id
                let (file, buildID) = (string(module.path), string(hexadecimal(module.buildID)))
                profile.add(Field.Profile.mapping) {
                    $0.add(Field.Mapping.id, id)
                    $0.add(Field.Mapping.start, module.addresses.lowerBound)
                    $0.add(Field.Mapping.limit, module.addresses.upperBound)
                    $0.add(Field.Mapping.file, file)
                    $0.add(Field.Mapping.buildID, buildID)
                    $0.add(Field.Mapping.hasFunctions, 1)
                }
            }
        }
        return ids
    }

    private mutating func add(_ tree: CallTree, _ measure: Measure, mappings: [String: UInt64]) {
        for (index, function) in tree.functions.enumerated() {
            let id = UInt64(index + 1)
            let (name, symbol) = (string(function.name), string(function.symbol))
            profile.add(Field.Profile.function) {
                $0.add(Field.Function.id, id)
                $0.add(Field.Function.name, name)
                $0.add(Field.Function.symbol, symbol)
            }
            profile.add(Field.Profile.location) {
                $0.add(Field.Location.id, id)
                if let mapping = mappings[function.module] { $0.add(Field.Location.mapping, mapping) }
                $0.add(Field.Location.line) { $0.add(Field.Line.function, id) }
            }
        }
        let thread = string("thread"), process = string("process"), tid = string("tid")
        for root in tree.roots {
            let name = string(root.name)
            let program = string(root.process.map { tree.processes[$0].name } ?? "")
            var path: [UInt64] = []
            var ends: [Int] = []
            for index in root.node + 1..<max(tree.nodes[root.node].end, root.node + 1) {
                let node = tree.nodes[index]
                while let end = ends.last, end <= index {
                    ends.removeLast()
                    path.removeLast()
                }
                ends.append(node.end)
                path.append(UInt64(node.function + 1))
                guard node.calls != 0 || node.selfTime != 0 else { continue }
                profile.add(Field.Profile.sample) {
                    $0.add(Field.Sample.locations, packed: path.reversed())
                    $0.add(Field.Sample.values, packed: measure.values(node))
                    for (key, text) in [(process, program), (thread, name)] {
                        $0.add(Field.Sample.labels) {
                            $0.add(Field.Label.key, key)
                            $0.add(Field.Label.text, text)
                        }
                    }
                    if let number = root.tid {
                        $0.add(Field.Sample.labels) {
                            $0.add(Field.Label.key, tid)
                            $0.add(Field.Label.number, UInt64(number))
                        }
                    }
                }
            }
        }
    }
}
