// The code mappings of one process.
import Glibc
import TraceFormat

package struct AddressSpace {
    package struct Mapping {
        var start, end: UInt64
        /// Load bias: an address in it less the one as linked.
        package var bias: UInt64
        /// nil: code of no file, as compilers make it while the program runs.
        var module: UnwindModule?

        package init(start: UInt64, end: UInt64, bias: UInt64, module: UnwindModule? = nil) {
            self.start = start
            self.end = end
            self.bias = bias
            self.module = module
        }
    }
    /// Sorted by address, disjoint.
    private var mappings: [Mapping] = []
    /// The agent's reserved areas, if it is loaded: that of its library, and that of the library with space for more labels.
    private(set) var reservedAreas: [ReservedArea] = []

    package init() {}

    /// Code has been mapped, in place of whatever was there.
    package mutating func add(_ address: UInt64, _ length: UInt64, offset: UInt64, path: String, inode: UInt64 = 0, _ files: ModuleFiles) {
        let end = address &+ length
        guard length > 0, end > address else { return }
        let module = files.module(at: path, inode: inode)
        let bias = module?.image.bias(mappedAt: address, offset: offset)
        add(Mapping(start: address, end: end, bias: bias ?? 0, module: bias == nil ? nil : module))
        if let module, let bias, let area = ReservedArea(path, module, bias), !reservedAreas.contains(where: { $0.range == area.range }) {
            reservedAreas.append(area)
        }
    }

    package mutating func add(_ mapping: Mapping) {
        let first = bisect(mappings.count) { mappings[$0].end <= mapping.start }
        let last = bisect(mappings.count) { mappings[$0].start < mapping.end }
        var pieces = [mapping]
        if first < last {
            if mappings[first].start < mapping.start {
                var piece = mappings[first]
                piece.end = mapping.start
                pieces.insert(piece, at: 0)
            }
            if mappings[last - 1].end > mapping.end {
                var piece = mappings[last - 1]
                piece.start = mapping.end
                pieces.append(piece)
            }
        }
        mappings.replaceSubrange(first..<last, with: pieces)
    }

    /// As /proc/PID/maps shows it now. For a process whose beginning nobody has seen.
    package init(pid: pid_t, _ files: ModuleFiles) {
        for map in ProcessMaps(pid: pid) where map.isExecutable {
            add(map.start, map.end - map.start, offset: map.offset, path: map.path, inode: map.inode, files)
        }
    }

    func isAgent(_ mapping: Mapping) -> Bool { reservedAreas.contains { $0.isAgent(mapping) } }

    package func mapping(at address: UInt64) -> Mapping? {
        if let area = reservedAreas.first(where: { $0.range.contains(address) }) { return area.mapping }
        let index = bisect(mappings.count) { mappings[$0].end <= address }
        return index < mappings.count && mappings[index].start <= address ? mappings[index] : nil
    }
}

/// The part of an agent library's image that holds labels, which recorded calls return to, and stubs (docs/internals/trampoline.md,
/// CSupport/reserved.h).
struct ReservedArea {
    let range: Range<UInt64>
    let mapping: AddressSpace.Mapping
    /// As in CSupport/frames.h: blocks of LABEL_BLOCK_CODE bytes, a label each LABEL_BYTES, and LABEL_RETURN after each the address that it
    /// stands for.
    private static let labelBytes: UInt64 = 16, labelsBytes: UInt64 = 0x100000

    init?(_ path: String, _ module: UnwindModule, _ bias: UInt64) {
        guard path.split(separator: "/").last?.hasPrefix("libtracer") == true, let segment = module.image.emptySegment,
            segment.byteCount >= 2 * Self.labelsBytes
        else { return nil }
        let start = segment.address &+ bias, end = start &+ segment.byteCount
        guard start < end else { return nil }
        range = start..<end
        mapping = AddressSpace.Mapping(start: start, end: end, bias: bias, module: module)
    }

    func isLabel(_ address: UInt64) -> Bool {
        isInBlock(address) && (address &- range.lowerBound) % (2 * Self.labelsBytes) < Self.labelsBytes
    }
    private func isInBlock(_ address: UInt64) -> Bool {
        let bytes = range.upperBound - range.lowerBound
        return address &- range.lowerBound < bytes - bytes % (2 * Self.labelsBytes)
    }
    /// Address of the word that holds the return address of this label.
    func returnWord(ofLabel address: UInt64) -> UInt64 { (address & ~(Self.labelBytes - 1)) &+ Self.labelsBytes }
    func isReturnWord(_ address: UInt64) -> Bool {
        isInBlock(address) && isLabel(address &- Self.labelsBytes) && address % Self.labelBytes == 0
    }
    /// Also its text.
    fileprivate func isAgent(_ mapping: AddressSpace.Mapping) -> Bool { mapping.module === self.mapping.module }
}
