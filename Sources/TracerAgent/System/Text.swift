// C strings and one-line messages, without libc and without allocation.
import CSupport

typealias CText = UnsafePointer<UInt8>

func length(_ text: CText) -> Int {
    var n = 0
    while text[n] != 0 { n &+= 1 }
    return n
}

func equal(_ a: CText, _ b: CText) -> Bool {
    var n = 0
    while a[n] == b[n] {
        if a[n] == 0 { return true }
        n &+= 1
    }
    return false
}

func equal(_ a: CText, literal b: StaticString) -> Bool {
    let other = b.utf8Start
    for n in 0..<b.utf8CodeUnitCount where a[n] != other[n] { return false }
    return a[b.utf8CodeUnitCount] == 0
}

/// What follows `prefix`, or nil.
func rest(of text: CText, after prefix: StaticString) -> CText? {
    let other = prefix.utf8Start
    for n in 0..<prefix.utf8CodeUnitCount where text[n] != other[n] { return nil }
    return text + prefix.utf8CodeUnitCount
}

func baseName(_ path: CText) -> CText {
    var name = path, n = 0
    while path[n] != 0 {
        if path[n] == 0x2f && path[n &+ 1] != 0 { name = path + (n &+ 1) }
        n &+= 1
    }
    return name
}

/// The hash of DT_GNU_HASH (Bernstein's, 32 bits).
func gnuHash(_ name: CText) -> UInt32 {
    var hash: UInt32 = 5381, n = 0
    while name[n] != 0 {
        hash = hash &* 33 &+ UInt32(name[n])
        n &+= 1
    }
    return hash
}

/// The name of a function, read once.
struct Name {
    let text: CText
    let byteCount: Int
    let gnuHash: UInt32
    /// A second, independent hash (FNV-1a): with the first it identifies a name.
    let hash: UInt64

    /// What is beyond `most` bytes is cut.
    @inline(__always) init(_ text: CText, atMost most: Int = .max) {
        var first: UInt32 = 5381, second: UInt64 = 0xcbf2_9ce4_8422_2325, n = 0
        while true {
            let byte = text[n]
            if byte == 0 || n == most { break }
            first = first &* 33 &+ UInt32(byte)
            second = (second ^ UInt64(byte)) &* 0x100_0000_01b3
            n &+= 1
        }
        self.text = text
        byteCount = n
        gnuHash = first
        hash = second
    }
}

/// A bounded text under construction: file names and messages. What does not fit is cut.
struct TextBuffer {
    let start: UnsafeMutablePointer<UInt8>
    let capacity: Int
    private(set) var count = 0

    init(_ start: UnsafeMutablePointer<UInt8>, capacity: Int) {
        self.start = start
        self.capacity = capacity
        start[0] = 0
    }
    var isFull: Bool { count &+ 1 >= capacity }
    mutating func append(_ byte: UInt8) {
        if isFull { return }
        start[count] = byte
        count &+= 1
        start[count] = 0
    }
    mutating func append(contentsOf text: CText) {
        var n = 0
        while text[n] != 0 {
            append(text[n])
            n &+= 1
        }
    }
    mutating func append(_ text: StaticString) {
        for n in 0..<text.utf8CodeUnitCount { append(text.utf8Start[n]) }
    }
    /// False when the text does not end in it.
    mutating func removeSuffix(_ suffix: StaticString) -> Bool {
        let start = count &- suffix.utf8CodeUnitCount
        if start < 0 { return false }
        for n in 0..<suffix.utf8CodeUnitCount where self.start[start &+ n] != suffix.utf8Start[n] { return false }
        count = start
        self.start[count] = 0
        return true
    }
    mutating func append(decimal value: UInt64) {
        var divisor: UInt64 = 1
        while value / divisor >= 10 { divisor = divisor &* 10 }
        while divisor > 0 {
            append(UInt8(0x30 &+ (value / divisor) % 10))
            divisor /= 10
        }
    }
}

