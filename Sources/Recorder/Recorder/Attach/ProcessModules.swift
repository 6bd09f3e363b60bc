// The libraries of a running process, as far as leading one of its threads to dlopen(3) needs them.
import CRecorder
import ELF
import Glibc
import Unwinding

struct ProcessModules {
    struct Module {
        let path: String
        /// From the first mapping of the file to the end of the last.
        var range: Range<UInt64>
        /// Load bias: of a library, whose first segment begins at address 0.
        var bias: UInt64 { range.lowerBound }
    }
    let libc: Module
    let loader: Module
    /// Libraries that define malloc in libc's place: whoever is in them may hold their locks.
    let allocators: [Module]
    /// vdso(7): on aarch64, handlers of signals return there.
    let vdso: Range<UInt64>?
    /// dlopen of libc or libdl, or what libc has in its place.
    let open: (address: UInt64, mode: UInt64)
    /// Says why it failed; nil: not in libc.
    let openError: UInt64?
    /// __errno_location (LSB 5.0, libc).
    let errnoLocation: UInt64
    /// An instruction that makes a system call.
    let callInstruction: UInt64
    /// On x86-64, where handlers of signals return to if libc has set them up; nil: it was not found.
    let restorer: UInt64?

    init(pid: pid_t, _ memory: RemoteMemory) throws(Refusal) {
        var found: [String: Module] = [:], vdso: Range<UInt64>?
        for map in ProcessMaps(pid: pid) where !map.path.isEmpty {
            if map.path == "[vdso]" { vdso = map.start..<map.end }
            if let known = found[map.path] {
                found[map.path] = Module(
                    path: map.path, range: min(known.range.lowerBound, map.start)..<max(known.range.upperBound, map.end))
            } else if map.offset == 0, map.path.hasPrefix("/") {
                found[map.path] = Module(path: map.path, range: map.start..<map.end)
            }
        }
        self.vdso = vdso
        func only(_ isWanted: (Substring) -> Bool) -> Module? {
            // One that has been replaced is not read, but said to be.
            let all = found.values.filter { isWanted($0.path.split(separator: "/").last?.split(separator: " ").first ?? "") }
            return all.count == 1 ? all[0] : nil
        }
        guard let libc = only({ $0 == "libc.so.6" || $0.hasPrefix("libc-2.") }),
            let loader = only({ $0.hasPrefix("ld-linux-") || $0.hasPrefix("ld-2.") || $0 == "ld.so" })
        else {
            throw found.isEmpty
                ? AttachTarget.refused(pid, EACCES)
                : .cannotRun(
                    "process \(pid) has not the GNU C library (or two of it), which the agent needs: it cannot be recorded; or it has only just begun: try again"
                )
        }
        (self.libc, self.loader) = (libc, loader)
        guard let file = Self.file(libc, pid), let place = Self.call(in: file, libc, memory) else {
            throw .cannotRun(
                "process \(pid): \(libc.path) cannot be read, or was replaced since it started: restart the process, and attach then")
        }
        callInstruction = place
        restorer = Self.restorer(in: libc, pid, memory)
        let symbols = SymbolTable(file)
        guard let location = symbols.address(of: "__errno_location") else {
            throw .cannotRun("process \(pid): \(libc.path) is no GNU C library: it cannot be recorded")
        }
        errnoLocation = libc.bias &+ location
        openError = symbols.address(of: "dlerror").map { libc.bias &+ $0 }
        if let open = symbols.address(of: "dlopen") {
            self.open = (libc.bias &+ open, UInt64(RTLD_NOW))
        } else if let module = only({ $0 == "libdl.so.2" || $0.hasPrefix("libdl-2.") }), let file = Self.file(module, pid),
            let open = SymbolTable(file).address(of: "dlopen")
        {
            self.open = (module.bias &+ open, UInt64(RTLD_NOW)) // before glibc 2.34
        } else if let open = symbols.address(of: "__libc_dlopen_mode") {
            self.open = (libc.bias &+ open, UInt64(RTLD_NOW) | 0x8000_0000) // __RTLD_DLOPEN (include/dlfcn.h)
        } else {
            throw .cannotRun("process \(pid): \(libc.path) has no dlopen: it cannot be recorded")
        }
        allocators = found.values.filter { module in
            guard module.path != libc.path, module.path != loader.path, module.path.contains(".so"), let file = Self.file(module, pid)
            else { return false }
            return DynamicSymbols(file, isExecutable: false).definitions["malloc"] != nil
        }
    }

    /// The agent, if the process has it: from a memfd, where an attach has brought it there, else from its file.
    static func agent(of pid: pid_t) -> (bias: UInt64, isAttached: Bool)? {
        for map in ProcessMaps(pid: pid) where map.offset == 0 {
            if map.path.hasPrefix("/memfd:" + AgentLibrary.agent) { return (map.start, true) }
            if map.path.hasSuffix("/" + AgentLibrary.agent) { return (map.start, false) }
        }
        return nil
    }

    /// nil: it is gone, or another file has its name now.
    private static func file(_ module: Module, _ pid: pid_t) -> ObjectFile? {
        let inodes = Set(ProcessMaps(pid: pid).lazy.filter { $0.path == module.path }.map { $0.inode })
        var info = stat()
        guard stat(module.path, &info) == 0, inodes == [UInt64(info.st_ino)] else { return nil }
        return ObjectFile(path: module.path)
    }

    /// syscall(3) has one.
    private static func call(in file: ObjectFile, _ libc: Module, _ memory: RemoteMemory) -> UInt64? {
        guard let function = SymbolTable(file).functions(in: 0..<UInt64.max, where: { $0 == "syscall" }).first else { return nil }
        let start = libc.bias &+ function.address
        let wanted = withUnsafeBytes(of: recorder_call_instruction()) { Array($0.prefix(Int(RECORDER_CALL_BYTES))) }
        return first(wanted, in: memory.bytes(start, Int(min(function.byteCount, 256)))).map { start &+ UInt64($0) }
    }

    private static func restorer(in libc: Module, _ pid: pid_t, _ memory: RemoteMemory) -> UInt64? {
        var count: Int32 = 0
        let start = recorder_restorer(&count), wanted = Array(UnsafeBufferPointer(start: start, count: Int(count)))
        if wanted.isEmpty { return nil }
        for map in ProcessMaps(pid: pid) where map.path == libc.path && map.isExecutable {
            if let place = first(wanted, in: memory.bytes(map.start, Int(map.end - map.start))) { return map.start &+ UInt64(place) }
        }
        return nil
    }

    private static func first(_ wanted: [UInt8], in bytes: [UInt8]) -> Int? {
        guard bytes.count >= wanted.count else { return nil }
        return (0...bytes.count - wanted.count).first { bytes[$0] == wanted[0] && bytes[$0..<$0 + wanted.count].elementsEqual(wanted) }
    }
}

extension SymbolTable {
    func address(of name: String) -> UInt64? { functions(in: 0..<UInt64.max, where: { $0 == name }).first?.address }
}
