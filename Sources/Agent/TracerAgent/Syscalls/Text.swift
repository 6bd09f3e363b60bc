// C strings and one-line messages, without libc and without allocation.
import CSupport

typealias CText = UnsafePointer<UInt8>

/// Returns the length in bytes. Reads words at multiples of eight: such a word reaches into no page in which no byte of the text lies.
func length(_ text: CText) -> Int {
    let start = UInt(bitPattern: text), ones: UInt64 = 0x0101_0101_0101_0101
    var address = start & ~7
    var word = UnsafePointer<UInt64>(bitPattern: address)!.pointee | (1 &<< UInt64(start & 7 &* 8) &- 1) // bytes before it are made non-zero
    while true {
        let zeros = (word &- ones) & ~word & ones &<< 7 // the lowest bit of them is right
        if zeros != 0 { return Int(bitPattern: address &- start) &+ zeros.trailingZeroBitCount / 8 }
        address = address &+ 8
        word = UnsafePointer<UInt64>(bitPattern: address)!.pointee
    }
}

func equal(_ a: CText, _ b: CText) -> Bool {
    var n = 0
    while a[n] == b[n] {
        if a[n] == 0 { return true }
        n &+= 1
    }
    return false
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
    /// A second, independent hash: with the first it identifies a name.
    let hash: UInt64
    /// For hash tables: all of `hash` is in its lowest bits.
    @inline(__always) static func bucket(_ hash: UInt64) -> Int { Int((hash &* 0x9e37_79b9_7f4a_7c15) &>> 32) }

    /// The name without a character.
    init() {
        text = CText(StaticString("").utf8Start)
        byteCount = 0
        gnuHash = 5381
        hash = 0
    }

    /// Hashes a name, and cuts it after `most` bytes. Eight bytes at a time: a start reads tens of thousands of names.
    @inline(never) init(_ text: CText, atMost most: Int = .max) {
        let count = min(length(text), most), bytes = UnsafeRawPointer(text)
        var first: UInt32 = 5381, second = UInt64(count) &* 0x9e37_79b9_7f4a_7c15
        let lead = count & 7
        for n in 0..<lead { first = first &* 33 &+ UInt32(text[n]) }
        if lead != 0 { // the first eight bytes, of which the next word may have some too
            second = Name.step(second, count < 8 ? UInt64(first) : bytes.loadUnaligned(as: UInt64.self))
        }
        var n = lead
        while n < count {
            let word = bytes.loadUnaligned(fromByteOffset: n, as: UInt64.self)
            first = first &* Name.eighthPower &+ Name.polynomial(word)
            second = Name.step(second, word)
            n &+= 8
        }
        self.text = text
        byteCount = count
        gnuHash = first
        hash = second
    }

    /// Returns true if `bytes` begins with this name and its NUL. This many bytes can be read there.
    @inline(__always) func isAt(_ bytes: UnsafeRawPointer) -> Bool {
        if bytes.load(fromByteOffset: byteCount, as: UInt8.self) != 0 { return false }
        let own = UnsafeRawPointer(text)
        var n = 0
        while n &+ 8 <= byteCount {
            if own.loadUnaligned(fromByteOffset: n, as: UInt64.self) != bytes.loadUnaligned(fromByteOffset: n, as: UInt64.self) {
                return false
            }
            n &+= 8
        }
        while n < byteCount {
            if own.load(fromByteOffset: n, as: UInt8.self) != bytes.load(fromByteOffset: n, as: UInt8.self) { return false }
            n &+= 1
        }
        return true
    }

    private static let eighthPower: UInt32 = 0x747c_7101 // 33 to the eighth, in 32 bits
    /// Eight steps of the hash at once: sums of two bytes in 16 bits each, of four in 32, of eight.
    @inline(__always) private static func polynomial(_ word: UInt64) -> UInt32 {
        let bytes: UInt64 = 0x00ff_00ff_00ff_00ff, halves: UInt64 = 0x0000_ffff_0000_ffff
        let pairs = (word & bytes) &* 33 &+ (word &>> 8 & bytes)
        let fours = (pairs & halves) &* 1089 &+ (pairs &>> 16 & halves)
        return UInt32(truncatingIfNeeded: fours) &* 1_185_921 &+ UInt32(truncatingIfNeeded: fours &>> 32)
    }
    /// Mixes a word into a hash: no two words give the same for one `hash`.
    @inline(__always) private static func step(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        let product = (hash ^ word) &* 0xff51_afd7_ed55_8ccd
        return product ^ product &>> 32
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
    /// Appends the bytes that `fill` puts there; it gets the space for them, and returns their number, or less than 0.
    mutating func append(_ fill: (UnsafeMutablePointer<UInt8>, Int) -> Int) {
        count &+= max(fill(start + count, capacity &- count &- 1), 0)
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
    /// Two digits.
    mutating func append(hexadecimal byte: UInt8) {
        append(TextBuffer.digit(byte &>> 4))
        append(TextBuffer.digit(byte & 15))
    }
    /// 0x and as few digits as there can be.
    mutating func append(address: UInt64) {
        append("0x")
        var shift: UInt64 = 60
        while shift > 0 && address &>> shift == 0 { shift = shift &- 4 }
        while true {
            append(TextBuffer.digit(UInt8(truncatingIfNeeded: address &>> shift & 15)))
            if shift == 0 { return }
            shift = shift &- 4
        }
    }
    /// The result of `body` for such a text.
    @inline(never) static func with(address: UInt64, _ body: (CText) -> Bool) -> Bool {
        var buffer = InlineArray<24, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            var text = TextBuffer($0.baseAddress!, capacity: 24)
            text.append(address: address)
            return body(CText(text.start))
        }
    }
    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 &+ value : 0x57 &+ value }
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
