// Determines from the first bytes of a file how the kernel would run it. Pure, and every read is checked: the file may be
// anything. Scripts: Linux, fs/binfmt_script.c.
import ELF

/// How a file starts, as far as the recorder cares.
package enum ExecutableFormat: Equatable, Sendable {
    /// A 64-bit little-endian executable for some architecture. `loader` is its PT_INTERP, nil when it has none.
    case elf(elfMachine: UInt16, loader: String?)
    case elf32
    case elfOtherByteOrder
    /// "#!" and what follows: at most one argument, as Linux passes it.
    case script(interpreter: String, argument: String?)
    /// No magic number, but text: what execvp(3) gives to /bin/sh.
    case text
    case unknown
    /// Says ELF but is cut short, is not a program, or points outside itself.
    case damaged(String)
}

extension ExecutableFormat {
    /// BINPRM_BUF_SIZE: all that the kernel looks at.
    static let headBytes = 256

    package init(reading read: ReadBytes) {
        let head = read(0, ExecutableFormat.headBytes)
        if let elf = ExecutableFormat.elf(head, read) {
            self = elf
        } else if head.starts(with: [0x23, 0x21]) {
            self = ExecutableFormat.script(head)
        } else {
            // The shell's own test: a NUL in the first line means that it is not text.
            let line = head.prefix { $0 != 0x0a }
            self = head.isEmpty || !line.contains(0) ? .text : .unknown
        }
    }

    /// nil: it does not say ELF.
    private static func elf(_ head: [UInt8], _ read: ReadBytes) -> ExecutableFormat? {
        do throws(FileHeader.Refusal) {
            let header = try FileHeader(head), type = header.type
            guard type == 2 || type == 3 else { return .damaged("its ELF type is \(type), not a program") }
            guard let interpreter = try header.programHeaders(read).first(where: { $0.kind == .interpreter }) else {
                return .elf(elfMachine: header.elfMachine, loader: nil)
            }
            let bytes = interpreter.fileByteCount
            guard bytes > 1, bytes <= 4096 else { return .damaged("its PT_INTERP has \(bytes) bytes") }
            let path = read(interpreter.offset, Int(bytes))
            guard path.count == Int(bytes) else { return .damaged("its PT_INTERP lies outside the file") }
            return .elf(elfMachine: header.elfMachine, loader: String(decoding: path.prefix { $0 != 0 }, as: UTF8.self))
        } catch {
            switch error {
            case .noELF: return nil
            case .truncated: return .damaged("its ELF header is truncated")
            case .otherClass(1): return .elf32
            case .otherClass(let number): return .damaged("its ELF class is \(number)")
            case .otherByteOrder: return .elfOtherByteOrder
            case .programHeaderBytes(let bytes): return .damaged("its program headers have \(bytes) bytes each")
            case .programHeadersOutside: return .damaged("its program headers lie outside the file")
            }
        }
    }

    private static func script(_ head: [UInt8]) -> ExecutableFormat {
        let line = head.dropFirst(2).prefix { $0 != 0x0a && $0 != 0 }
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let words = line.drop(while: isBlank)
        let interpreter = words.prefix { !isBlank($0) }
        guard !interpreter.isEmpty else { return .damaged("its #! line names no interpreter") }
        // A line longer than the kernel's buffer is cut: in the argument silently, in the interpreter with ENOEXEC.
        if interpreter.endIndex == head.endIndex, head.count == headBytes {
            return .damaged("its #! line is longer than \(headBytes) bytes")
        }
        var rest = words.dropFirst(interpreter.count).drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return .script(
            interpreter: String(decoding: interpreter, as: UTF8.self),
            argument: rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self))
    }
}
