// Keeps kernel events until the processes that they are about have ended: in memory, and beyond `mostInMemory` in a file without a name
// in the directory of the traces.
import Glibc

package final class KernelSpool {
    /// Records, whole, in the order of their making.
    package struct Block {
        let byteCount: Int
        /// CLOCK_MONOTONIC: what is in it had happened by then.
        let until = clockTime()
        fileprivate let storage: Storage
    }
    fileprivate enum Storage {
        case memory([UInt8])
        case file(off_t)
    }

    private let directory: String
    private var inMemory = 0
    private var file: Int32 = -1
    private var fileEnd: off_t = 0
    private static let mostInMemory = 32 << 20

    package init(directory: String) { self.directory = directory }

    deinit { if file >= 0 { close(file) } }

    /// nil when there is no space for it anywhere.
    package func keep(_ bytes: [UInt8]) -> Block? {
        if inMemory + bytes.count <= Self.mostInMemory {
            inMemory += bytes.count
            return Block(byteCount: bytes.count, storage: .memory(bytes))
        }
        if file < 0 { file = open(directory, O_TMPFILE_ | O_RDWR | O_CLOEXEC, 0o600) }
        guard file >= 0, pwrite(file, bytes, bytes.count, fileEnd) == bytes.count else { return nil }
        fileEnd += off_t(bytes.count)
        return Block(byteCount: bytes.count, storage: .file(fileEnd - off_t(bytes.count)))
    }

    /// It is not wanted any more.
    func drop(_ block: Block) { if case .memory = block.storage { inMemory -= block.byteCount } }

    /// nil when it cannot be read back.
    package func read(_ block: Block) -> [UInt8]? {
        switch block.storage {
        case .memory(let bytes): return bytes
        case .file(let offset):
            var bytes = [UInt8](repeating: 0, count: block.byteCount)
            return pread(file, &bytes, bytes.count, offset) == bytes.count ? bytes : nil
        }
    }

    /// open(2): __O_TMPFILE | O_DIRECTORY, a macro that Swift does not see. The former is the same on all architectures of this project.
    private let O_TMPFILE_ = 0o20000000 | O_DIRECTORY
}
