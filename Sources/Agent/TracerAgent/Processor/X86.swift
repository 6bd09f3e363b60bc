// x86-64: stubs, labels, linkage tables, the loader's hook, start-up code, as instructions (Intel SDM volume 2).
#if arch(x86_64)
import CSupport

enum Stub {
    /// lea hook(%rip), %r11; jmp enter. Twelve of sixteen bytes: a jump that ends on a 32-byte boundary is slow on
    /// Skylake and its kin (Intel SKX102), so none does. No endbr64: Linux has no indirect branch tracking in user space.
    static func write(at address: UnsafeMutablePointer<UInt8>, hook: UInt64, enter: UInt64) {
        let start = UInt64(UInt(bitPattern: address))
        let raw = UnsafeMutableRawPointer(address)
        address[0] = 0x4c
        address[1] = 0x8d
        address[2] = 0x1d
        (raw + 3).storeBytes(of: UInt32(truncatingIfNeeded: hook &- (start &+ 7)), as: UInt32.self)
        address[7] = 0xe9
        (raw + 8).storeBytes(of: UInt32(truncatingIfNeeded: enter &- (start &+ 12)), as: UInt32.self)
        (raw + 12).storeBytes(of: 0xcccc_cccc, as: UInt32.self)
    }
}

enum ReturnLabel {
    /// call *(%r11); lea label(%rip), %r11; jmp returned. The jump ends at the fifteenth of sixteen bytes (Stub.write says why).
    static func write(at address: UnsafeMutableRawPointer, returned: UInt64) {
        address.storeBytes(of: 0x8d4c_13ff_41, as: UInt64.self) // 41 ff 13, 4c 8d
        address.storeBytes(of: 0x1d, toByteOffset: 5, as: UInt8.self)
        (address + 6).storeBytes(of: -10, as: Int32.self)
        address.storeBytes(of: 0xe9, toByteOffset: 10, as: UInt8.self)
        (address + 11).storeBytes(of: UInt32(truncatingIfNeeded: returned &- UInt64(UInt(bitPattern: address)) &- 15), as: UInt32.self)
        address.storeBytes(of: 0xcc, toByteOffset: 15, as: UInt8.self)
    }
    /// call *-16(%rsp); mov %r11, -16(%rsp); lea label(%rip), %r11; jmp returned. What was called through its own first bytes may have
    /// been called by a function that was compiled to know which registers it spares (gcc -fipa-ra): r11 is kept, below the
    /// return slot, where a handler's frame leaves 128 bytes (psABI 3.2.2).
    static func writePatched(at address: UnsafeMutableRawPointer, returned: UInt64) {
        address.storeBytes(of: 0x245c_894c_f024_54ff, as: UInt64.self) // ff 54 24 f0, 4c 89 5c 24 f0
        address.storeBytes(of: 0xffff_fff0_1d8d_4cf0, toByteOffset: 8, as: UInt64.self) // 4c 8d 1d -16
        address.storeBytes(of: 0xe9, toByteOffset: 16, as: UInt8.self)
        let distance = UInt32(truncatingIfNeeded: returned &- UInt64(UInt(bitPattern: address)) &- 21)
        address.storeBytes(of: distance, toByteOffset: 17, as: UInt32.self)
    }
}

extension Spills {
    /// At a return: what the function returns.
    var result: UInt64 { word(Int(RETURN_SLOT) &- 8).pointee }
    /// Offset of the register that has the first or second word of a result: rax, rdx.
    static func resultRegister(_ number: Int) -> Int { Int(RETURN_SLOT) &- 8 &- number &* 8 }
    /// Offset of the integer register of this number, from 4 on: r8, r9.
    static func laterRegister(_ number: Int) -> Int { -Int(SPILL_FIFTH) &- (number &- 4) &* 8 }
}

extension Trampolines {
    static func isReachable() -> Bool { true }

    /// A 32-bit displacement: the placeholder and the field's offset.
    static func patch(_ address: UnsafeMutableRawPointer, _ distance: UInt64) {
        let field = address.loadUnaligned(as: Int32.self) &- Int32(TLS_PLACEHOLDER)
        address.storeBytes(of: Int32(truncatingIfNeeded: Int64(bitPattern: distance)) &+ field, as: Int32.self)
    }
    /// call tracer_monotonic; nopl 0(%rax)
    static func patchClock(_ address: UnsafeMutableRawPointer) {
        let distance = tracer_address_monotonic() &- UInt64(UInt(bitPattern: address)) &- 5
        address.storeBytes(of: 0xe8, as: UInt8.self)
        address.storeBytes(of: UInt32(truncatingIfNeeded: distance), toByteOffset: 1, as: UInt32.self)
        address.storeBytes(of: 0x0040_1f0f, toByteOffset: Int(CLOCK_BYTES) &- 4, as: UInt32.self)
    }
    /// An instruction of five bytes becomes a jmp.
    static func jump(from address: UnsafeMutableRawPointer, to target: UnsafeMutableRawPointer) {
        address.storeBytes(of: 0xe9, as: UInt8.self)
        address.storeBytes(of: Int32(truncatingIfNeeded: target - address &- 5), toByteOffset: 1, as: Int32.self)
    }
}

/// The loader's debugger hook becomes a jump to `tracer_loader_event`.
///
/// Threads of a program that runs already may be on its page, and in the hook itself: then the page stays executable, and the code changes by one store of one byte.
/// The jump is written into the padding after `ret`, where nothing is executed; then `ret` becomes `nop`, and back.
enum LoaderHook {
    private static let ret: UInt8 = 0xc3, nop: UInt8 = 0x90
    /// Address of the `ret` with a jump after it; 0: none is there.
    nonisolated(unsafe) private static var place: UInt64 = 0

    /// False: the hook is not as expected, or the kernel refuses.
    static func open(_ loaderHook: UInt64, in loader: Image) -> Bool {
        if place != 0 { return exchange(ret, nop) }
        guard loaderHook != 0, let code = UnsafeMutableRawPointer(bitPattern: UInt(loaderHook)), loaderHook & 15 == 0 else { return false }
        let first = code.load(as: UInt32.self)
        let isMarked = first == 0xfa1e_0ff3 // endbr64
        let offset = isMarked ? 4 : 0
        if code.load(fromByteOffset: offset, as: UInt8.self) != ret { return false }
        let jump = code + (offset &+ 1), target = tracer_address_loader_event()
        let distance = Int64(bitPattern: target &- UInt64(UInt(bitPattern: jump)) &- 5)
        let isNear = distance == Int64(Int32(truncatingIfNeeded: distance))
        let end = offset &+ 1 &+ (isNear ? 5 : 14)
        guard end <= 16, isPadding(code.assumingMemoryBound(to: UInt8.self), from: offset &+ 1, to: end),
            Memory.protect(loaderHook, 16, Process.changingCode)
        else { return false }
        if isNear { // jmp target
            jump.storeBytes(of: 0xe9, as: UInt8.self)
            jump.storeBytes(of: Int32(truncatingIfNeeded: distance), toByteOffset: 1, as: Int32.self)
        } else { // jmp *0(%rip), and the address
            jump.storeBytes(of: 0x25ff, as: UInt16.self)
            jump.storeBytes(of: 0, toByteOffset: 2, as: UInt32.self)
            jump.storeBytes(of: target, toByteOffset: 6, as: UInt64.self)
        }
        place = loaderHook &+ UInt64(offset)
        tracer_store_release_8((code + offset).assumingMemoryBound(to: UInt8.self), nop)
        return Memory.protect(loaderHook, 16, Memory.readExecute)
    }
    static func close() { _ = place != 0 && exchange(nop, ret) }

    /// False: something else is there, a debugger's breakpoint for one.
    private static func exchange(_ old: UInt8, _ new: UInt8) -> Bool {
        let byte = UnsafeMutablePointer<UInt8>(bitPattern: UInt(place))!
        if byte.pointee != old || !Memory.protect(place, 1, Process.changingCode) { return false }
        tracer_store_release_8(byte, new)
        return Memory.protect(place, 1, Memory.readExecute)
    }

    /// Nothing but the instructions with which assemblers fill the space before a function: of another loader the next
    /// function may follow at once. Intel SDM volume 2B, NOP: 90 and 0F 1F /0, both with prefixes; CC: int3.
    private static func isPadding(_ code: UnsafePointer<UInt8>, from: Int, to: Int) -> Bool {
        var n = from
        while n < to {
            while code[n] == 0x66 || code[n] == 0x2e { n &+= 1 }
            if code[n] == 0x90 || code[n] == 0xcc {
                n &+= 1
                continue
            }
            if code[n] != 0x0f || code[n &+ 1] != 0x1f { return false }
            let operand = code[n &+ 2], mode = operand &>> 6
            if mode == 3 || mode == 0 && operand & 7 == 5 { return false } // not what an assembler writes
            n &+= 3 &+ (operand & 7 == 4 ? 1 : 0) &+ (mode == 1 ? 1 : mode == 2 ? 4 : 0)
        }
        return true
    }
}

/// Forms of the entries of a procedure linkage table, and of the loader's code that they lead to.
enum ProcedureLinkage {
    private static let endbranch: UInt32 = 0xfa1e_0ff3

    /// A jump through a slot of the same image: the function is elsewhere.
    static func isEntry(_ address: UInt64, in image: UnsafePointer<Image>) -> Bool {
        var here = address
        if image.pointee.word32(here) == endbranch { here = here &+ 4 }
        if let word = image.pointee.word32(here), word & 0xff == 0xf2 { here = here &+ 1 } // bnd
        guard let word = image.pointee.word32(here), word & 0xffff == 0x25ff,
            let displacement = image.pointee.word32(here &+ 2)
        else { return false }
        let slot = here &+ 6 &+ UInt64(bitPattern: Int64(Int32(bitPattern: displacement)))
        return image.pointee.contains(slot, 8)
    }

    /// `_dl_fixup`, which `_dl_runtime_resolve` calls once it has saved the registers. nil: it does something else, as it does
    /// for auditors that want to see calls, and for LD_PROFILE (`_dl_runtime_profile`).
    static func fixup(of resolver: UInt64, in loader: UnsafePointer<Image>) -> UInt64? {
        // movq 16(%rbx), %rsi; movq 8(%rbx), %rdi; call _dl_fixup: within the longest way to save registers.
        for address in resolver..<(resolver &+ 256) where loader.pointee.word32(address) == 0x1073_8b48 {
            guard loader.pointee.word32(address &+ 4) == 0x087b_8b48, let opcode = loader.pointee.word32(address &+ 8),
                opcode & 0xff == 0xe8,
                let distance = loader.pointee.word32(address &+ 9)
            else { continue }
            let target = address &+ 13 &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance)))
            return loader.pointee.isCode(target) ? target : nil
        }
        return nil
    }
}

/// Form of the C compiler's start-up code (crt1.o, _start).
enum StartCode {
    /// The slot of `call *slot(%rip)` among the instructions at the entry of the executable.
    static func slot(_ image: UnsafePointer<Image>) -> UInt64? {
        if !image.pointee.isCode(Process.entry) { return nil }
        for n in 0..<64 {
            let address = Process.entry &+ UInt64(n)
            guard image.pointee.word16(address) == 0x15ff, let displacement = image.pointee.word32(address &+ 2) else { continue }
            return address &+ 6 &+ UInt64(bitPattern: Int64(Int32(bitPattern: displacement)))
        }
        return nil
    }
}
#endif
