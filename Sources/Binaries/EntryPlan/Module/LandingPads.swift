// Landing pads of exceptions, from .gcc_except_table (Itanium C++ ABI, "Exception Handling Tables").
import ELF

enum LandingPads {
    /// Calls `body` with the address of each handler of the function whose table this is.
    static func forEach(of function: CallFrames.Function, _ code: ModuleCode, _ body: (UInt64) -> Void) {
        guard let table = function.lsda else { return }
        var reader = DwarfReader(code.content(at: table), address: table)
        let start = reader.pointer(reader.byte()) ?? function.address
        if reader.byte() != 0xff { _ = reader.unsigned() } // the table of types
        let encoding = reader.byte(), count = reader.unsigned()
        guard !reader.failed, encoding & 0x70 == 0, count <= UInt64(reader.end - reader.offset) else { return }
        reader.end = reader.offset + Int(count)
        while !reader.isAtEnd {
            _ = reader.pointer(encoding)
            _ = reader.pointer(encoding)
            if let landing = reader.pointer(encoding), !reader.failed { body(start &+ landing) }
            _ = reader.unsigned() // action
        }
    }
}
