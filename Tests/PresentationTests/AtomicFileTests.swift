// A file that is replaced is whole at every moment, or is the one that was there.
import Foundation
import Presentation
import Testing

@Suite(.serialized) final class AtomicFileTests {
    private let folder = NSTemporaryDirectory() + "atomic-\(UUID().uuidString)"
    private var path: String { folder + "/file" }

    init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted() }
    private func text(_ path: String) -> String? { FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } }

    @Test func whatIsThereIsReplacedOnRequestAlone() throws {
        try AtomicFile.write("one", to: path, replaces: false)
        #expect(throws: AtomicFile.Failure.exists(path)) { try AtomicFile.write("two", to: self.path, replaces: false) }
        #expect(text(path) == "one")
        try AtomicFile.write("two", to: path)
        #expect(text(path) == "two" && names == ["file"])
    }

    @Test func anUnfinishedFileLeavesTheOldOne() throws {
        try AtomicFile.write("old", to: path)
        struct Stop: Error {}
        let file = try AtomicFile(path, replaces: true)
        #expect(throws: Stop.self) {
            try file.writing { write in
                try write(Array("half".utf8))
                #expect(self.text(self.path) == "old")
                throw Stop()
            }
        }
        #expect(text(path) == "old" && names == ["file"])
    }

    @Test func oneThatAppearsMeanwhileStays() throws {
        let file = try AtomicFile(path, replaces: false)
        #expect(throws: AtomicFile.Failure.exists(path)) {
            try file.writing { _ in try "another's".write(toFile: self.path, atomically: false, encoding: .utf8) }
        }
        #expect(text(path) == "another's" && names == ["file"])
    }

    @Test func aLinkStaysALinkAndAModeStays() throws {
        try AtomicFile.write("old", to: path)
        chmod(path, 0o640)
        symlink("file", folder + "/link")
        try AtomicFile.write("new", to: folder + "/link")
        var status = stat()
        #expect(lstat(folder + "/link", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        #expect(text(path) == "new" && stat(path, &status) == 0 && status.st_mode & 0o777 == 0o640)
    }

    @Test func aDirectoryOrAFolderThatIsMissingIsOneLine() {
        #expect(throws: AtomicFile.Failure.isDirectory(folder)) { try AtomicFile.write("", to: self.folder) }
        #expect(throws: AtomicFile.Failure.cannotCreate(folder + "/no/file", ENOENT)) {
            try AtomicFile.write("", to: self.folder + "/no/file")
        }
        #expect(throws: AtomicFile.Failure.cannotWrite("/dev/full", ENOSPC)) { try AtomicFile.write("x", to: "/dev/full") }
    }
}
