// A function in the account of what was called.
import ELF

package struct CoveredFunction: Sendable {
    package var name: String
    /// Mangled, all of them, that of `name` first; empty: it has no name.
    package var symbols: [String]
    package var module: String
    /// Source line of its start, from DWARF; nil: unknown.
    package var source: SourceLocation?
    /// Class, namespace, module of Swift; empty for none.
    package var scope: String
    package var byteCount: UInt64
    package var calls: UInt64
    package var isLeast: Bool
    package var reason: UnknownReason?
    /// It was never called, and nothing leads to it but what never was; nil: that does not apply, or nobody knows.
    package var isOnlyFromUncalled: Bool?

    package var isNeverCalled: Bool { calls == 0 && reason == nil }
}

/// Counts of some of them.
package struct CoverageSums: Sendable {
    package var called = 0, neverCalled = 0, unknown = 0, onlyFromUncalled = 0
    package var calledBytes: UInt64 = 0, neverCalledBytes: UInt64 = 0, unknownBytes: UInt64 = 0, onlyFromUncalledBytes: UInt64 = 0

    package init() {}
    init(_ functions: some Sequence<CoveredFunction>) { for function in functions { add(function) } }

    mutating func add(_ function: CoveredFunction) {
        if function.calls > 0 {
            called += 1
            calledBytes &+= function.byteCount
        } else if function.reason != nil {
            unknown += 1
            unknownBytes &+= function.byteCount
        } else {
            neverCalled += 1
            neverCalledBytes &+= function.byteCount
        }
        if function.isOnlyFromUncalled == true {
            onlyFromUncalled += 1
            onlyFromUncalledBytes &+= function.byteCount
        }
    }

    package var functions: Int { called + neverCalled + unknown }
    /// Share of never-called bytes in the bytes of functions known to be called or not; nil: there are none.
    package var neverCalledShare: Double? {
        let known = calledBytes &+ neverCalledBytes
        return known == 0 ? nil : Double(neverCalledBytes) / Double(known)
    }
}
