// libFuzzer's entry for plans: the first byte says whether a module is to be planned, or a plan read. Of a plan the header is made
// to fit, so that what is after its checksum is reached. scripts/fuzz builds and runs it.
import CTraceLayout
import EntryPlan
import FuzzDriver
import Glibc
import TraceFormat

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPlan(_ data: UnsafePointer<UInt8>?, _ byteCount: Int) -> CInt {
    guard let data, byteCount > 1 else { return 0 }
    let rest = UnsafeBufferPointer(start: data + 1, count: byteCount - 1)
    if data[0] == UInt8(ascii: "p") { read(Array(rest)) } else { plan(rest) }
    return 0
}

private func plan(_ bytes: UnsafeBufferPointer<UInt8>) {
    var name = Array("/dev/shm/fuzz-plan-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    unlink(name)
    guard write(descriptor, bytes.baseAddress, bytes.count) == bytes.count else { return }
    for usesTraps in [false, true] {
        if let plan = try? ModulePlan(path: "/proc/self/fd/\(descriptor)", options: PlanOptions(usesTraps: usesTraps), cache: nil) {
            use(plan.file)
        }
    }
}

private func read(_ bytes: [UInt8]) {
    if let file = PlanFile(bytes) { use(file) }
    var content = bytes
    let size = MemoryLayout<plan_file>.size
    while content.count < size || content.count % 8 != 0 { content.append(0) }
    var header = content.withUnsafeBytes { $0.loadUnaligned(as: plan_file.self) }
    (header.magic, header.version, header.rules) = (UInt64(PLAN_MAGIC), UInt32(PLAN_VERSION), UInt32(PLAN_RULES))
    header.byte_count = UInt64(content.count)
    func put() { content.withUnsafeMutableBytes { raw in withUnsafeBytes(of: &header) { raw.copyMemory(from: $0) } } }
    put()
    content.withUnsafeBytes { raw in
        guard let count = PlanContent.bytesBeforeNames(raw.baseAddress!, of: raw.count) else { return }
        header.names_checksum = PlanContent.checksum(raw.baseAddress! + count, byteCount: raw.count - count)
    }
    put()
    content.withUnsafeBytes { raw in
        guard let count = PlanContent.bytesBeforeNames(raw.baseAddress!, of: raw.count) else { return }
        header.checksum = PlanContent.checksum(raw.baseAddress!, byteCount: count, without: Int(PLAN_CHECKSUM_OFFSET))
    }
    put()
    if let file = PlanFile(content) { use(file) }
    asAgent(content)
}

/// The agent reads the names apart, when it needs them.
private func asAgent(_ content: [UInt8]) {
    content.withUnsafeBytes { raw in
        guard let count = PlanContent.bytesBeforeNames(raw.baseAddress!, of: raw.count) else { return }
        // In blocks of their own, so that a read beyond either is seen.
        let first = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
        defer { first.deallocate() }
        first.copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[..<count]))
        guard var plan = PlanContent(first.baseAddress!, withoutNames: count) else { return }
        let names = UnsafeMutableRawBufferPointer.allocate(byteCount: plan.bytesOfNames, alignment: 8)
        defer { names.deallocate() }
        names.copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[count...]))
        guard plan.addNames(names.baseAddress!) else { return }
        var key = 0
        for n in 0..<plan.functionCount {
            for _ in 0..<plan.function(n).pointee.name_count {
                _ = plan.keys[key]
                key += 1
            }
            _ = plan.someName(of: plan.function(n)) { $0.pointee == 0xff }
            for k in plan.sites(of: n) { _ = plan.number(at: plan.site(k).word) }
        }
    }
}

/// All that one does with a plan.
private func use(_ file: PlanFile) {
    file.withFunctions { functions in
        for function in functions {
            _ = file.names(of: function)
            if function.tactic == 0 { continue }
            _ = (file.relocated(of: function).count, file.instructions(of: function).count, file.fixups(of: function).count)
        }
    }
}

@_cdecl("fuzz_plan_main")
public func fuzzMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    runFuzzer(count, arguments) { fuzzPlan($0, $1) }
}
