// The frames of one file's code. Shared by all processes that run it; each address is looked up once.
import ELF
import Glibc

package final class UnwindModule {
    let image: ModuleImage
    /// Indices into `rules` by address as linked; -1: nothing is known there.
    private var known = AddressTable()
    private var rules: [FrameRule] = []
    private(set) var saved: [SavedRegister] = []
    private var commons = CallFrames.Commons()
    /// The file, to read code from; nil: there is none.
    private var file: (path: String, version: FileVersion)?
    /// States by address as linked, where they were asked for.
    private var states: [UInt64: StackDepth.State?] = [:]
    private static let mostCode: UInt64 = 256 << 10

    package init(_ image: ModuleImage) { self.image = image }

    /// nil when there is no such file, or it is no ELF file.
    package convenience init?(path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, let image = ModuleImage(read: readBytes(of: descriptor))
        else { return nil }
        self.init(image)
        file = (path, FileVersion(status))
    }

    /// Code that the kernel maps into every process, this one, too.
    package static func ofVDSO() -> UnwindModule? {
        guard let mapping = ProcessMaps(pid: getpid()).first(where: { $0.path == vdsoPath }) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(mapping.end - mapping.start))
        let count = bytes.withUnsafeMutableBytes { ProcessMemory(pid: getpid()).read(mapping.start, $0) }
        let image = ModuleImage { offset, wanted in
            guard offset < UInt64(count) else { return [] }
            return Array(bytes[Int(offset)..<min(Int(offset) + wanted, count)])
        }
        return image.map { UnwindModule($0) }
    }
    static let vdsoPath = "[vdso]"

    /// - Parameter address: as linked
    package func rule(at address: UInt64) -> FrameRule? {
        if let index = known[address] { return index < 0 ? nil : rules[Int(index)] }
        let rule = image.frames.withUnsafeBytes { bytes in program(at: address, bytes)?.rule(at: address, &saved) }
        known[address] = rule == nil ? -1 : Int32(rules.count)
        if let rule { rules.append(rule) }
        return rule
    }

    /// What the code of an x86-64 function says of its stack pointer; nil where that cannot be told.
    /// - Parameter address: in the instruction that is executed, as linked
    package func stackState(at address: UInt64) -> StackDepth.State? {
        if let known = states[address] { return known }
        let state = function(at: address).flatMap { function in
            StackDepth(code(of: function))?.state(at: Int(address - function.address))
        }
        states[address] = .some(state)
        return state
    }

    private func function(at address: UInt64) -> CallFrames.Function? {
        let function = image.frames.withUnsafeBytes { program(at: address, $0)?.function }
        // A part of a function that is elsewhere begins with the stack that the other part has.
        guard let function, function.byteCount <= Self.mostCode,
            rule(at: function.address)?.frameDistance(from: Processor.x86.stackPointer) == 8
        else {
            return nil
        }
        return function
    }

    /// Empty where the file is another one by now.
    private func code(of function: CallFrames.Function) -> [UInt8] {
        let segment = image.segments.first { function.address >= $0.address && function.address - $0.address < $0.fileByteCount }
        guard let file, let segment else { return [] }
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, FileVersion(status) == file.version else { return [] }
        let skipped = function.address - segment.address
        return readBytes(of: descriptor)(segment.offset &+ skipped, Int(min(function.byteCount, segment.fileByteCount - skipped)))
    }

    /// Addresses of its code as linked; nil: it has none.
    package var text: Range<UInt64>? {
        image.segments.first { $0.isExecutable && $0.byteCount > 0 }.map { $0.address..<$0.address &+ $0.byteCount }
    }

    /// Calls `body` with the section's bytes, into which the ranges of a rule's expressions point.
    func withFrames<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R { image.frames.withUnsafeBytes(body) }

    private func program(at address: UInt64, _ bytes: UnsafeRawBufferPointer) -> FrameProgram? {
        let table = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Int(clamping: image.tableAddress &- image.framesAddress)))
        let frames = CallFrames(bytes, address: image.framesAddress)
        guard let description = FrameIndex(table, address: image.tableAddress)?.description(at: address),
            let offset = Int(exactly: description &- image.framesAddress),
            let function = frames.function(at: offset, &commons), address &- function.address < function.byteCount
        else { return nil }
        return FrameProgram(frames: frames, common: commons[function], function: function)
    }
}

/// Numbers by address. Open addressing: Swift's own dictionary takes three times as long, and is asked for every frame.
private struct AddressTable {
    private var entries = [(address: UInt64, value: Int32)](repeating: (0, 0), count: 1024)
    private var count = 0

    private static func bucket(_ address: UInt64, _ count: Int) -> Int {
        Int(truncatingIfNeeded: (address &* 0x9e37_79b9_7f4a_7c15) >> 32) & (count - 1) // Fibonacci hashing (Knuth, TAOCP 3, 6.4)
    }

    private func index(_ address: UInt64) -> Int {
        var index = Self.bucket(address, entries.count)
        while entries[index].address != address, entries[index].address != 0 { index = (index + 1) & (entries.count - 1) }
        return index
    }

    /// The number at an address; nil: none. Address 0 never has one: it marks an empty entry.
    subscript(_ address: UInt64) -> Int32? {
        get {
            let entry = entries[index(address)]
            return entry.address == address && address != 0 ? entry.value : nil
        }
        set {
            guard let newValue, address != 0 else { return }
            if 2 * count >= entries.count {
                let old = entries
                entries = Array(repeating: (0, 0), count: 2 * old.count)
                for entry in old where entry.address != 0 { entries[index(entry.address)] = entry }
            }
            let index = index(address)
            if entries[index].address == 0 { count += 1 }
            entries[index] = (address, newValue)
        }
    }
}
