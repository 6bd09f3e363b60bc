// generate-trace FILE MEGABYTES [THREADS [DEPTH [FUNCTIONS]]]: a large well-formed trace, to measure the reader with.
// Every thread calls 200 functions, durations spread over 30 ns … 60 us, in a tree DEPTH levels deep; DEPTH 0 makes
// leaf calls only. FUNCTIONS: how many the metadata names, called or not.
import CTraceLayout
import Glibc
import TraceFormat
import TraceTesting

let arguments = CommandLine.arguments
if arguments.count == 3, arguments[1] == "--seeds" {
    writeSeeds(arguments[2])
    exit(0)
}
guard arguments.count >= 3, let megabytes = Int(arguments[2]), let file = fopen(arguments[1], "w") else {
    print("usage: generate-trace FILE MEGABYTES [THREADS [DEPTH [FUNCTIONS]]]")
    exit(2)
}
let threadCount = arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1
let depth = arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0
let functionCount: UInt32 = 200
let chunkBytes = 1 << 20

func emit(_ bytes: [UInt8]) { bytes.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) } }

var head = TraceBuilder(program: "/usr/bin/synthetic")
head.module(0, "/usr/lib/libdemo.so")
let describedCount = arguments.count > 5 ? UInt32(arguments[5]) ?? functionCount : functionCount
for id in 1...max(describedCount, functionCount) { head.function(id, "_ZN4demo\(String(id).utf8.count + 8)function\(id)Ei") }
let metadata = TraceBuilder.metadataChunk(head.metadataRecords)

struct Random { // xorshift64*
    var state: UInt64
    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 2_685_821_657_736_338_717
    }
}

let chunkCount = megabytes * (1 << 20) / chunkBytes
var clocks = [UInt64](repeating: 1_000_000, count: threadCount)
var stacks = [[trace_open_frame]](repeating: [], count: threadCount)
var sequences = [UInt64](repeating: 0, count: threadCount)
var random = Random(state: 88_172_645_463_325_252)
var calls = 0
emit([UInt8](repeating: 0, count: 4096))
emit(metadata)
for number in 0..<chunkCount {
    let thread = number % threadCount
    var clock = clocks[thread], stack = stacks[thread]
    var chunk = trace_chunk_header()
    chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
    chunk.kind = UInt16(TRACE_CHUNK_EVENTS)
    chunk.flags = UInt16(TRACE_CHUNK_CLOSED)
    chunk.byte_count = UInt32(chunkBytes)
    chunk.body_offset = UInt32(128 + 16 * stack.count)
    chunk.thread = UInt32(thread)
    chunk.tid = 4711 + UInt32(thread)
    chunk.sequence = sequences[thread]
    chunk.opened = trace_clock_sample(ticks: clock, monotonic_ns: clock)
    chunk.open_frames = UInt32(stack.count)
    chunk.stored_frames = UInt32(stack.count)
    chunk.used_bytes = UInt64(chunkBytes)
    withUnsafeMutableBytes(of: &chunk.thread_name) { $0.copyBytes(from: Array("worker\(thread)".utf8)) }
    var bytes = withUnsafeBytes(of: chunk) { Array($0) }
    for frame in stack { withUnsafeBytes(of: frame) { bytes += $0 } }
    var base = clock
    var words: [UInt64] = []
    let wordCount = (chunkBytes - bytes.count) / 8
    words.reserveCapacity(wordCount)
    while words.count < wordCount {
        let choice = random.next()
        let function = UInt32(choice % UInt64(functionCount)) + 1
        clock += 10 + (choice >> 20) & 15
        if clock - base >= Event.startReach {
            base = clock
            words.append(Event.control(.base, base).word)
            if words.count == wordCount { break }
        }
        if depth > 0, (choice >> 40) & 3 == 0, stack.count < depth {
            words.append(Event.enter(function, after: clock - base).word)
            stack.append(trace_open_frame(enter_ticks: clock, function: function, flags: 0))
            calls += 1
        } else if depth > 0, (choice >> 40) & 3 == 1, let top = stack.popLast() {
            words.append(Event.exit(top.function, after: clock - base).word)
        } else {
            let duration = 30 + (choice >> 30) & 63 + ((choice >> 50) & 63 == 0 ? (choice >> 24) & 0xffff : 0)
            words.append(Event.complete(function, after: clock - base, duration: duration)!.word)
            clock += duration
            calls += 1
        }
    }
    words.withUnsafeBytes { bytes += $0 }
    bytes += [UInt8](repeating: 0, count: chunkBytes - bytes.count)
    emit(bytes)
    clocks[thread] = clock
    stacks[thread] = stack
    sequences[thread] += 1
}
head.header.last = trace_clock_sample(ticks: clocks.max()!, monotonic_ns: clocks.max()!)
head.header.next_offset = UInt64(4096 + metadata.count + chunkCount * chunkBytes)
head.header.extended_offset = head.header.next_offset
rewind(file)
emit(TraceBuilder.page(head.header))
fclose(file)
print("\(calls) calls, \(chunkCount) chunks")
