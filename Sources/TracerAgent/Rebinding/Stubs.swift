// Stubs and their descriptors, in blocks. The first block is in the library's own image, where unwinders know the code; a
// program that calls more functions gets further ones, within reach of the trampolines.
import CSupport

enum Stubs {
    enum Entry { case call, special }

    /// Stubs that lead to one of the two entries; the next free one.
    private struct Page {
        var next = 0
        var end = 0
    }
    nonisolated(unsafe) private static var calls = Page()
    nonisolated(unsafe) private static var specials = Page()
    /// So many have been written.
    nonisolated(unsafe) private static var count = 0
    nonisolated(unsafe) private static var isFull = false

    static func address(of index: Int) -> UInt64 { UInt64(UInt(bitPattern: tracer_stub(index))) }
    static func stub(of descriptor: UnsafeMutablePointer<function_descriptor>) -> UInt64 {
        address(of: Int(tracer_stub_index(descriptor)))
    }
    static func descriptor(ofStub stub: UInt64) -> UnsafeMutablePointer<function_descriptor> {
        tracer_function(tracer_stub_index(UnsafePointer<UInt8>(bitPattern: UInt(stub))!))
    }

    /// A fresh descriptor whose stub is written and executable. nil: no more, or no memory.
    static func take(_ entry: Entry) -> Int? {
        entry == .call ? take(from: &calls, entry) : take(from: &specials, entry)
    }
    private static func take(from page: inout Page, _ entry: Entry) -> Int? {
        if page.next == page.end && !write(&page, entry) { return nil }
        defer { page.next &+= 1 }
        return page.next
    }

    /// What a stub says depends only on where it is, so a page of them is written once, while it is writable and not
    /// executable, and never touched again.
    private static func write(_ page: inout Page, _ entry: Entry) -> Bool {
        // Pages at a time: the first ones of a process are many, special functions few.
        let bytes = entry == .call ? max(agent.pageBytes, 32768) : agent.pageBytes
        let perPage = bytes / Int(STUB_BYTES), descriptorBytes = perPage &* Int(FUNCTION_BYTES)
        var first = count
        let left = Int(STUB_BLOCK) &- first % Int(STUB_BLOCK)
        if first % Int(STUB_BLOCK) != 0 && left < perPage { first &+= left }
        if first % Int(STUB_BLOCK) == 0 && !addBlock(first / Int(STUB_BLOCK)) {
            if !isFull {
                isFull = true
                Message.say { $0.append("more functions than there is room for: those that come later are not recorded") }
            }
            return false
        }
        let descriptors = UInt64(UInt(bitPattern: tracer_function(first)))
        if !Memory.protect(address(of: first), UInt64(bytes), Memory.readWrite)
            || !Memory.protect(descriptors, UInt64(descriptorBytes), Memory.readWrite) { return false }
        if entry == .call && first > perPage {
            Memory.populate(tracer_function(first), descriptorBytes)
            Memory.populate(tracer_stub(first), bytes)
        }
        let target = entry == .call ? agent.trampolines.enter : agent.trampolines.special
        for index in first..<(first &+ perPage) {
            Stub.write(at: tracer_stub(index), descriptor: UInt64(UInt(bitPattern: tracer_function(index))), enter: target)
        }
        if !Memory.protectCode(address(of: first), UInt64(bytes)) { return false }
        page = Page(next: first, end: first &+ perPage)
        count = first &+ perPage
        return true
    }

    // MARK: - Blocks

    private static func addBlock(_ block: Int) -> Bool {
        if block >= Int(STUB_BLOCKS) { return false }
        guard let place = block == 0 ? tracer_room_stub_block() : mapNear() else { return false }
        tracer_set_stub_block(block, place)
        return true
    }

    /// Pages that nobody may use yet, as near to the library as there is room.
    private static func mapNear() -> UnsafeMutablePointer<UInt8>? {
        let bytes = Int(STUB_BLOCK_BYTES), here = Int(bitPattern: UInt(tracer_code_low()))
        var distance = bytes &* 2
        while distance < reach {
            for side in 0..<2 {
                let place = side == 0 ? here &- distance : here &+ distance
                let result = SystemCall.call(SystemCall.mmap, place & ~65535, bytes, 0, 0x10_4022, -1, 0) // MAP_FIXED_NOREPLACE
                if failed(result) { continue }
                if abs(result &- here) < reach { return UnsafeMutablePointer(bitPattern: result) } // before Linux 4.17 a mere hint
                Memory.release(UnsafeMutableRawPointer(bitPattern: result), bytes)
            }
            distance &+= bytes
        }
        return nil
    }
    #if arch(x86_64)
    private static let reach = 1 << 30 // a jump has 31 bits
    #elseif arch(arm64)
    private static let reach = 120 << 20 // a branch has 128 MB
    #endif
}

enum Stub {
    #if arch(x86_64)
    /// lea descriptor(%rip), %r11; jmp enter. Twelve of sixteen bytes: a jump that ends on a 32-byte boundary is slow on
    /// Skylake and its kin (Intel SKX102), so none does. No endbr64: Linux has no indirect branch tracking in user space.
    static func write(at place: UnsafeMutablePointer<UInt8>, descriptor: UInt64, enter: UInt64) {
        let start = UInt64(UInt(bitPattern: place))
        let raw = UnsafeMutableRawPointer(place)
        place[0] = 0x4c
        place[1] = 0x8d
        place[2] = 0x1d
        (raw + 3).storeBytes(of: UInt32(truncatingIfNeeded: descriptor &- (start &+ 7)), as: UInt32.self)
        place[7] = 0xe9
        (raw + 8).storeBytes(of: UInt32(truncatingIfNeeded: enter &- (start &+ 12)), as: UInt32.self)
        (raw + 12).storeBytes(of: 0xcccc_cccc, as: UInt32.self)
    }
    #elseif arch(arm64)
    /// adr x17, descriptor; b enter. Nothing of them is in guarded pages, so no `bti`.
    static func write(at place: UnsafeMutablePointer<UInt8>, descriptor: UInt64, enter: UInt64) {
        let start = UInt64(UInt(bitPattern: place))
        let words = UnsafeMutableRawPointer(place).assumingMemoryBound(to: UInt32.self)
        let toDescriptor = UInt32(truncatingIfNeeded: descriptor &- start)
        let toEntry = UInt32(truncatingIfNeeded: Int64(bitPattern: enter &- (start &+ 4)) &>> 2)
        words[0] = 0x1000_0011 | (toDescriptor & 3) &<< 29 | (toDescriptor &>> 2 & 0x7ffff) &<< 5
        words[1] = 0x1400_0000 | toEntry & 0x3ff_ffff
        words[2] = 0xd420_0000 // brk #0
        words[3] = 0xd420_0000
    }
    #endif
}
