// What the kernel has reported of a process up to now, for a copy of its trace that is made while it is recorded further.
import CTraceLayout

package struct KernelExcerpt: Sendable {
    /// A KERNEL record, and records as they go to the end of a trace.
    package let chunks: [[UInt8]]

    /// - Parameters:
    ///   - since: CLOCK_MONOTONIC; of what was before, only what stays true is there: threads, names, descriptors
    package init(_ image: ImageHistory, since: UInt64, until: UInt64, _ account: trace_kernel_record, _ spool: KernelSpool) {
        var kernel = account
        kernel.from_ns = max(image.begun, since)
        kernel.until_ns = until
        kernel.lost &+= image.left
        var chunks = [withUnsafeBytes(of: kernel) { Array($0) }]
        for block in image.blocks {
            guard let bytes = spool.read(block) else { continue }
            let kept = block.until >= since ? bytes : Self.lasting(bytes)
            if !kept.isEmpty { chunks.append(kept) }
        }
        self.chunks = chunks
    }

    private static let passing = [
        TRACE_RECORD_SWITCHES, TRACE_RECORD_SAMPLES, TRACE_RECORD_WAIT_STACKS, TRACE_RECORD_PAGE_FAULT, TRACE_RECORD_WAIT,
        TRACE_RECORD_POLLED,
    ]
    private static func lasting(_ bytes: [UInt8]) -> [UInt8] {
        var kept: [UInt8] = [], offset = 0
        while offset + MemoryLayout<trace_record>.size <= bytes.count {
            let record = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: trace_record.self) }
            let end = offset + Int(record.byte_count)
            guard record.byte_count >= 8, end <= bytes.count else { break }
            if !passing.contains(Int(record.type)) { kept += bytes[offset..<end] }
            offset = end
        }
        return kept
    }
}
