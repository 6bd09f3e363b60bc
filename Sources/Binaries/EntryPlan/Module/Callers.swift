// Direct calls and tail calls within a module, by the function that they lead to.

/// A direct call or tail call. Addresses are relative to the module's base.
struct Transfer {
    var source: UInt32 // entry
    var target: UInt32
    var site: UInt32 // the instruction
}

struct Callers {
    /// Transfers to each entry, back to back: those to `index` are `transfers[first[index]..<first[index + 1]]`.
    private var first: [Int]
    private var transfers: [Transfer]

    /// - Parameter transfers: their targets are indices of entries, below `count`
    init(_ transfers: [Transfer], count: Int) {
        first = Array(repeating: 0, count: count + 1)
        for transfer in transfers { first[Int(transfer.target) + 1] += 1 }
        for index in 1..<first.count { first[index] += first[index - 1] }
        var next = first
        self.transfers = Array(repeating: Transfer(source: 0, target: 0, site: 0), count: transfers.count)
        for transfer in transfers {
            self.transfers[next[Int(transfer.target)]] = transfer
            next[Int(transfer.target)] += 1
        }
    }

    subscript(_ index: Int) -> ArraySlice<Transfer> { transfers[first[index]..<first[index + 1]] }

    /// The entry of each call: one that calls twice comes twice.
    func sources(_ index: Int) -> some Sequence<Int> { self[index].lazy.map { Int($0.source) } }
}
