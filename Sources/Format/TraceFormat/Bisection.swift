// Binary search.

/// Returns the first of `count` indices for which `isBefore` is false, or `count`. It must be true for all indices before that
/// one and false for all after it.
@inlinable @inline(__always) public func bisect(_ count: Int, _ isBefore: (Int) -> Bool) -> Int {
    var low = 0, high = count
    while low < high {
        let middle = (low &+ high) / 2
        if isBefore(middle) { low = middle &+ 1 } else { high = middle }
    }
    return low
}
