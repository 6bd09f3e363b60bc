// A record of a ring, as include/uapi/linux/perf_event.h lays it out for what kernel_events.c asks for.
import CRecorder
import CTraceLayout
import Glibc
import Unwinding

package enum KernelRecord {
    package struct Origin {
        package var pid: pid_t, tid: pid_t
        /// CLOCK_MONOTONIC.
        package var nanoseconds: UInt64
        package var cpu: UInt16

        package init(pid: pid_t, tid: pid_t, nanoseconds: UInt64, cpu: UInt16) {
            self.pid = pid
            self.tid = tid
            self.nanoseconds = nanoseconds
            self.cpu = cpu
        }
    }
    package struct Mapping {
        package var addresses: Range<UInt64>
        /// In the file.
        package var offset: UInt64
        package var path: String
        /// 0 unknown.
        var inode: UInt64 = 0
        var isCode = false
        /// What is written there goes to the file.
        var isOutput = false

        package init(
            addresses: Range<UInt64>, offset: UInt64, path: String, inode: UInt64 = 0, isCode: Bool = false, isOutput: Bool = false
        ) {
            self.addresses = addresses
            self.offset = offset
            self.path = path
            self.inode = inode
            self.isCode = isCode
            self.isOutput = isOutput
        }

        /// The kernel calls memory that is of none //anon, [heap] and so on.
        var isOfFile: Bool { path.hasPrefix("/") && !path.hasPrefix("//") }
    }
    package struct Stack {
        /// Addresses in the kernel, innermost first; empty for a sample outside of it, and where it was not asked for.
        package var kernel: [UInt64] = []
        /// In the order of the bits that were asked for; empty for a thread that has no registers of its own.
        package var registers: [UInt64]
        /// From its pointer on.
        package var bytes: [UInt8]
    }

    case began(child: pid_t, of: pid_t, by: pid_t)
    case ended
    /// `isExec`: a new program, in the place of the one before.
    case named(String, isExec: Bool)
    case mapped(Mapping)
    case fault(address: UInt64, code: UInt64, isMajor: Bool)
    /// Registers and stack; what is made of it as soon as it has been read is `unwound`.
    case sample(Stack)
    /// As TRACE_RECORD_SAMPLES has them, innermost first, those of the kernel before the others.
    case unwound([UInt64], isWhole: Bool, isInKernel: Bool)
    case lost(UInt64)

    // enum perf_event_type, and PERF_RECORD_MISC_…
    private enum Kind {
        static let lost = 2, comm = 3, exit = 4, fork = 7, sample = 9, mmap2 = 10, lostSamples = 13, switched = 14
    }
    private static let commExec: UInt16 = 1 << 13, switchOut: UInt16 = 1 << 13, switchPreempted: UInt16 = 1 << 14
    private static let headerBytes = 8, trailerBytes = 16
    /// PERF_CONTEXT_MAX: from here on the values between addresses say where those are (perf_event_open(2)).
    private static let firstContext = UInt64(bitPattern: -4095)

    /// Reads a context switch, of which there may be a million per second: what the thread did, and when. nil: another kind of record.
    @inline(__always)
    package static func readSwitch(_ bytes: UnsafeRawBufferPointer, _ ring: recorder_ring) -> (kind: UInt16, origin: Origin)? {
        guard bytes.count >= headerBytes + trailerBytes, bytes.loadUnaligned(as: UInt32.self) == Kind.switched,
            Int(bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)) == switchBytes
        else { return nil }
        let flags = bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
        return (
            UInt16(flags & switchOut == 0 ? TRACE_SWITCH_IN : flags & switchPreempted == 0 ? TRACE_SWITCH_WAITS : TRACE_SWITCH_PREEMPTED),
            bytes.origin(pid: 8, tid: 12, time: 16, ring)
        )
    }
    /// A header, and what sample_id_all puts after it.
    static let switchBytes = headerBytes + trailerBytes

    /// The record at the beginning of `bytes`, and how long it is; without what is not for us and switches. nil: it does not hold together.
    package static func read(_ bytes: UnsafeRawBufferPointer, _ ring: recorder_ring) -> (record: (KernelRecord, Origin)?, byteCount: Int)? {
        guard bytes.count >= headerBytes else { return nil }
        let type = Int(bytes.loadUnaligned(as: UInt32.self)), flags = bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
        let byteCount = Int(bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
        guard byteCount >= headerBytes, byteCount <= bytes.count else { return nil }
        let body = UnsafeRawBufferPointer(rebasing: bytes[headerBytes..<byteCount])
        return (type == Kind.sample ? read(sample: body, ring) : read(type, flags, body, ring), byteCount)
    }

    private static func read(
        _ type: Int, _ flags: UInt16, _ all: UnsafeRawBufferPointer, _ ring: recorder_ring
    ) -> (KernelRecord, Origin)? {
        // sample_id_all: pid, tid; time.
        guard all.count >= trailerBytes else { return nil }
        let end = all.count - trailerBytes
        let origin = all.origin(pid: end, tid: end + 4, time: end + 8, ring)
        let record: KernelRecord
        switch type {
        case Kind.fork where end >= 24: // pid, ppid; tid, ptid; time
            let child = all.origin(pid: 0, tid: 8, time: 16, ring)
            return (.began(child: child.tid, of: all.id(4), by: all.id(12)), child)
        case Kind.exit where end >= 24: return (.ended, all.origin(pid: 0, tid: 8, time: 16, ring))
        case Kind.comm where end >= 8:
            record = .named(all.text(8, end), isExec: flags & commExec != 0)
        case Kind.mmap2 where end >= 64: // pid, tid; address; length; offset; 24 bytes of the file; protection, flags; path
            let address = all.word(8), length = all.word(16)
            guard length <= UInt64.max - address else { return nil }
            record = .mapped(
                Mapping(
                    addresses: address..<address + length, offset: all.word(24), path: all.text(64, end), inode: all.word(40),
                    isCode: all.half(56) & UInt32(PROT_EXEC) != 0,
                    isOutput: all.half(56) & UInt32(PROT_WRITE) != 0 && all.half(60) & UInt32(MAP_SHARED) != 0))
        case Kind.lost where end >= 16, Kind.lostSamples where end >= 8:
            record = .lost(all.word(type == Kind.lost ? 8 : 0))
        default: return nil
        }
        return (record, origin)
    }

    /// Reads a sample. Its length determines which fields it has, and so which event it is of: kernel_events.h.
    private static func read(sample all: UnsafeRawBufferPointer, _ ring: recorder_ring) -> (KernelRecord, Origin)? {
        guard all.count >= RECORDER_MAJOR_FAULT_BYTES else { return nil }
        let origin = all.origin(pid: 8, tid: 12, time: 16, ring)
        if all.count < RECORDER_LEAST_STACK_BYTES {
            return (.fault(address: all.word(24), code: all.word(0), isMajor: all.count == RECORDER_MAJOR_FAULT_BYTES), origin)
        }
        var stack = Stack(registers: [], bytes: []), offset = 32
        if ring.has_kernel_stacks != 0 {
            let count = all.word(offset)
            guard count <= UInt64((all.count - offset - 16) / 8) else { return nil }
            stack.kernel = (1..<Int(count) + 1).map { all.word(offset + $0 * 8) }.filter { $0 < firstContext }
            offset += 8 + Int(count) * 8
        }
        let hasRegisters = all.word(offset) == 2 // PERF_SAMPLE_REGS_ABI_64
        offset += 8
        if hasRegisters {
            let count = SampleUnwinder.registerMask.nonzeroBitCount
            guard all.count >= offset + count * 8 + 8 else { return nil }
            stack.registers = (0..<count).map { all.word(offset + $0 * 8) }
            offset += count * 8
        }
        if all.count >= offset + 8 {
            let capacity = Int(truncatingIfNeeded: all.word(offset))
            if capacity > 0, capacity <= all.count - offset - 16 {
                let there = Int(truncatingIfNeeded: all.word(offset + 8 + capacity))
                stack.bytes = Array(all[(offset + 8)...].prefix(min(max(there, 0), capacity)))
            }
        }
        return (.sample(stack), origin)
    }
}

/// The fields of a record by their offsets. Callers have compared these with `count`.
extension UnsafeRawBufferPointer {
    fileprivate func half(_ offset: Int) -> UInt32 { loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    fileprivate func word(_ offset: Int) -> UInt64 { loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
    fileprivate func id(_ offset: Int) -> pid_t { loadUnaligned(fromByteOffset: offset, as: pid_t.self) }
    /// Up to a NUL.
    fileprivate func text(_ offset: Int, _ end: Int) -> String { String(decoding: self[offset..<end].prefix { $0 != 0 }, as: UTF8.self) }

    fileprivate func origin(pid: Int, tid: Int, time: Int, _ ring: recorder_ring) -> KernelRecord.Origin {
        KernelRecord.Origin(pid: id(pid), tid: id(tid), nanoseconds: word(time), cpu: UInt16(truncatingIfNeeded: ring.cpu))
    }
}
