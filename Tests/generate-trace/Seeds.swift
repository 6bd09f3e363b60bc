// generate-trace --seeds DIRECTORY: small files that hold one of each thing, for the fuzzer to begin with.
import CTraceLayout
import Glibc
import TraceFormat
import TraceTesting

func writeSeeds(_ directory: String) {
    func write(_ name: String, _ builder: TraceBuilder, _ change: (inout [UInt8]) -> Void = { _ in }) {
        var bytes = builder.bytes(closeChunks: name != "open")
        change(&bytes)
        while bytes.last == 0 { bytes.removeLast() }
        while bytes.count % 8 != 0 { bytes.append(0) } // the last word is whole
        guard let file = fopen("\(directory)/\(name)", "w") else { return }
        bytes.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) }
        fclose(file)
    }
    let start: UInt64 = 1_000_000
    func demo() -> TraceBuilder {
        var builder = TraceBuilder()
        builder.text(TRACE_TEXT_ARGUMENTS, bytes: Array("demo\0-v\0".utf8))
        builder.module(0, "/usr/lib/libdemo.so", buildID: [1, 2, 3])
        builder.function(1, "main")
        builder.function(2, "_ZN4demo3addEii")
        builder.function(3, "setjmp", isEntryOnly: true)
        _ = builder.thread()
        builder.steps(0, [.enter(1, 0), .enter(2, 10), .call(2, 20, 30), .call(3, 40, 40)])
        return builder
    }
    write("open", demo())
    var builder = demo()
    builder.steps(
        0,
        [
            .split, .exit(1, 100), // RESUME
            .call(2, 20_000_000, 20_000_010), // BASE
            .unwind(1, 20_000_020),
        ])
    builder.threadEnd(0, at: start + 20_000_030)
    write("controls", builder)
    builder = demo()
    builder.header.mode = UInt32(TRACE_MODE_RING)
    builder.limit(0, words: 1, frames: 1)
    builder.steps(0, [.lose, .exit(2, 100), .word(unknownControl(1 << 42), 110)])
    write("ring", builder)
    builder = demo()
    let other = builder.thread("other")
    builder.steps(other, [.resume(10, 50), .bareExit(2, 60)])
    write("threads", builder)
    // With call sites: of a leaf, of an open call whose chunk ends, and one without its call.
    builder = demo()
    builder.steps(
        0,
        [
            .call(2, 50, 80, [.call(2, 60, 70, site: 0x5000_1240), .split], site: 0x5000_1234), .word(.control(.site, 0x5000_1250), 90),
            .exit(2, 100),
        ])
    write("sites", builder)
    // A start: constructors, a library opened in one of them, something made once, ready by its output.
    builder = demo()
    builder.cost(leaf: 30, inside: 10)
    builder.module(1, "/usr/lib/libplug.so", bias: 0x2000_0000)
    builder.moduleDetail(0, relative: 10, symbols: 2, jumpSlots: 5, needed: ["libplug.so"])
    builder.moduleDetail(1, load: 1, relative: 1, soname: "libplug.so")
    builder.binding(0, to: 1, calls: 5)
    builder.phase(TRACE_PHASE_EXEC, trace_usage(), monotonic: start - 9000)
    builder.phase(TRACE_PHASE_CREATED, trace_usage(), monotonic: start - 10_000, error: 3000)
    builder.phase(TRACE_PHASE_LOADER, TraceBuilder.usage(at: start - 8000))
    builder.phase(TRACE_PHASE_AGENT, TraceBuilder.usage(at: start))
    builder.initializer(0, module: 0, from: TraceBuilder.usage(at: start + 1), to: TraceBuilder.usage(at: start + 50, own: 3))
    builder.load(
        1, "/usr/lib/libplug.so", caller: 0, initializer: 0, begin: start + 10, opened: start + 11,
        mapped: TraceBuilder.usage(at: start + 12),
        end: TraceBuilder.usage(at: start + 40))
    builder.initializer(1, module: 1, parent: 0, load: 1, from: TraceBuilder.usage(at: start + 15), to: TraceBuilder.usage(at: start + 35))
    builder.once(2, at: start + 20, code: 0x5000_1000)
    builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: start + 60))
    builder.complete(0, 2, from: start + 70, to: start + 75)
    builder.ready(TRACE_READY_OUTPUT, at: start + 80)
    builder.phase(TRACE_PHASE_MAIN_RETURNED, TraceBuilder.usage(at: start + 90))
    write("start", builder)
    // The first chunk lies twice: where it was written, not closed, and as a copy after the others. A base goes back.
    builder = demo()
    builder.header.state = UInt32(TRACE_RECORDING)
    for index in 0..<6 as Range<UInt64> {
        builder.enter(0, 2, at: start + 100 + 10 * index)
        builder.split(0)
    }
    builder.base(0, start - 5)
    builder.exit(0, 1, at: start + 200)
    write("copied", builder) { bytes in
        var chunk = Array(bytes[8192..<12288])
        chunk[6] = 0
        bytes.insert(contentsOf: chunk + [UInt8](repeating: 0, count: 4096), at: 8192)
    }
}
