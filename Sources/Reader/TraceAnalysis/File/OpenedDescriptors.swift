// Descriptors as the calls that made them left them: what the agent recorded when those returned.
import CTraceLayout
import ELF
import TraceFormat

struct OpenedDescriptors: Sendable, RecordReader {
    struct Opened: Sendable {
        /// The call returned.
        var at: UInt64
        var number: Int32
        /// The other one that the call made; nil: it made one.
        var pair: Int32?
        var isReadable: Bool, isWritable: Bool
        /// A pipe, with a name or without.
        var isPipe: Bool
        /// As /proc/self/fd shows it; empty: unknown.
        var object: String
        /// Address of its FILE or DIR, as much of it as events have; 0: none.
        var stream: UInt64
    }

    /// In the order of time.
    private(set) var all: [Opened] = []
    /// Indices of those that have a FILE or a DIR, by its address.
    private var ofStream: [UInt64: [Int]] = [:]
    var damagedRecords = 0
    private let trace: TraceFile

    private static let longestText = 4096

    init(_ trace: TraceFile) {
        self.trace = trace
        readRecords(of: trace.file, trace.metadataChunks)
        all.sort { $0.at < $1.at }
        for index in all.indices where all[index].stream != 0 { ofStream[all[index].stream, default: []].append(index) }
    }

    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        guard Int(record.type) == TRACE_RECORD_OPENED else { return }
        let fixed = try body(trace_opened_record.self, buffer, offset, byteCount), key = Int(record.key)
        let object = printable(try tail(fixed, fixed.object_bytes, buffer, offset, byteCount, Self.longestText))
        all.append(
            Opened(
                at: trace.timeScale.even(fixed.ticks), number: fixed.descriptor, pair: fixed.pair < 0 ? nil : fixed.pair,
                isReadable: key & TRACE_ACCESS_READ != 0, isWritable: key & TRACE_ACCESS_WRITE != 0, isPipe: key & TRACE_OPENED_PIPE != 0,
                object: object, stream: fixed.stream & (1 << UInt64(CONTROL_PAYLOAD_BITS) - 1)))
    }

    /// The descriptor of the FILE or DIR at this address, by the last call before that moment that made one there; nil unknown.
    func number(ofStream address: UInt64, at moment: UInt64) -> Int32? {
        guard let indices = ofStream[address] else { return nil }
        let next = bisect(indices.count) { all[indices[$0]].at <= moment }
        return next > 0 ? all[indices[next - 1]].number : nil
    }

    /// As the recorder would have found them. The peer of a socket is known where one call made both.
    var descriptors: [KernelRecords.Descriptor] {
        all.indices.map { index in
            let one = all[index]
            let pair = all[max(0, index - 1)...min(index + 1, all.count - 1)].first { $0.at == one.at && $0.number == one.pair }
            return KernelRecords.Descriptor(
                at: one.at, number: one.number, isReadable: one.isReadable, isWritable: one.isWritable, object: one.object,
                peer: one.object.hasPrefix("socket:[") ? pair?.object ?? "" : "")
        }
    }
}
