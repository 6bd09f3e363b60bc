// The call slots of a module (DT_JMPREL), in order. Binding one follows a chain through memory that nobody has read yet: symbol, name,
// bucket, hash and symbol of the definition, its name. Each step is therefore taken some slots ahead of the next, and prefetches what
// that one will read.
import CSupport

/// The modules in which definitions are looked up, and the hook policy of each name.
protocol SlotScope {
    associatedtype Policy
    static var none: Policy { get }
    static func policy(of name: Name) -> Policy
    static func isNone(_ policy: Policy) -> Bool
    /// Returns true if the definition has been found before.
    static func isKnown(_ query: SymbolQuery) -> Bool
    /// Prefetches what is remembered of the query, and where functions of its name are.
    static func prefetch(_ query: SymbolQuery)
    /// Prefetches the function that is there.
    static func prefetchFunction(_ name: Name)
    /// The first module from `start` on whose filter admits the hash of a name; a number that no module has: there is none.
    static func first(from start: Int, thatAdmits hash: UInt32) -> Int
    /// nil: no module has the number, or it has no table of that kind.
    static func image(_ module: Int) -> UnsafePointer<Image>?
}

/// Start of a search of the global scope: nothing before it needs to be looked at.
struct SearchStart {
    var module = -1 // not known
    /// The first symbol of its chain that may have the hash of the name; 0: not known.
    fileprivate(set) var symbol: UInt32 = 0
    fileprivate var bucket: UnsafePointer<UInt32>? // kept, since finding it takes a division
    fileprivate var asked = Asked.nothing
    fileprivate enum Asked: UInt8 { case nothing, memory, bucket, chain }
}

struct CallSlots<Scope: SlotScope> {
    struct Slot {
        var isCall = false // else there is nothing to bind
        var isLazy = false
        var policy = Scope.none
        var hasVariantConvention = false
        var address: UInt64 = 0
        var value: UInt64 = 0
        var query = SymbolQuery(name: Name(), version: VersionNeed())
        var candidate = SearchStart()
    }

    private let image: UnsafeMutablePointer<Image>
    private let isGlobal: Bool // definitions are looked up in the global scope
    private var ring = InlineArray<16, Slot>(repeating: Slot())
    let count: Int

    init(_ image: UnsafeMutablePointer<Image>, isGlobal: Bool) {
        self.image = image
        self.isGlobal = isGlobal
        count = image.pointee.jumpRelocationCount
        for n in -24..<0 { lookAhead(from: n) }
    }

    /// Returns slot `n`. To be called in order, once for each.
    @inline(__always) mutating func slot(_ n: Int) -> Slot {
        lookAhead(from: n)
        return ring[n & 15]
    }

    private mutating func lookAhead(from n: Int) {
        if n &+ 60 < count { image.pointee.prefetch(jumpRelocation: n &+ 60) }
        if let relocation = relocation(n &+ 24) { image.pointee.prefetch(symbol: relocation.symbol) }
        if let relocation = relocation(n &+ 19), let symbol = image.pointee.symbol(relocation.symbol),
            let name = image.pointee.name(of: symbol.pointee)
        {
            tracer_prefetch(name)
            tracer_prefetch(name + 32)
        }
        if let relocation = relocation(n &+ 15) { ring[(n &+ 15) & 15].read(relocation, image, isGlobal) }
        // A filter sometimes admits a name wrongly: most lookups take two steps, nearly all take at most six.
        var ahead = 13
        while ahead > 1 {
            ring[(n &+ ahead) & 15].step()
            ahead &-= 2
        }
        if ring[(n &+ 4) & 15].isCall { Scope.prefetchFunction(ring[(n &+ 4) & 15].query.name) }
    }
    @inline(__always) private func relocation(_ n: Int) -> Relocation? {
        n >= 0 && n < count ? image.pointee.jumpRelocation(n) : nil
    }
}

extension CallSlots.Slot {
    @inline(__always) fileprivate mutating func read(_ relocation: Relocation, _ image: UnsafeMutablePointer<Image>, _ isGlobal: Bool) {
        isCall = false
        candidate = SearchStart()
        address = image.pointee.bias &+ relocation.offset
        guard relocation.type == Architecture.jumpSlot, relocation.symbol != 0, address & 7 == 0,
            let value = image.pointee.word64(address), value != 0, // a weak function that nobody defines
            let symbol = image.pointee.symbol(relocation.symbol), let text = image.pointee.name(of: symbol.pointee)
        else { return }
        isCall = true
        self.value = value
        hasVariantConvention = symbol.pointee.hasVariantConvention
        query.name = Name(text)
        policy = Scope.policy(of: query.name)
        // An unbound slot leads back into its own module's PLT: to an entry that pushes the relocation's number, or, from
        // mold, to the one first entry of all. So what it holds is not the address of the symbol.
        isLazy = image.pointee.contains(value) && !(symbol.pointee.section != 0 && value == image.pointee.bias &+ symbol.pointee.value)
        if Scope.isNone(policy) { return }
        if isLazy { query.version = VersionNeeds.of(relocation.symbol, image) }
        Scope.prefetch(query)
        if isLazy && isGlobal { candidate.asked = .memory }
    }
    private mutating func askNext(from first: Int) {
        candidate.module = Scope.first(from: first, thatAdmits: query.name.gnuHash)
        candidate.symbol = 0
        candidate.asked = .nothing
        guard let other = candidateImage else { return }
        candidate.bucket = other.pointee.gnuHash.bucket(of: query.name.gnuHash)
        tracer_prefetch(candidate.bucket)
        candidate.asked = .bucket
    }
    @inline(__always) fileprivate mutating func step() {
        if candidate.asked != .nothing { takeStep() }
    }
    private mutating func takeStep() {
        if candidate.asked == .memory {
            candidate.asked = .nothing
            return Scope.isKnown(query) ? () : askNext(from: 0)
        }
        guard let other = candidateImage else { return }
        if candidate.asked == .bucket {
            candidate.symbol = candidate.bucket!.pointee
            guard let chain = other.pointee.gnuHash.chain(ofSymbol: candidate.symbol) else { return askNext(from: candidate.module &+ 1) }
            tracer_prefetch(chain)
            other.pointee.prefetch(symbol: Int(candidate.symbol))
            candidate.asked = .chain
            return
        }
        while let link = other.pointee.gnuHash.chain(ofSymbol: candidate.symbol)?.pointee {
            if (link ^ query.name.gnuHash) &>> 1 == 0 {
                candidate.asked = .nothing
                guard let symbol = other.pointee.symbol(Int(candidate.symbol)),
                    let name = other.pointee.name(of: symbol.pointee)
                else { return }
                tracer_prefetch(name)
                return tracer_prefetch(name + query.name.byteCount)
            }
            if link & 1 != 0 { break }
            candidate.symbol &+= 1
        }
        askNext(from: candidate.module &+ 1)
    }
    @inline(__always) private var candidateImage: UnsafePointer<Image>? {
        candidate.module < 0 ? nil : Scope.image(candidate.module)
    }
}
