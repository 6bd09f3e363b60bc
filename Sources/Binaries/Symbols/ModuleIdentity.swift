// What a trace says of a module, and whether a file is the one that was loaded.
import ELF

/// Identity of a module, known without its file: a trace has it for every module.
package struct ModuleIdentity: Hashable, Sendable {
    package var path: String
    /// Empty when the module has none.
    package var buildID: [UInt8]
    /// From the lowest to the highest address of its load segments, in bytes; 0 unknown. Stands in for the build-id of
    /// a module that has none.
    package var spanBytes: UInt64

    package init(path: String, buildID: [UInt8], spanBytes: UInt64) {
        self.path = path
        self.buildID = buildID
        self.spanBytes = spanBytes
    }

    /// True if the module was loaded from this file, and not from one that it has replaced since.
    func isLoaded(from file: ObjectFile) -> Bool {
        if !buildID.isEmpty { return file.buildID.starts(with: buildID) } // a trace keeps 20 bytes
        return file.buildID.isEmpty && (spanBytes == 0 || file.span == spanBytes)
    }
}
