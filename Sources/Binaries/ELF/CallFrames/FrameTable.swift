// The functions of one file that .eh_frame describes, also those without a symbol.
import TraceFormat

/// Valid as long as the file is open.
package struct FrameTable {
    /// Ascending by address.
    package let functions: [CallFrames.Function]
    private let frames: CallFrames
    private let commons: CallFrames.Commons

    package init(_ file: CodeFile) {
        frames = Self.frames(file) ?? CallFrames(UnsafeRawBufferPointer(start: nil, count: 0), address: 0)
        var functions: [CallFrames.Function] = [], commons = CallFrames.Commons()
        frames.forEachFunction(&commons) { if $0.byteCount < 1 << 31 { functions.append($0) } }
        functions.sort { ($0.address, $0.byteCount) < ($1.address, $1.byteCount) }
        (self.functions, self.commons) = (functions, commons)
    }

    private static func frames(_ file: CodeFile) -> CallFrames? {
        if let section = file.section(".eh_frame"), section.byteCount > 0 {
            return CallFrames(file.bytes(of: section), address: section.address)
        }
        // A file without sections.
        guard let header = file.programHeaders(.frameIndex).first,
            let index = FrameIndex(file.content.bytes(at: header.address), address: header.address)
        else { return nil }
        return CallFrames(file.content.bytes(at: index.framesAddress), address: index.framesAddress)
    }

    package func function(containing address: UInt64) -> CallFrames.Function? {
        var index = bisect(functions.count) { functions[$0].address < address }
        if index == functions.count || functions[index].address > address { index -= 1 }
        guard index >= 0, address - functions[index].address < functions[index].byteCount else { return nil }
        return functions[index]
    }

    package func isSignalFrame(_ function: CallFrames.Function) -> Bool { commons[function].isSignalFrame }

    /// The instructions of the function's CIE, and its own.
    package func instructions(of function: CallFrames.Function) -> (common: FrameInstructions, own: FrameInstructions) {
        let common = commons[function]
        return (frames.instructions(common.program, common), frames.instructions(function.program, common))
    }
}
