// Kernel events of an image, at the end of its trace: metadata chunks like the agent's own.
import CTraceLayout
import Glibc

package struct KernelAppendix {
    private let account: KernelAccount

    /// Ends it.
    package init(_ watch: KernelWatch) { account = watch.end() }

    /// Appends to a trace whose process has ended; includes what was before it in this process (a script's interpreter, say), from its
    /// first exec on. False: not all was written.
    package func write(wholeStartTo path: String) -> Bool {
        guard let header = TraceHeader(path: path) else { return false }
        let images = account.images[pid_t(bitPattern: header.current.pid)] ?? []
        return write(images.filter { $0.begun > 0 && $0.begun <= header.current.first.monotonic_ns }, to: header, isGone: true)
    }

    /// Appends to what is there. False: not all was written, usually because the disk is full.
    func write(to header: TraceHeader, isGone: Bool) -> Bool {
        let image = image(of: header.current)
        if image == nil, !isGone { return true } // its process counts elsewhere, and may be writing
        return write(image.map { [$0] } ?? [], to: header, isGone: isGone)
    }

    /// When the image ended whose trace has this header: CLOCK_MONOTONIC; nil: the kernel did not report it.
    func end(of state: trace_file_header) -> UInt64? { image(of: state)?.ended }

    private func image(of state: trace_file_header) -> ImageHistory? {
        // A process that counts in another pid namespace is reported under other numbers.
        guard state.pid_namespace == ProcessStatus.ownNamespace else { return nil }
        return account.image(of: pid_t(bitPattern: state.pid), at: state.first.monotonic_ns)
    }

    private func write(_ images: [ImageHistory], to header: TraceHeader, isGone: Bool) -> Bool {
        var kernel = account.record
        if images.isEmpty { (kernel.granted, kernel.period_ns) = (0, 0) }
        kernel.from_ns = images.first?.begun ?? 0
        kernel.until_ns = images.last?.ended ?? clockTime()
        kernel.lost &+= images.reduce(0) { $0 &+ $1.left }
        let opened = header.current.last
        guard write(withUnsafeBytes(of: kernel) { Array($0) }, opened, header, isGone) else { return false }
        for block in images.flatMap(\.blocks) {
            guard let bytes = account.spool.read(block), write(bytes, opened, header, isGone) else { return false }
        }
        return true
    }

    /// The magic last: the file may be being read.
    private func write(_ records: [UInt8], _ opened: trace_clock_sample, _ header: TraceHeader, _ isGone: Bool) -> Bool {
        let headBytes = MemoryLayout<trace_chunk_header>.size, used = headBytes + records.count
        let byteCount = UInt64(used).roundedUp(to: UInt64(TRACE_CHUNK_ALIGNMENT))
        var chunk = trace_chunk_header()
        chunk.kind = UInt16(TRACE_CHUNK_METADATA)
        chunk.flags = UInt16(TRACE_CHUNK_CLOSED)
        chunk.byte_count = UInt32(byteCount)
        chunk.body_offset = UInt32(headBytes)
        chunk.opened = opened
        chunk.used_bytes = UInt64(used)
        var bytes = withUnsafeBytes(of: chunk) { Array($0) } + records
        bytes += repeatElement(0, count: Int(byteCount) - bytes.count)
        guard let offset = header.reserve(byteCount, isGone: isGone) else { return false }
        guard Self.write(bytes, header.file, offset) else {
            if isGone { // otherwise a thread may have taken what comes after it: then this is a range that nobody has opened
                header.set(nextOffset: offset)
                ftruncate(header.file, off_t(offset))
            }
            return false
        }
        var magic = UInt32(TRACE_CHUNK_MAGIC)
        return pwrite(header.file, &magic, 4, off_t(offset)) == 4
    }

    private static func write(_ bytes: [UInt8], _ file: Int32, _ offset: UInt64) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
