// Programs that processes of a run have executed and that left no trace in it: found when the run has ended, and written into one of its
// traces.
import CTraceLayout
import Glibc

package struct UnrecordedPrograms {
    package private(set) var all: [UnrecordedProgram]

    /// Beyond these, those of one name and one reason have a record together.
    private static let mostRecords = 1000

    package struct Run {
        let traces: [SessionFiles.Entry]
        /// Names of all files that may be the run's, also those of other users, which cannot be read.
        let names: Set<String>
        let root: pid_t
        let recordsChildren: Bool

        package init(traces: [SessionFiles.Entry], names: Set<String>, root: pid_t, recordsChildren: Bool = true) {
            (self.traces, self.names, self.root, self.recordsChildren) = (traces, names, root, recordsChildren)
        }
    }

    /// Finds the programs of a run of which the kernel reported each exec.
    package init(_ images: [pid_t: [ImageHistory]], lost: UInt64, in run: Run) {
        let namespace = ProcessStatus.ownNamespace
        let beginnings = Dictionary(grouping: run.traces.filter { $0.namespace == namespace && namespace != 0 }, by: \.pid)
        all = []
        for (pid, images) in images where run.recordsChildren || pid == run.root {
            for (index, image) in images.enumerated() {
                guard let program = image.program else { continue }
                // Not up to its end: the kernel ends its reports, not the process, when that gets other rights.
                let next = index + 1 < images.count ? images[index + 1].begun : UInt64.max
                let hasTrace =
                    beginnings[UInt32(bitPattern: pid)]?.contains { $0.begun >= image.begun && $0.begun < next } == true
                    || program.outputs.contains(where: run.names.contains)
                guard !hasTrace, let reason = program.reasonUnrecorded(hasEnded: image.ended != nil, isAllSeen: lost == 0) else { continue }
                let path = program.path.isEmpty ? program.name : program.path
                all.append(UnrecordedProgram(pid: pid, parent: image.parent, at: image.begun, path: path, reason: reason))
            }
        }
        sort()
    }

    /// Takes the programs that were seen in /proc.
    package init(seen: [UnrecordedProgram], in run: Run) {
        all = seen.filter { run.recordsChildren || $0.pid == run.root }
        sort()
    }

    private mutating func sort() { all.sort { ($0.at, $0.pid) < ($1.at, $1.pid) } }

    /// As TRACE_RECORD_UNRECORDED has them, one after the other.
    package var records: [UInt8] {
        struct Kind: Hashable {
            var path: String
            var reason: Int
        }
        var bytes: [UInt8] = [], indices: [Kind: Int] = [:], rest: [(first: UnrecordedProgram, count: UInt32)] = []
        for (number, program) in all.enumerated() {
            if number < Self.mostRecords {
                bytes += Self.record(program, count: 1)
            } else if let index = indices[Kind(path: program.path, reason: program.reason)] {
                rest[index].count += 1
            } else {
                indices[Kind(path: program.path, reason: program.reason)] = rest.count
                rest.append((program, 1))
            }
        }
        return rest.reduce(into: bytes) { $0 += Self.record($1.first, count: $1.count) }
    }

    private static func record(_ program: UnrecordedProgram, count: UInt32) -> [UInt8] {
        let path = Array(program.path.utf8), size = MemoryLayout<trace_unrecorded_record>.size, byteCount = (size + path.count + 7) & ~7
        let record = trace_unrecorded_record(
            record: trace_record(
                type: UInt16(TRACE_RECORD_UNRECORDED), key: UInt16(program.reason), byte_count: UInt32(byteCount)),
            ns: program.at, pid: UInt32(bitPattern: program.pid), parent: UInt32(bitPattern: program.parent), count: count,
            path_bytes: UInt32(path.count))
        return withUnsafeBytes(of: record) { Array($0) } + path + [UInt8](repeating: 0, count: byteCount - size - path.count)
    }
}
