// What every fuzzer's main does.

/// libFuzzer's driver (compiler-rt, FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// To be called by <module>_main: SwiftPM links an executable with `main` defined as that, which hides the main of libFuzzer's runtime.
public func runFuzzer(
    _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt {
    var count = count
    var arguments = arguments
    return runDriver(&count, &arguments, test)
}
