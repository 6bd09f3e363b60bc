// A trace file begins with these bytes.
import CTraceLayout

extension trace_file_header {
    var hasMagic: Bool {
        withUnsafeBytes(of: magic) { $0.elementsEqual([0x54, 0x52, 0x41, 0x43, 0x45, 0x52, 0x1a, 0x0a]) }
    }
}
