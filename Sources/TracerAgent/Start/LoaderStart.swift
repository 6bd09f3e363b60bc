// When the dynamic loader began. glibc reads the cycle counter in its first function and keeps the number in a static
// variable of ld.so (elf/rtld.c, start_time; LD_DEBUG=statistics prints what it is for). It has no name that could be
// looked up, but no other word of the loader's data looks like a moment just past: between the creation of the process
// and the agent. Exactly one such word is taken for it, and otherwise the phase is left out.
import CSupport
import CTraceLayout

enum LoaderStart {
    /// Longer ago than this, in ticks, a number is taken for something else: about half a minute.
    private static let reach: UInt64 = 1 << 36

    static func find(before now: UInt64) -> UInt64? {
        // On aarch64 glibc reads CLOCK_MONOTONIC instead, which another moment may be mistaken for.
        if agent.clock != UInt32(TRACE_CLOCK_TSC) || agent.loaderBase == 0 { return nil }
        let loader = agent.loaderBase
        guard let header = UnsafePointer<ElfHeader>(bitPattern: UInt(loader)), header.pointee.magic == ElfHeader.magicWord,
              header.pointee.programHeaderBytes == 56 else { return nil }
        let segments = UnsafePointer<ProgramHeader>(bitPattern: UInt(loader &+ header.pointee.programHeaders))!
        var found: UInt64?
        for n in 0..<Int(header.pointee.programHeaderCount) {
            let segment = segments[n]
            if segment.type != ProgramHeader.load || segment.flags & ProgramHeader.writable == 0 { continue }
            let words = UnsafePointer<UInt64>(bitPattern: UInt((loader &+ segment.address &+ 7) & ~7))!
            for place in 0..<Int(segment.memoryBytes / 8) {
                let word = words[place]
                if word == 0 || word > now || now &- word > reach { continue }
                if let found, found != word { return nil }
                found = word
            }
        }
        return found
    }
}
