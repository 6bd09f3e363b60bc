// Cache of what searching texts has found, in a file of the user's, so that the next start need not search (ScanFile.swift):
// $XDG_CACHE_HOME/tracer/scans.ARCH, or $HOME/.cache/tracer. The program knows nothing of it, so it is touched only where that changes
// nothing for anybody else: the folder of caches must be there already, and all of it be the effective user's own and closed to others;
// what does not succeed at once is left.
// Everything here runs with signals blocked, at the start or with the loader's lock held.
import CSupport

enum ScanCache {
    nonisolated(unsafe) private static var isOpen = false // it has been looked for
    nonisolated(unsafe) private static var agentID: FileIdentity?
    nonisolated(unsafe) private static var user = -1 // who may use it: the effective user; -1: nobody
    nonisolated(unsafe) private static var file: ScanFile?
    nonisolated(unsafe) private static var bytes: UnsafeMutableRawPointer?
    nonisolated(unsafe) private static var byteCount = 0
    nonisolated(unsafe) private static var found: ScanFileBuilder?
    nonisolated(unsafe) private static var foundBuffer: UnsafeMutableRawPointer?
    nonisolated(unsafe) private static var searchedBytes: UInt64 = 0
    nonisolated(unsafe) private static var key: ScanKey? // key of the module that was asked for last
    nonisolated(unsafe) private static var text: UInt64 = 0 // bytes of its text

    /// At the start one reading of the file serves all modules. Of those that are loaded later a smaller text is searched sooner.
    private static let worthLater: UInt64 = 1 << 20
    /// Bytes that must have been searched before the file is written: some tenths of a millisecond.
    private static let worthWriting: UInt64 = 1 << 20
    /// A file under construction is given up by others when it is older.
    private static let mostSeconds = 60

    /// Marks the slots as `scan` would. False: nothing is known of this module.
    static func recall(_ slots: CallOnlySlots, _ module: UnsafeMutablePointer<Module>) -> Bool {
        key = nil
        text = textBytes(module.pointee.image)
        if !isOpen && !module.pointee.isStartup && text < worthLater { return false }
        if !isOpen { open() }
        if user < 0 { return false }
        key = identity(module).flatMap { ScanKey($0, module.pointee.image, slots) }
        guard let file, let key, let row = file.find(key) else { return false }
        slots.recall(row, file.bits(row))
        return true
    }

    /// Keeps what has just been found of the module that was asked for last.
    static func remember(_ slots: CallOnlySlots) {
        guard let key else { return }
        if found == nil {
            foundBuffer = Memory.pages(ScanFileBuilder.bufferBytes)
            found = foundBuffer.map { ScanFileBuilder($0) }
        }
        found?.add(key, slots)
        searchedBytes &+= text
    }

    /// The modules of a load are bound.
    static func end() {
        if !isOpen { return }
        if searchedBytes >= worthWriting { write() }
        Memory.release(foundBuffer, ScanFileBuilder.bufferBytes)
        Memory.release(bytes, byteCount)
        (file, bytes, byteCount, found, foundBuffer) = (nil, nil, 0, nil, nil)
        (searchedBytes, user, isOpen, key) = (0, -1, false, nil)
    }

    /// Returns the identity by the build-id. Without one only the executable is known, if it is large: /proc/self/exe is the very file
    /// that runs, while another one may have taken the place of a library. (If it is the loader or valgrind, its program headers show it.)
    /// A file that has just changed may change once more within one tick of the clock that the kernel stamps files with.
    private static func identity(_ module: UnsafeMutablePointer<Module>) -> FileIdentity? {
        if let identity = FileIdentity(buildIDOf: module.pointee.image) { return identity }
        if text < worthLater || !module.pointee.image.contains(Process.entry) { return nil }
        let descriptor = SystemCall.call(
            SystemCall.openat, SystemCall.currentDirectory, bits(StaticString("/proc/self/exe").utf8Start), Open.closeOnExec, 0)
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        guard CodeSections.isFile(descriptor, of: module.pointee.image), let status = FileStatus(ofDescriptor: descriptor),
            abs(secondsSince(status.changedSeconds)) > 2
        else { return nil }
        return FileIdentity(status.identity)
    }
    private static func secondsSince(_ moment: Int) -> Int { Int(Clock.realtime() / 1_000_000_000) &- moment }

    private static func textBytes(_ image: Image) -> UInt64 {
        var sum: UInt64 = 0
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            if segment.type == ProgramHeader.load && segment.flags & ProgramHeader.executable != 0 { sum &+= segment.fileBytes }
        }
        return sum
    }

    // MARK: - The file

    private enum Part { case home, folder, file, unfinished }
    /// Its path, in `buffer`, of 4096 bytes; nil where there is none.
    private static func path(_ part: Part, _ buffer: UnsafeMutablePointer<UInt8>) -> CText? {
        var text = TextBuffer(buffer, capacity: 4096)
        if !CacheHome.append(to: &text) { return nil }
        if part != .home { text.append("/tracer") }
        if part == .file || part == .unfinished {
            text.append("/scans.")
            text.append(Architecture.name)
        }
        if part == .unfinished { text.append(".new") }
        return text.isFull ? nil : CText(text.start)
    }

    private static func open() {
        isOpen = true
        if !CacheHome.isUsed { return }
        // In a filter everything that the program would not do itself may be its end. (EINVAL: a kernel without filters, or qemu,
        // which has none for its program.)
        let filters = SystemCall.call(SystemCall.prctl, Control.getFilters)
        if filters != 0 && filters != -Failure.invalid { return }
        if agentID == nil { agentID = ModuleTable.module(of: tracer_code_low()).flatMap { FileIdentity(buildIDOf: $0.pointee.image) } }
        guard let agentID, let effective = CacheHome.user else { return }
        withPath(.folder) { folder in
            let status = FileStatus(at: folder)
            guard status == nil || status!.isFolder(of: effective) else { return }
            user = effective
            if status != nil { withPath(.file) { read($0, agentID) } }
        }
    }
    private static func read(_ path: CText, _ agentID: FileIdentity) {
        guard let (buffer, count) = CacheHome.read(path, of: user, atMost: Int(SCAN_MOST_BYTES)) else { return }
        (bytes, byteCount) = (buffer, count)
        file = ScanFile(buffer, count, by: agentID)
    }

    /// Another file takes the place of the one that is there, so that readers have the one or the other. Two who do it at once:
    /// the second leaves it to its own next start. What others have added since we read is lost, and found again.
    private static func write() {
        guard user >= 0, let agentID, found != nil else { return }
        if let file { found!.add(file) }
        let count = found!.finish(by: agentID, generation: max((file?.generation ?? 0) &+ 1, 1))
        if UInt64(count) > FileJob.sizeLimit { return } // to pass it raises SIGXFSZ
        withPath(.home) { home in
            guard let status = FileStatus(at: home), status.isFolder(of: user) else { return }
            withPath(.folder) { folder in
                _ = SystemCall.call(SystemCall.mkdirat, SystemCall.currentDirectory, bits(folder), 0o700)
                guard let status = FileStatus(at: folder), status.isFolder(of: user) else { return }
                withPath(.unfinished) { new in withPath(.file) { write(foundBuffer!, count, new, $0) } }
            }
        }
    }
    private static func write(_ content: UnsafeRawPointer, _ count: Int, _ new: CText, _ path: CText) {
        let descriptor = SystemCall.call(
            SystemCall.openat, SystemCall.currentDirectory, bits(new), Open.own | Open.writeOnly | Open.create | Open.exclusive, 0o600)
        if descriptor == -Failure.exists, let old = FileStatus(at: new) {
            if abs(secondsSince(old.writtenSeconds)) > mostSeconds {
                _ = SystemCall.call(SystemCall.unlinkat, SystemCall.currentDirectory, bits(new), 0)
            }
        }
        if failed(descriptor) { return }
        _ = SystemCall.call(SystemCall.fchmod, descriptor, 0o600) // whatever the program's umask
        let written = SystemCall.call(SystemCall.pwrite64, descriptor, bits(content), count, 0)
        _ = SystemCall.call(SystemCall.close, descriptor)
        if written != count
            || SystemCall.call(SystemCall.renameat, SystemCall.currentDirectory, bits(new), SystemCall.currentDirectory, bits(path)) != 0
        {
            _ = SystemCall.call(SystemCall.unlinkat, SystemCall.currentDirectory, bits(new), 0)
        }
    }

    private static func withPath(_ part: Part, _ body: (CText) -> Void) {
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer { if let path = path(part, $0.baseAddress!) { body(path) } }
    }
}
