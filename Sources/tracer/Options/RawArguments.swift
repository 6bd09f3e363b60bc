// A program's arguments, byte for byte.
import Glibc

/// The last `count` of this process's arguments as the kernel gave them, each with its NUL: a String repairs what is not UTF-8.
func rawArguments(last count: Int) -> [[CChar]] {
    let total = Int(CommandLine.argc)
    return (max(0, total - count)..<total).compactMap { index in
        CommandLine.unsafeArgv[index].map { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
    }
}
