// Stubs and their hooks, in blocks. The first block is in the library's own image, where unwinders know the code; a
// program that calls more functions gets further ones, within reach of the trampolines.
import CSupport

enum Stubs {
    enum Entry { case call, special, lazy }

    /// Stubs that lead to one of the entries; the next free one.
    private struct Page {
        var next = 0
        var end = 0
    }
    nonisolated(unsafe) private static var calls = Page()
    nonisolated(unsafe) private static var specials = Page()
    nonisolated(unsafe) private static var lazies = Page()
    /// Number of stubs that have been written.
    nonisolated(unsafe) private static var count = 0
    nonisolated(unsafe) private static var isFull = false
    /// Bytes of the stubs that are written together, of functions.
    private static let mostCalls = 32768
    nonisolated(unsafe) private static var nextCalls = mostCalls

    /// Before the first one: this many slots will ask.
    static func expect(_ slots: Int) { nextCalls = min(Memory.wholePages((slots &+ 1) &* Int(STUB_BYTES)), mostCalls) }

    static func address(of index: Int) -> UInt64 { UInt64(UInt(bitPattern: tracer_stub(index))) }
    /// A function's stub begins there.
    static func isOne(_ address: UInt64) -> Bool {
        var block = 0
        while block &* Int(STUB_BLOCK) < count {
            let distance = address &- Stubs.address(of: block &* Int(STUB_BLOCK))
            if distance < UInt64(STUB_BLOCK) &* UInt64(STUB_BYTES) {
                return distance % UInt64(STUB_BYTES) == 0 && block &* Int(STUB_BLOCK) &+ Int(distance / UInt64(STUB_BYTES)) < count
            }
            block &+= 1
        }
        return false
    }
    static func stub(of hook: UnsafeMutablePointer<function_hook>) -> UInt64 {
        address(of: Int(tracer_stub_index(hook)))
    }
    static func hook(ofStub stub: UInt64) -> UnsafeMutablePointer<function_hook> {
        tracer_function(tracer_stub_index(UnsafePointer<UInt8>(bitPattern: UInt(stub))!))
    }

    /// A fresh hook whose stub is written and executable. nil: no more, or no memory.
    static func take(_ entry: Entry) -> Int? {
        switch entry {
        case .call: take(from: &calls, entry)
        case .special: take(from: &specials, entry)
        case .lazy: take(from: &lazies, entry)
        }
    }
    private static func take(from page: inout Page, _ entry: Entry) -> Int? {
        if page.next == page.end && (isFull || !write(&page, entry)) { return nil }
        defer { page.next &+= 1 }
        return page.next
    }

    /// Writes the next page or pages of stubs. The content of a stub depends only on its address, so they are written once, while they
    /// are writable and not executable, and never touched again.
    private static func write(_ page: inout Page, _ entry: Entry) -> Bool {
        // Pages at a time: the first ones of a process are many, special functions few.
        let bytes = max(Memory.pageBytes, entry == .call ? nextCalls : 0)
        if entry == .call { nextCalls = mostCalls }
        let perPage = bytes / Int(STUB_BYTES), hookBytes = perPage &* Int(FUNCTION_BYTES)
        var first = count
        let left = Int(STUB_BLOCK) &- first % Int(STUB_BLOCK)
        if first % Int(STUB_BLOCK) != 0 && left < perPage { first &+= left }
        if first % Int(STUB_BLOCK) == 0 && !addBlock(first / Int(STUB_BLOCK)) {
            isFull = true
            Message.warn { $0.append("too many functions: later ones are not recorded") }
            return false
        }
        let hooks = UInt64(UInt(bitPattern: tracer_function(first)))
        if !Memory.protect(address(of: first), UInt64(bytes), Memory.readWrite)
            || !Memory.protect(hooks, UInt64(hookBytes), Memory.readWrite)
        {
            return refuse()
        }
        if entry == .call && first > perPage {
            Memory.populate(tracer_function(first), hookBytes)
            Memory.populate(tracer_stub(first), bytes)
        }
        let target =
            switch entry {
            case .call: Trampolines.set.enter
            case .special: Trampolines.set.special
            case .lazy: tracer_address_lazy()
            }
        for index in first..<(first &+ perPage) {
            Stub.write(at: tracer_stub(index), hook: UInt64(UInt(bitPattern: tracer_function(index))), enter: target)
        }
        if !Memory.protectCode(address(of: first), UInt64(bytes)) { return refuse() }
        page = Page(next: first, end: first &+ perPage)
        count = first &+ perPage
        return true
    }

    /// Makes no more stubs from now on: what forbids code does not go away.
    private static func refuse() -> Bool {
        isFull = true
        return Message.refuseCode()
    }

    // MARK: - Blocks

    private static func addBlock(_ block: Int) -> Bool {
        if block >= Int(STUB_BLOCKS) { return false }
        guard let address = block == 0 ? tracer_reserved_stub_block() : mapNear() else { return false }
        tracer_set_stub_block(block, address)
        return true
    }

    /// Pages that nobody may use yet, as near to the library as there is free address space.
    private static func mapNear() -> UnsafeMutablePointer<UInt8>? {
        let bytes = Int(STUB_BLOCK_BYTES), here = Int(bitPattern: UInt(tracer_code_low()))
        var distance = bytes &* 2
        while distance < Architecture.stubReach {
            for side in 0..<2 {
                let address = side == 0 ? here &- distance : here &+ distance
                if let found = Memory.pages(at: UInt64(UInt(bitPattern: address & ~65535)), bytes, Memory.none) {
                    return UnsafeMutablePointer(bitPattern: UInt(found))
                }
            }
            distance &+= bytes
        }
        return nil
    }
}
