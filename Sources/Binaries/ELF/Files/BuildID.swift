// Build-ids: by what the linker identifies a file's content (--build-id).

/// Returns the build-id of the file as it is now; nil when it is not an ELF file, empty when it has none.
package func buildID(ofFile path: String) -> [UInt8]? { ObjectFile(path: path).map { $0.buildID } }

/// Spells a build-id as readelf does: two digits a byte.
package func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
