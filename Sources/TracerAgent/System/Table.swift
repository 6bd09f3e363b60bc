// A growing array in pages of its own. Elements may move when it grows: keep indices, not pointers.
struct Table<Element: BitwiseCopyable> {
    private var start: UnsafeMutablePointer<Element>?
    private(set) var count = 0
    private var capacity = 0

    init() {}

    /// False when memory is exhausted; the table is as before.
    mutating func append(_ element: Element) -> Bool {
        if count == capacity && !grow() { return false }
        start![count] = element
        count &+= 1
        return true
    }
    private mutating func grow() -> Bool {
        let stride = MemoryLayout<Element>.stride
        let bytes = capacity &* stride
        let wanted = bytes == 0 ? 16384 : bytes &* 2
        let result = bytes == 0
            ? SystemCall.call(SystemCall.mmap, 0, wanted, Memory.readWrite, 0x4022, -1, 0)
            : SystemCall.call(SystemCall.mremap, Int(bitPattern: start), Memory.wholePages(bytes), wanted, 1)
        if failed(result) { return false }
        start = UnsafeMutablePointer(bitPattern: result)
        capacity = wanted / stride
        // One that has grown goes on growing: what is new is half of it.
        if bytes != 0 { Memory.populate(UnsafeMutableRawPointer(bitPattern: result)!, wanted) }
        return true
    }
    mutating func removeAll() { count = 0 }
    subscript(_ index: Int) -> Element {
        @inline(__always) get { start![index] }
        @inline(__always) nonmutating set { start![index] = newValue }
    }
    /// Valid until the next append.
    @inline(__always) func pointer(_ index: Int) -> UnsafeMutablePointer<Element> { start! + index }
}
