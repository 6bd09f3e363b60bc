// When the dynamic loader began. glibc reads the cycle counter in its first function and keeps the number in a static
// variable of ld.so (elf/rtld.c, start_time; LD_DEBUG=statistics prints what it is for). It has no name that could be
// looked up, but no other word of the loader's data looks like a moment just past: between exec, or the creation of the
// process, and the agent. Exactly one such word is taken for it, and otherwise the phase is omitted. The narrower these
// limits, the less often one of the loader's pointers (the counter of a machine that is up for 15 hours reads like one) or
// small numbers (as that of one just booted does) lies between them too.
import CSupport
import CTraceLayout

enum LoaderStart {
    /// Longer ago than this, in ticks, a number is taken for something else: about half a minute.
    private static let farthest: UInt64 = 1 << 36
    /// More than any CPU counts in a nanosecond.
    private static let ticksPerNanosecond: UInt64 = 8

    /// `now`: the agent's first moment, in ticks. `age`: how long ago the process can have begun at most, in ns; nil: unknown.
    static func find(before now: UInt64, age: UInt64?) -> UInt64? {
        // On aarch64 glibc reads CLOCK_MONOTONIC instead, which another moment may be mistaken for.
        if Clock.source != UInt32(TRACE_CLOCK_TSC) || Process.loaderBase == 0 { return nil }
        let loader = Process.loaderBase
        guard let header = UnsafePointer<ElfHeader>(bitPattern: UInt(loader)), header.pointee.magic == ElfHeader.magicWord,
            header.pointee.programHeaderBytes == 56
        else { return nil }
        let segments = UnsafePointer<ProgramHeader>(bitPattern: UInt(loader &+ header.pointee.programHeaders))!
        let reach = age.map { $0 < farthest / ticksPerNanosecond ? $0 &* ticksPerNanosecond : farthest } ?? farthest
        var found: UInt64?
        for n in 0..<Int(header.pointee.programHeaderCount) {
            let segment = segments[n]
            if segment.type != ProgramHeader.load || segment.flags & ProgramHeader.writable == 0 { continue }
            let words = UnsafePointer<UInt64>(bitPattern: UInt((loader &+ segment.address &+ 7) & ~7))!
            for index in 0..<Int(segment.memoryBytes / 8) {
                let word = words[index]
                if word == 0 || word > now || now &- word > reach { continue }
                if let found, found != word { return nil }
                found = word
            }
        }
        return found
    }
}
