// What the kernel says of the process's memory while code is exchanged, asked once for all modules that are changed together.
import CSupport

struct MemorySurvey: BitwiseCopyable {
    /// /proc/self/maps and /proc/self/pagemap, where a task of our own has a table of descriptors to itself; else -1.
    private let maps: Int, pages: Int
    /// The process has locked some of its memory.
    let mayBeLocked: Bool

    nonisolated(unsafe) private static var shared: MemorySurvey?
    nonisolated(unsafe) private static var isShared = false
    /// All that is asked during `body` is asked once. ModuleLock is held.
    static func together(_ body: () -> Void) {
        isShared = true
        body()
        isShared = false
        shared?.end()
        shared = nil
    }
    /// What it has open is in the table of a task of the parent's.
    static func becomeChild() {
        isShared = false
        shared = nil
    }
    /// Until `end`.
    static func current() -> MemorySurvey {
        if let shared { return shared }
        let survey = MemorySurvey()
        if isShared { shared = survey }
        return survey
    }
    private init() {
        maps = Lock.asksKernel ? ProcessMaps.open() : -1
        pages = Lock.asksKernel ? ProcessMaps.open("/proc/self/pagemap") : -1
        mayBeLocked = maps < 0 || Process.mayHaveLocked
    }
    func end() {
        if MemorySurvey.isShared { return }
        if maps >= 0 { _ = SystemCall.call(SystemCall.close, maps) }
        if pages >= 0 { _ = SystemCall.call(SystemCall.close, pages) }
    }

    /// Returns true if some of these addresses may be written to. nil: the kernel has no such call.
    func hasWritable(in range: Range<UInt64>) -> Bool? {
        maps >= 0 ? ProcessMaps.hasWritable(in: range, maps) : ProcessMaps.hasWritable(in: range)
    }
    /// A bit for each of at most 64 pages of a file that may be the process's own copy by now; all where that cannot be known.
    @inline(never) func ownPages(of range: Range<UInt64>) -> UInt64 {
        // /proc/PID/pagemap has a word a page (Documentation/admin-guide/mm/pagemap.rst).
        let present: UInt64 = 1 &<< 63, isSwapped: UInt64 = 1 &<< 62, isOfFile: UInt64 = 1 &<< 61
        let page = UInt64(Memory.pageBytes), count = Int((range.upperBound &- range.lowerBound) / page), byteCount = count &* 8
        if pages < 0 || count > 64 { return .max }
        var words = InlineArray<64, UInt64>(repeating: 0)
        var span = words.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            let words = $0.baseAddress!
            if SystemCall.call(SystemCall.pread64, pages, bits(words), byteCount, Int(range.lowerBound / page &* 8)) != byteCount {
                return .max
            }
            var own: UInt64 = 0
            for n in 0..<count where words[n] & (present | isSwapped) != 0 && words[n] & isOfFile == 0 { own |= 1 &<< UInt64(n) }
            return own
        }
    }
}
