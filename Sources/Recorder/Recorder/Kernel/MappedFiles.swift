// Files mapped in a process, to determine which file had to be read when an address was touched.
import TraceFormat

package struct MappedFiles {
    /// Sorted by address; none overlaps another.
    private var mappings: [KernelRecord.Mapping] = []

    package init() {}

    /// Adds a mapping, which replaces what was there. (munmap(2) is not reported: what it removes stays until it is replaced.)
    package mutating func add(_ new: KernelRecord.Mapping) {
        guard !new.addresses.isEmpty else { return }
        let first = index(after: new.addresses.lowerBound),
            end = mappings[first...].firstIndex { $0.addresses.lowerBound >= new.addresses.upperBound } ?? mappings.count
        var parts = [new]
        if first < end {
            let low = mappings[first], high = mappings[end - 1]
            if low.addresses.lowerBound < new.addresses.lowerBound {
                parts.insert(
                    .init(
                        addresses: low.addresses.lowerBound..<new.addresses.lowerBound, offset: low.offset, path: low.path,
                        inode: low.inode,
                        isCode: low.isCode), at: 0)
            }
            if high.addresses.upperBound > new.addresses.upperBound {
                let skipped = new.addresses.upperBound - high.addresses.lowerBound
                parts.append(
                    .init(
                        addresses: new.addresses.upperBound..<high.addresses.upperBound, offset: high.offset &+ skipped, path: high.path,
                        inode: high.inode, isCode: high.isCode))
            }
        }
        mappings.replaceSubrange(first..<end, with: parts)
    }

    /// The file and the offset in it; nil for memory that is of no file.
    package func fileOffset(of address: UInt64) -> (path: String, offset: UInt64)? {
        let n = index(after: address)
        guard n < mappings.count, mappings[n].addresses.contains(address), mappings[n].isOfFile else { return nil }
        return (mappings[n].path, mappings[n].offset &+ (address - mappings[n].addresses.lowerBound))
    }

    /// The file whose code lies there; nil: none's.
    func code(at address: UInt64) -> String? {
        let n = index(after: address)
        guard n < mappings.count, mappings[n].addresses.contains(address), mappings[n].isOfFile, mappings[n].isCode else { return nil }
        return mappings[n].path
    }

    /// The first mapping that ends after the address.
    private func index(after address: UInt64) -> Int { bisect(mappings.count) { mappings[$0].addresses.upperBound <= address } }
}
