// Stacks other than the threads' own whose bounds are known, since makecontext was given them. On one of them a call proves that what lies
// below it was left. Of any other stack nobody knows where it ends: two may be neighbours in one mapping.
import CSupport

enum KnownStacks {
    struct Stack: BitwiseCopyable {
        var low: UInt64 = 0, high: UInt64 = 0
        /// The bounds are those of a mapping, in which there may be several stacks.
        var isMapping = false
        /// Innermost open frame, and below it the others, linked by `below`; only where every call on such a stack takes the slow path.
        var innermost: Frame?
        /// Frames of an earlier epoch may have been released.
        var epoch: UInt64 = 0

        func contains(_ address: UInt64) -> Bool { address &- low < high &- low }
    }
    /// A stack of 2^n bytes or more, and less than twice as many, is found by the aligned blocks of 2^n bytes that it touches: three at
    /// most. So an address is looked for once for each n that there is.
    private struct Block: BitwiseCopyable {
        var key: UInt64 = 0 // 0: free
        var stack: UInt32 = 0
    }

    nonisolated(unsafe) private static var lock = Lock()
    nonisolated(unsafe) private static var stacks = Table<Stack>()
    nonisolated(unsafe) private static var blocks: UnsafeMutablePointer<Block>?
    nonisolated(unsafe) private static var capacity = 0
    nonisolated(unsafe) private static var used = 0
    /// Bit n: there are stacks of 2^n bytes.
    nonisolated(unsafe) private static var classes: UInt64 = 0
    nonisolated(unsafe) private static var epoch: UInt64 = 0
    private static let most = 1 << 20

    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    /// Links to frames must not be followed any more: some are about to be released.
    static func forgetFrames() {
        if classes == 0 { return }
        lock.lock()
        epoch &+= 1
        lock.unlock()
    }

    /// A frame that was thought to be dead has returned there: these bounds are not those of one stack.
    static func distrust(_ address: UInt64) {
        with(address) { $0.pointee.high = $0.pointee.low }
    }

    /// Adds a stack, in place of those that it overlaps. False: the same was known.
    @discardableResult static func add(_ low: UInt64, _ high: UInt64, isMapping: Bool = false) -> Bool {
        if high &- low < 256 || high < low { return true }
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<2 {
            guard let old = find(n == 0 ? low : high &- 1) else { continue }
            if old.pointee.low == low && old.pointee.high == high && !old.pointee.isMapping {
                old.pointee.innermost = nil
                return false
            }
            old.pointee.high = old.pointee.low
        }
        if stacks.count == most { removeAll() }
        if (used &+ 3) &* 2 > capacity && !grow() { return true }
        let index = stacks.count
        if stacks.append(Stack(low: low, high: high, isMapping: isMapping)) { insert(index) }
        return true
    }

    /// Calls `body` with the stack that the address is on, if it is known.
    @inline(never) static func with(_ address: UInt64, _ body: (UnsafeMutablePointer<Stack>) -> Void) {
        if classes == 0 { return }
        lock.lock()
        if let stack = find(address) {
            if stack.pointee.epoch != epoch {
                stack.pointee.epoch = epoch
                stack.pointee.innermost = nil
            }
            body(stack)
        }
        lock.unlock()
    }
    /// Bounds of one stack; nil: not known.
    @inline(never) static func bounds(of address: UInt64) -> Range<UInt64>? {
        var found: Range<UInt64>?
        with(address) { if !$0.pointee.isMapping { found = $0.pointee.low..<$0.pointee.high } }
        return found
    }

    // MARK: - The table; the lock is held

    private static func shift(_ stack: Stack) -> UInt64 { UInt64(63 &- (stack.high &- stack.low).leadingZeroBitCount) }
    private static func key(_ address: UInt64, _ shift: UInt64) -> UInt64 { (address &>> shift) &<< 6 | shift }
    private static func bucket(_ key: UInt64) -> Int {
        Int(truncatingIfNeeded: (key &* 0x9e37_79b9_7f4a_7c15) &>> 32) & (capacity &- 1) // 2^64 over the golden ratio
    }

    private static func find(_ address: UInt64) -> UnsafeMutablePointer<Stack>? {
        guard let blocks else { return nil }
        var left = classes
        while left != 0 {
            let shift = UInt64(left.trailingZeroBitCount), key = key(address, shift)
            left &= left &- 1
            var bucket = bucket(key)
            while blocks[bucket].key != 0 {
                if blocks[bucket].key == key {
                    let stack = stacks.pointer(Int(blocks[bucket].stack))
                    if stack.pointee.contains(address) { return stack }
                }
                bucket = (bucket &+ 1) & (capacity &- 1)
            }
        }
        return nil
    }

    @inline(never) private static func insert(_ index: Int) {
        let stack = stacks.pointer(index).pointee, shift = shift(stack)
        classes |= 1 &<< shift
        var block = stack.low &>> shift
        while block <= (stack.high &- 1) &>> shift {
            let key = block &<< 6 | shift
            var bucket = bucket(key)
            while blocks![bucket].key != 0 { bucket = (bucket &+ 1) & (capacity &- 1) }
            blocks![bucket] = Block(key: key, stack: UInt32(index))
            used &+= 1
            block &+= 1
        }
    }

    /// A larger table, or the same without what was replaced.
    @inline(never) private static func grow() -> Bool {
        var live = 0
        for n in 0..<stacks.count {
            let stack = stacks.pointer(n)
            if stack.pointee.high == stack.pointee.low { continue }
            stacks.pointer(live).pointee = stack.pointee
            live &+= 1
        }
        var wanted = 1024
        while wanted < live &* 12 { wanted = wanted &* 2 }
        guard let pages = Memory.pages(wanted &* MemoryLayout<Block>.stride) else { return false }
        if let blocks { Memory.release(blocks, capacity &* MemoryLayout<Block>.stride) }
        blocks = pages.assumingMemoryBound(to: Block.self)
        capacity = wanted
        used = 0
        classes = 0
        stacks.truncate(to: live)
        for n in 0..<live { insert(n) }
        return true
    }
    private static func removeAll() {
        stacks.truncate(to: 0)
        _ = grow()
    }
}
