// Functions that a linker may not find by the names in an order, or not find alone, with what is known of why.
import Symbols
import TraceAnalysis
import TraceFormat

package struct LayoutDoubts: Sendable {
    package struct Kind: Sendable {
        package var text: String
        package var functions: [LaidFunction]
    }
    /// A module for which no order is made, and the number of its functions that were called.
    package struct OtherModule: Sendable {
        package var module: String
        package var functions: Int
    }
    /// Without those that have none.
    package private(set) var kinds: [Kind] = []
    /// Other modules, those with the most called functions first.
    package private(set) var others: [OtherModule] = []
    /// Nothing says in which sections the functions were.
    package private(set) var isWithoutSections = false

    init() {}

    init(_ laid: [LaidFunction], all: [LaidFunction], _ module: Module, _ symbolizer: Symbolizer, others: [String: Int]) {
        self.others = others.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.map { OtherModule(module: $0.key, functions: $0.value) }
        let starts = all.map { $0.address }.sorted()
        var owners: [String: Int] = [:]
        for function in all { for symbol in function.symbols { owners[symbol, default: 0] += 1 } }
        var shared: [LaidFunction] = [], merged: [LaidFunction] = [], renamed: [LaidFunction] = [], nameless: [LaidFunction] = []
        var startFiles: [LaidFunction] = [], ambiguous: [LaidFunction] = []
        var knownCount = 0
        for function in laid {
            guard let symbol = function.symbols.first else {
                nameless.append(function)
                continue
            }
            if Self.startFileNames.contains(symbol) {
                startFiles.append(function)
                continue
            }
            if Self.isClone(symbol) { renamed.append(function) }
            if function.symbols.contains(where: { !Self.isTwin($0, symbol) }) { merged.append(function) }
            if owners[symbol, default: 0] > 1 { ambiguous.append(function) }
            if let section = symbolizer.unitRange(at: function.address, in: module.identity) {
                knownCount += 1
                let first = bisect(starts.count) { starts[$0] < section.lowerBound }
                if first + 1 < starts.count, starts[first + 1] < section.upperBound { shared.append(function) }
            }
        }
        isWithoutSections = knownCount == 0 && !laid.isEmpty
        func add(_ functions: [LaidFunction], _ text: String) {
            if !functions.isEmpty { kinds.append(Kind(text: text, functions: functions)) }
        }
        add(shared, "share a section with others in this build: compile with -ffunction-sections")
        add(nameless, "have no symbol: do not strip the build that is recorded")
        add(startFiles, "come from the compiler's start files, which have one section for all functions")
        add(ambiguous, "share their name with another function of the module: the linker moves both")
        add(merged, "have several names at one address (aliases, or folded by ICF): all of them are listed")
        add(renamed, "are clones named by the compiler: another build may name them differently")
    }

    /// Skipped in an order: no section is theirs.
    static let startFileNames: Set<String> = [
        "_init", "_fini", "_start", "frame_dummy", "register_tm_clones", "deregister_tm_clones", "__do_global_dtors_aux",
        "_dl_relocate_static_pie",
    ]

    /// gcc, clang: NAME.constprop.0 and its kin.
    package static func isClone(_ symbol: String) -> Bool {
        [".constprop.", ".isra.", ".part.", ".lto_priv.", ".llvm.", ".cold", ".clone.", ".resume", ".destroy", ".actor"].contains {
            symbol.contains($0)
        }
    }

    /// Constructors C1 and C2, destructors D1 and D2, which compilers make one function.
    package static func isTwin(_ symbol: String, _ other: String) -> Bool {
        guard symbol != other else { return true }
        let a = Array(symbol.utf8), b = Array(other.utf8)
        guard a.count == b.count, let index = a.indices.first(where: { a[$0] != b[$0] }), index > 0 else { return false }
        let kinds = [UInt8(ascii: "C"), UInt8(ascii: "D"), UInt8(ascii: "I")], digits = UInt8(ascii: "0")...UInt8(ascii: "5")
        return kinds.contains(a[index - 1]) && digits.contains(a[index]) && digits.contains(b[index])
            && a[(index + 1)...] == b[(index + 1)...]
    }
}
