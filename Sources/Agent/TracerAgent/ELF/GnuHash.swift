// DT_GNU_HASH: a Bloom filter, buckets, and chains of hashes beside the symbols (glibc elf/dl-setup_hash.c and
// elf/dl-lookup.c, do_lookup_x). Checked once, when the image is read: a start looks for tens of thousands of symbols.
import CSupport

/// Bloom filter: shows which modules cannot define a name. Small, so that a search can run along a table of them.
struct BloomFilter: BitwiseCopyable {
    private var words: UnsafePointer<UInt64>
    private var mask: UInt32 = 0
    private var shift: UInt32 = 0

    /// Admits every name: the module must be searched.
    init() { words = withUnsafePointer(to: &BloomFilter.everything) { $0 } }
    nonisolated(unsafe) private static var everything = UInt64.max

    fileprivate init(words: UInt64, count: UInt32, shift: UInt32) {
        self.words = UnsafePointer(bitPattern: UInt(words))!
        mask = count &- 1
        self.shift = shift
    }
    @inline(__always) func admits(_ probe: inout Probe) -> Bool {
        if shift != probe.shift { probe = Probe(probe.hash, shift) }
        let word = UnsafeRawPointer(words + Int((probe.hash / 64) & mask)).loadUnaligned(as: UInt64.self)
        return word & probe.bits == probe.bits
    }

    /// The two bits that stand for a hash. The second depends on the filter, and is the same in filters of about the same size.
    struct Probe {
        fileprivate let hash: UInt32, shift: UInt32, bits: UInt64
        init(_ hash: UInt32) { self.init(hash, 0) }
        fileprivate init(_ hash: UInt32, _ shift: UInt32) {
            self.hash = hash
            self.shift = shift
            bits = 1 &<< UInt64(hash & 63) | 1 &<< UInt64(hash &>> shift & 63)
        }
    }
}

extension Table where Element == BloomFilter {
    /// The first from `start` on that admits the hash of a name, or the count.
    @inline(__always) mutating func first(from start: Int, thatAdmits hash: UInt32) -> Int {
        var n = start, probe = BloomFilter.Probe(hash)
        let count = count
        while n < count {
            let filters = pointer(n), end = min(run(from: n), count &- n)
            var index = 0
            while index < end && !filters[index].admits(&probe) { index &+= 1 }
            n &+= index
            if index < end { break }
        }
        return n
    }
}

struct GnuHash: BitwiseCopyable {
    private(set) var filter = BloomFilter()
    private var buckets: UInt64 = 0 // address; 0: there is no such table
    private var chains: UInt64 = 0
    private var bucketCount: UInt32 = 0
    private var firstSymbol: UInt32 = 0
    private var chainCount: UInt32 = 0 // how many can be read

    init() {}
    /// The table at `address`, of which `byteCount` bytes can be read. Empty if it is malformed.
    init(_ address: UInt64, _ byteCount: UInt64) {
        guard address & 3 == 0, byteCount >= 16, let header = UnsafePointer<UInt32>(bitPattern: UInt(address)) else { return }
        let bucketCount = header[0], filterWords = header[2], shift = header[3]
        let before = 16 &+ UInt64(filterWords) &* 8 &+ UInt64(bucketCount) &* 4
        guard bucketCount > 0, before <= byteCount else { return }
        buckets = address &+ 16 &+ UInt64(filterWords) &* 8
        chains = address &+ before
        self.bucketCount = bucketCount
        firstSymbol = header[1]
        chainCount = UInt32(clamping: (byteCount &- before) / 4)
        if filterWords & (filterWords &- 1) == 0 && filterWords > 0 && shift < 32 {
            filter = BloomFilter(words: address &+ 16, count: filterWords, shift: shift)
        }
    }
    var isEmpty: Bool { buckets == 0 }

    /// The table must not be empty.
    @inline(__always) func bucket(of hash: UInt32) -> UnsafePointer<UInt32> {
        UnsafePointer(bitPattern: UInt(buckets))! + Int(hash % bucketCount)
    }
    /// The hash of the symbol with this index, its lowest bit set in the last one of a bucket; nil: it has none.
    @inline(__always) func chain(ofSymbol index: UInt32) -> UnsafePointer<UInt32>? {
        let offset = index &- firstSymbol
        return index >= firstSymbol && offset < chainCount ? UnsafePointer(bitPattern: UInt(chains))! + Int(offset) : nil
    }
}
