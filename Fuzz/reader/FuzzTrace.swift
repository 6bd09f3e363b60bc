// libFuzzer's entry for the reader. scripts/fuzz builds and runs it; Tests/MutatedTraceTests reads without it.
import EveryReading
import FuzzDriver
import Glibc

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTrace(_ data: UnsafePointer<UInt8>?, _ byteCount: Int) -> CInt {
    guard let data, let file = tmpfile() else { return 0 }
    defer { fclose(file) }
    let descriptor = fileno(file)
    var done = 0
    while done < byteCount {
        let written = write(descriptor, data + done, byteCount - done)
        if written <= 0 { return 0 }
        done += written
    }
    let sum = UnsafeBufferPointer(start: data, count: byteCount).reduce(0) { $0 &+ Int($1) }
    readAsEveryCommand(path: "/proc/self/fd/\(descriptor)", number: sum)
    return 0
}

@_cdecl("fuzz_trace_main")
public func fuzzMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    runFuzzer(count, arguments) { fuzzTrace($0, $1) }
}
