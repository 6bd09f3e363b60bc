// C strings held against literals, without libc and without allocation.

func equal(_ a: UnsafePointer<UInt8>, literal b: StaticString) -> Bool {
    let other = b.utf8Start
    for n in 0..<b.utf8CodeUnitCount where a[n] != other[n] { return false }
    return a[b.utf8CodeUnitCount] == 0
}

/// Returns what follows `name` and '=', or nil.
@inline(never) func assignment(_ entry: UnsafePointer<UInt8>, to name: StaticString) -> UnsafePointer<UInt8>? {
    guard let value = rest(of: entry, after: name), value[0] == 0x3d else { return nil }
    return value + 1
}

/// Returns what follows `prefix`, or nil.
func rest(of text: UnsafePointer<UInt8>, after prefix: StaticString) -> UnsafePointer<UInt8>? {
    let other = prefix.utf8Start
    for n in 0..<prefix.utf8CodeUnitCount where text[n] != other[n] { return nil }
    return text + prefix.utf8CodeUnitCount
}
