// A growing array in pages of its own, whose elements never move: it grows by further parts, each twice as large as the one
// before. So a pointer to an element stays valid, and whoever reads an element needs no lock: the count is stored last, with
// release, and loaded with acquire. Only one thread at a time may append; which lock sees to that is said at each table.
import CSupport

struct Table<Element: BitwiseCopyable> {
    private static var firstPartBytes: Int { 16384 }
    private static var mostParts: Int { 24 }
    private static var mostPopulated: Int { 65536 }
    /// Elements of the first part, as a power of two.
    @inline(__always) private static var firstShift: Int {
        63 &- max(firstPartBytes / MemoryLayout<Element>.stride, 1).leadingZeroBitCount
    }

    private var parts = InlineArray<24, UnsafeMutablePointer<Element>?>(repeating: nil)
    private var published: UInt64 = 0
    private var capacity = 0
    private var partCount = 0

    init() {}

    var count: Int {
        @inline(__always) mutating get { Int(truncatingIfNeeded: tracer_load_acquire(&published)) }
    }

    /// False when memory is exhausted; the table is as before.
    mutating func append(_ element: Element) -> Bool {
        let index = count
        if index == capacity && !grow() { return false }
        pointer(index).pointee = element
        tracer_store_release_64(&published, UInt64(index &+ 1))
        return true
    }
    @inline(never) private mutating func grow() -> Bool {
        if partCount == Self.mostParts { return false }
        let elements = 1 &<< (Self.firstShift &+ partCount)
        let bytes = Memory.wholePages(elements &* MemoryLayout<Element>.stride)
        guard let buffer = Memory.pages(bytes) else { return false }
        // One that has grown goes on growing, but may not fill this part.
        if partCount > 0 { Memory.populate(buffer, min(bytes, Self.mostPopulated)) }
        parts[partCount] = buffer.assumingMemoryBound(to: Element.self)
        partCount &+= 1
        capacity &+= elements
        return true
    }
    /// For tables that nobody reads without the lock of those who write.
    mutating func removeAll() { truncate(to: 0) }
    mutating func truncate(to count: Int) { tracer_store_release_64(&published, UInt64(count)) }
    subscript(_ index: Int) -> Element {
        @inline(__always) get { pointer(index).pointee }
        @inline(__always) nonmutating set { pointer(index).pointee = newValue }
    }
    /// Valid for ever.
    @inline(__always) func pointer(_ index: Int) -> UnsafeMutablePointer<Element> {
        let position = index &+ 1 &<< Self.firstShift // the part before the first would have had as many
        let part = Self.part(position)
        return parts[part]! + (position &- 1 &<< (Self.firstShift &+ part))
    }
    /// How many elements stand side by side from this one on, were the table full.
    @inline(__always) func run(from index: Int) -> Int {
        let position = index &+ 1 &<< Self.firstShift
        return 2 &<< (Self.firstShift &+ Self.part(position)) &- position
    }
    @inline(__always) private static func part(_ position: Int) -> Int { 63 &- position.leadingZeroBitCount &- firstShift }
}
