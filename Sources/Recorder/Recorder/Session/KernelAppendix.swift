// Kernel events of an image, at the end of its trace: metadata chunks like the agent's own.
import CTraceLayout
import Glibc

extension KernelWatch {
    /// Appends to a copy of a trace that is being recorded what was reported of its process.
    /// - Parameter since: CLOCK_MONOTONIC
    func append(to path: String, since: UInt64) {
        guard let header = TraceHeader(path: path), case let state = header.current, state.pid_namespace == ProcessStatus.ownNamespace,
            let excerpt = excerpt(of: pid_t(bitPattern: state.pid), at: state.first.monotonic_ns, since: since)
        else { return }
        _ = header.append(excerpt.chunks)
    }
}

extension TraceHeader {
    /// Appends records to a copy that nobody else writes. False: not all was written.
    func append(_ chunks: [[UInt8]]) -> Bool {
        let opened = current.last
        return chunks.allSatisfy { append($0, opened: opened, isGone: true) }
    }
}

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

    /// Programs without a trace; nil: the kernel reports no exec here.
    func unrecorded(in run: UnrecordedPrograms.Run) -> UnrecordedPrograms? {
        account.grant.granted == 0 ? nil : UnrecordedPrograms(account.images, lost: account.lost, in: run)
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
        guard header.append(withUnsafeBytes(of: kernel) { Array($0) }, opened: opened, isGone: isGone) else { return false }
        for block in images.flatMap(\.blocks) {
            guard let bytes = account.spool.read(block), header.append(bytes, opened: opened, isGone: isGone) else { return false }
        }
        return true
    }
}
