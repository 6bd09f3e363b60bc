// Loads a small ELF file as the kernel and the loader would, for the agent's code to read: where no load segment is,
// or one that may not be read, nothing is mapped readable, and whoever reads there dies.
import Glibc

enum Arena {
    static let pages = 32, page = 4096
    static let byteCount = pages * page
    /// Unreadable pages before and after it.
    nonisolated(unsafe) private static let start: UnsafeMutableRawPointer = {
        let all = mmap(nil, byteCount + 32 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)!
        return all + 16 * page
    }()

    struct Loaded {
        var bias: UInt64
        var dynamic: UInt64
        var headers: UInt64
        var headerCount: Int
    }

    /// nil: a loader would refuse the file, or it is larger than what fits here.
    static func load(_ file: UnsafeRawBufferPointer) -> Loaded? {
        guard file.count >= 64, file.loadUnaligned(as: UInt32.self) == 0x464c_457f,
            file.loadUnaligned(fromByteOffset: 54, as: UInt16.self) == 56
        else { return nil }
        let table = file.loadUnaligned(fromByteOffset: 32, as: UInt64.self)
        let count = Int(file.loadUnaligned(fromByteOffset: 56, as: UInt16.self))
        guard count > 0, count <= 16, table <= UInt64(file.count), UInt64(count * 56) <= UInt64(file.count) - table else { return nil }
        var segments: [(flags: UInt32, offset: Int, address: Int, fileBytes: Int, memoryBytes: Int)] = []
        var dynamic: UInt64 = 0
        for n in 0..<count {
            let at = Int(table) + n * 56
            let type = file.loadUnaligned(fromByteOffset: at, as: UInt32.self)
            let flags = file.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
            let words = (0..<5).map { file.loadUnaligned(fromByteOffset: at + 8 + 8 * $0, as: UInt64.self) }
            if type == 2 { dynamic = words[1] }
            guard type == 1 else { continue }
            guard [0, 1, 3, 4].allSatisfy({ words[$0] <= UInt64(byteCount) }), words[3] <= words[4], words[4] > 0,
                words[0] + words[3] <= UInt64(file.count), words[1] + words[4] <= UInt64(byteCount),
                segments.isEmpty
                    || (segments.last!.address + segments.last!.memoryBytes + page - 1) / page * page <= Int(words[1]) / page * page
            else { return nil }
            segments.append((flags, Int(words[0]), Int(words[1]), Int(words[3]), Int(words[4])))
        }
        guard !segments.isEmpty else { return nil }
        mprotect(start, byteCount, PROT_READ | PROT_WRITE)
        memset(start, 0, byteCount)
        for segment in segments where segment.fileBytes > 0 {
            (start + segment.address).copyMemory(from: file.baseAddress! + segment.offset, byteCount: segment.fileBytes)
        }
        var next = 0
        for segment in segments {
            let low = segment.address / page, high = (segment.address + segment.memoryBytes + page - 1) / page
            if low > next { mprotect(start + next * page, (low - next) * page, PROT_NONE) }
            // Never executable: nothing of it is called here.
            let protection = (segment.flags & 4 != 0 ? PROT_READ : PROT_NONE) | (segment.flags & 2 != 0 ? PROT_WRITE : 0)
            mprotect(start + low * page, (high - low) * page, segment.flags & 4 != 0 ? protection : PROT_NONE)
            next = high
        }
        if next < pages { mprotect(start + next * page, (pages - next) * page, PROT_NONE) }
        let bias = UInt64(UInt(bitPattern: start))
        return Loaded(bias: bias, dynamic: bias &+ dynamic, headers: bias &+ table, headerCount: count)
    }
}
