// Facts about this process from the kernel: its id, the auxiliary vector (getauxval(3)), how it was started.
import CSupport

extension Memory {
    nonisolated(unsafe) static var pageBytes = 4096
}

enum Process {
    nonisolated(unsafe) static var pid: UInt32 = 0
    nonisolated(unsafe) private(set) static var programHeaders: UInt64 = 0
    nonisolated(unsafe) private(set) static var programHeaderCount = 0
    nonisolated(unsafe) private(set) static var loaderBase: UInt64 = 0
    nonisolated(unsafe) private(set) static var entry: UInt64 = 0
    nonisolated(unsafe) private(set) static var vdsoImage: UInt64 = 0
    nonisolated(unsafe) private(set) static var mainStackHigh: UInt64 = 0
    nonisolated(unsafe) private(set) static var isSecure = false
    /// Texts in pages of our own: the program as it was started, the executable, the directory.
    nonisolated(unsafe) private(set) static var program = CText(StaticString("program").utf8Start)
    nonisolated(unsafe) private(set) static var executable = CText(StaticString("?").utf8Start)
    /// What /proc/self/exe leads to: the executable, or the loader where that was executed and given the program's name.
    nonisolated(unsafe) private static var link = CText(StaticString("?").utf8Start)
    nonisolated(unsafe) private(set) static var directory = CText(StaticString(".").utf8Start)

    /// True if the program ran already when the agent was loaded: it has seen no start, and other threads may be anywhere.
    nonisolated(unsafe) static var wasRunning = false
    /// Protection of the loader's page of code while the agent changes it. Other threads of a program that runs already may be on it.
    static var changingCode: Int { wasRunning ? Memory.readWriteExecute : Memory.readWrite }
    /// True if `tracer attach` began the recording: it may end it, too, and then nothing of the agent's is to be found in a slot.
    nonisolated(unsafe) static var isAttached = false

    /// getauxval(3)'s table stands on the stack, after main's arguments and the environment that the kernel made. A program may have
    /// changed both arrays since (unsetenv(3) shortens one in place): their elements are addresses and zeros, and the table begins with
    /// the first word that is a small number, a type.
    static func begin(_ arguments: UnsafeMutablePointer<CText?>) {
        readNumber()
        mainStackHigh = UInt64(UInt(bitPattern: arguments))
        var vector = UnsafeRawPointer(arguments).assumingMemoryBound(to: UInt64.self)
        while vector.pointee == 0 || vector.pointee >= 4096 { vector += 1 }
        var n = 0
        var capabilities: UInt64 = 0, moreCapabilities: UInt64 = 0
        while vector[n] != 0 {
            let value = vector[n &+ 1]
            switch vector[n] {
            case 3: programHeaders = value // AT_PHDR
            case 5: programHeaderCount = Int(value) // AT_PHNUM
            case 6: Memory.pageBytes = Int(value) // AT_PAGESZ
            case 7: loaderBase = value // AT_BASE
            case 9: entry = value // AT_ENTRY
            case 16: capabilities = value // AT_HWCAP
            case 23: isSecure = value != 0 // AT_SECURE
            case 26: moreCapabilities = value // AT_HWCAP2
            case 31: // AT_EXECFN
                if let name = CText(bitPattern: UInt(value)) { program = name }
            case 33: vdsoImage = value // AT_SYSINFO_EHDR
            default: break
            }
            n &+= 2
        }
        tracer_set_capabilities(capabilities, moreCapabilities)
    }
    static func readNumber() { pid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.getpid)) }

    static func keepTexts(_ store: inout TextBuffer) {
        let name = store.start + store.count
        store.append(contentsOf: program)
        store.append(0)
        program = CText(name)
        link = read(&store) { readLink("/proc/self/exe", $0, $1) } ?? program
        // Overwritten: a program may put its title there, and mostly leaves the kernel's name of it as it was.
        if program[0] == 0 { program = read(&store, readKernelName) ?? link }
        directory =
            read(&store) {
                let count = SystemCall.call(SystemCall.getcwd, bits($0), $1)
                return failed(count) ? count : count &- 1
            } ?? directory
        executable = isStartedByLoader ? absoluteProgram(&store) : link
    }
    /// The kernel has mapped no loader beside what was executed: that is the loader, which was given the program. It has put the program's
    /// own values into the auxiliary vector, its path in place of its own (glibc elf/rtld.c, dl_main).
    static var isStartedByLoader: Bool { loaderBase == 0 }
    private static func absoluteProgram(_ store: inout TextBuffer) -> CText {
        if program[0] == 0x2f { return program }
        let start = store.start + store.count
        store.append(contentsOf: directory)
        store.append(0x2f)
        store.append(contentsOf: program)
        store.append(0)
        return CText(start)
    }
    private static func read(
        _ store: inout TextBuffer,
        _ call: (UnsafeMutablePointer<UInt8>, Int) -> Int
    ) -> CText? {
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        let start = store.start + store.count
        return span.withUnsafeMutableBufferPointer { bytes in
            let count = call(bytes.baseAddress!, 4095)
            if count <= 0 { return nil }
            bytes[count] = 0
            store.append(contentsOf: CText(bytes.baseAddress!))
            store.append(0)
            return CText(start)
        }
    }

    /// /proc/PID/comm (proc(5)), without the end of the line.
    private static func readKernelName(_ text: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> Int {
        KernelText.read("/proc/self/comm", text, capacity) &- 1
    }
    private static func readLink(_ path: StaticString, _ text: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> Int {
        SystemCall.call(SystemCall.readlinkat, SystemCall.currentDirectory, bits(path.utf8Start), bits(text), capacity)
    }

    /// False: none of its memory is locked (proc(5), /proc/PID/status, VmLck).
    static var mayHaveLocked: Bool {
        let name: StaticString = "VmLck:"
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer { bytes in
            let start = bytes.baseAddress!, count = KernelText.read("/proc/self/status", start, 4096)
            var n = 0
            while n &+ 16 < count {
                var k = 0
                while k < 6 && start[n &+ k] == name.utf8Start[k] { k = k &+ 1 }
                if k < 6 || n > 0 && start[n &- 1] != 0x0a {
                    n = n &+ 1
                    continue
                }
                n = n &+ 6
                while start[n] == 0x20 || start[n] == 0x09 { n = n &+ 1 }
                return start[n] != 0x30 || start[n &+ 1] != 0x20 // "0 kB"
            }
            return true
        }
    }

    static var isOnlyThread: Bool { threadCount == 1 }
    /// Nobody else is running the program's code. What runs a program for another architecture (qemu-user) has a thread of its own.
    static var isAlone: Bool {
        let count = threadCount
        return count == 1 || count == 2 && isEmulated
    }

    /// proc_task_getattr in fs/proc/base.c: a link for each thread beside the two of any directory. 0: not known.
    private static var threadCount: UInt64 {
        guard let task = FileStatus(of: "/proc/self/task") else { return 0 }
        return UInt64(task.links) &- 2
    }
    /// qemu-user answers for /proc/self/exe (linux-user/syscall.c, is_proc_myself), and leaves this to the kernel.
    private static var isEmulated: Bool {
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer { bytes in
            let count = readLink("/proc/thread-self/exe", bytes.baseAddress!, bytes.count &- 1)
            return !failed(count) && !equal(CText(bytes.baseAddress!), link)
        }
    }
}
