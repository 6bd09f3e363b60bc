// Functions of the kernel by their addresses (/proc/kallsyms: "ffffffff81000000 T _stext", "… t name\t[module]").
import CTraceLayout
import TraceFormat

package struct KernelSymbols {
    package struct Function: Equatable {
        package var start: UInt64
        /// The beginning of the next one, as far as it is near.
        package var end: UInt64
        package var name: [UInt8]

        package init(start: UInt64, end: UInt64, name: [UInt8]) {
            self.start = start
            self.end = end
            self.name = name
        }
    }

    /// In the order of their addresses, each with its name's range in `text`.
    private var symbols: [(start: UInt64, name: Range<Int>)] = []
    private let text: [UInt8]
    /// A function is shorter: beyond, the address is in something that has no symbol.
    private static let longest: UInt64 = 1 << 20
    private static let longestName = 512

    /// nil where this system does not tell: all addresses are 0 then (kernel.kptr_restrict, and who may not see them).
    package init?() {
        guard let text = ProcessStatus.readAll("/proc/kallsyms") else { return nil }
        self.init(text)
    }

    package init?(_ text: [UInt8]) {
        self.text = text
        var position = 0
        while position < text.count {
            let end = text[position...].firstIndex(of: 0x0a) ?? text.count
            if let symbol = Self.symbol(text, position..<end) { symbols.append(symbol) }
            position = end + 1
        }
        if symbols.isEmpty { return nil }
        symbols.sort { ($0.start, $0.name.lowerBound) < ($1.start, $1.name.lowerBound) } // functions of one address stay in their order
    }

    /// nil for what is no code, and for an address that is not shown.
    private static func symbol(_ text: [UInt8], _ line: Range<Int>) -> (start: UInt64, name: Range<Int>)? {
        var position = line.lowerBound, address: UInt64 = 0
        while position < line.upperBound, let digit = digit(text[position]) {
            address = address << 4 | UInt64(digit)
            position += 1
        }
        guard position + 3 < line.upperBound, text[position] == 0x20, text[position + 2] == 0x20,
            [0x54, 0x74, 0x57, 0x77].contains(text[position + 1]), // T, t, W, w: nm(1)
            address >= TRACE_KERNEL_ADDRESS
        else { return nil }
        let name = position + 3
        return (address, name..<(text[name..<line.upperBound].firstIndex(of: 0x09) ?? line.upperBound))
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// The functions that these addresses are in, each once, in the order of their addresses.
    package func functions(holding addresses: Set<UInt64>) -> [Function] {
        var found: [Function] = []
        for address in addresses.sorted() {
            if let last = found.last, address < last.end { continue }
            if let function = function(at: address) { found.append(function) }
        }
        return found
    }

    private func function(at address: UInt64) -> Function? {
        let next = bisect(symbols.count) { symbols[$0].start <= address }
        guard next > 0, address - symbols[next - 1].start < Self.longest else { return nil }
        let start = symbols[next - 1].start, following = next < symbols.count ? symbols[next].start : .max
        let end = start + min(following - start, Self.longest, .max - start)
        let first = bisect(next) { symbols[$0].start < start }
        return Function(start: start, end: end, name: Array(text[symbols[first].name].prefix(Self.longestName)))
    }
}
