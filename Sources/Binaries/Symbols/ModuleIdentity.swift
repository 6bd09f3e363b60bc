// What a trace says of a module, and whether a file is the one that was loaded.
import ELF

/// Identity of a module, known without its file: a trace has it for every module.
package struct ModuleIdentity: Hashable, Sendable {
    package var path: String
    /// Empty when the module has none.
    package var buildID: [UInt8]
    /// From the lowest to the highest address of its load segments, in bytes; 0 unknown. With the file it stands in for the build-id of a
    /// module that has none.
    package var spanBytes: UInt64
    /// nil: the module has a build-id, or an older agent did not say.
    package var file: LoadedFile?

    /// What was known of the file when it was loaded.
    package struct LoadedFile: Hashable, Sendable {
        package var stamp: FileStamp
        /// A hash of device and inode, by which its plan is named.
        package var inodeHash: UInt64

        package init(stamp: FileStamp, inodeHash: UInt64) { (self.stamp, self.inodeHash) = (stamp, inodeHash) }
    }

    package init(path: String, buildID: [UInt8], spanBytes: UInt64, file: LoadedFile? = nil) {
        self.path = path
        self.buildID = buildID
        self.spanBytes = spanBytes
        self.file = file
    }

    /// True if the module was loaded from this file, and not from one that it has replaced since.
    func isLoaded(from file: ObjectFile) -> Bool {
        if !buildID.isEmpty { return file.buildID.starts(with: buildID) } // a trace keeps 20 bytes
        return file.buildID.isEmpty && (spanBytes == 0 || file.span == spanBytes) && (self.file.map { $0.stamp == file.stamp } ?? true)
    }
}
