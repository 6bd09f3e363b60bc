// The stacks that `tracer record --sample` has taken, or those of threads that were found waiting, as they lie in the file.
import CTraceLayout
import ELF
import TraceFormat

package struct SampleRecords: Sendable, RecordReader {
    struct Sample: BitwiseCopyable, Sendable {
        var at: UInt64
        var tid: UInt32
        /// The last address is the thread's outermost frame.
        var isWhole: Bool
        var isInKernel: Bool
        /// In `addresses`.
        fileprivate var first: Int
        fileprivate var count: Int
    }
    /// Code that is in no file: what the process made while it ran, and functions of the kernel.
    struct NamedCode: Sendable {
        var start: UInt64, end: UInt64
        var name: String
    }

    /// In the order of time.
    private(set) var samples: [Sample] = []
    private var addresses: [UInt64] = []
    /// Code made at run time, by start address.
    private(set) var madeCode: [NamedCode] = []
    /// Functions of the kernel that samples were in, by start address.
    private(set) var kernelCode: [NamedCode] = []
    package internal(set) var damagedRecords = 0
    private let trace: TraceFile
    private let type: Int

    private static let longestName = 16 << 10

    /// - Parameter type: TRACE_RECORD_WAIT_STACKS for the others
    package init(_ trace: TraceFile, _ type: Int = TRACE_RECORD_SAMPLES) {
        self.trace = trace
        self.type = type
        readRecords(of: trace.file, trace.metadataChunks)
        samples.sort { ($0.at, $0.first) < ($1.at, $1.first) }
        madeCode.sort { $0.start < $1.start }
        kernelCode.sort { $0.start < $1.start }
    }

    /// The threads that have samples.
    var tids: Set<UInt32> { Set(samples.lazy.map { $0.tid }) }

    /// The stack of the process, innermost first; TRACE_SAMPLE_CALL and TRACE_SAMPLE_UNKNOWN among them.
    func stack(of sample: Sample) -> ArraySlice<UInt64> { whole(sample).dropFirst(kernelStack(of: sample).count) }

    /// What the kernel was doing for the process, innermost first; empty outside of it, and in traces that have no stacks of it.
    func kernelStack(of sample: Sample) -> ArraySlice<UInt64> {
        sample.isInKernel ? whole(sample).prefix { $0 >= TRACE_KERNEL_ADDRESS } : []
    }

    private func whole(_ sample: Sample) -> ArraySlice<UInt64> { addresses[sample.first..<sample.first + sample.count] }

    func madeCode(at address: UInt64) -> NamedCode? { Self.code(madeCode, at: address) }
    func kernelCode(at address: UInt64) -> NamedCode? { Self.code(kernelCode, at: address) }

    private static func code(_ all: [NamedCode], at address: UInt64) -> NamedCode? {
        let next = bisect(all.count) { all[$0].start <= address }
        return next > 0 && address < all[next - 1].end ? all[next - 1] : nil
    }

    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        switch Int(record.type) {
        case type:
            try Self.forEachSample(buffer, offset, byteCount) { sample, start in
                samples.append(
                    Sample(
                        at: trace.ticks(monotonic: sample.ns).raw, tid: sample.tid, isWhole: sample.flags & UInt16(TRACE_SAMPLE_WHOLE) != 0,
                        isInKernel: sample.flags & UInt16(TRACE_SAMPLE_KERNEL) != 0, first: addresses.count, count: Int(sample.count)))
                for index in 0..<Int(sample.count) { addresses.append(buffer.load(UInt64.self, at: start + index * 8)!) }
            }
        case TRACE_RECORD_CODE_NAME, TRACE_RECORD_KERNEL_NAME:
            let fixed = try body(trace_code_name_record.self, buffer, offset, byteCount)
            guard fixed.address <= .max - fixed.code_bytes else { throw DamagedRecord() }
            let name = try tail(fixed, fixed.name_bytes, buffer, offset, byteCount, Self.longestName)
            let code = NamedCode(start: fixed.address, end: fixed.address + fixed.code_bytes, name: printable(name))
            if Int(record.type) == TRACE_RECORD_CODE_NAME { madeCode.append(code) } else { kernelCode.append(code) }
        default: break
        }
    }
}
