// What stays in memory when files are dropped from it.
import CLaunch
import Foundation
import Glibc
import LaunchLab
import Testing

@Suite struct ColdFilesTests {
    private static let memory = "/dev/shm"
    private static var isMemory: Bool {
        let file = open(memory, O_RDONLY | O_DIRECTORY)
        defer { close(file) }
        return launch_is_in_memory(file) != 0 && access(memory, W_OK) == 0
    }

    @Test(.enabled(if: isMemory)) func aFileWithoutADiskIsSaidToHaveNone() throws {
        let path = "\(Self.memory)/tracer-tests-\(UUID().uuidString)"
        defer { unlink(path) }
        try Data(repeating: 1, count: 10_000).write(to: URL(fileURLWithPath: path))
        let drop = ColdFiles([path]).drop()
        #expect(drop.files == 1 && drop.bytes == 10_000 && drop.diskless == 10_000 && drop.kept == 0 && drop.unknown == 0)
        #expect(drop.stayed("") == "9.8 KB have no disk (tmpfs)")
    }
}
