// Looking for a place in what lies in order.

/// Of `count` places the first for which `isBefore` does not hold, or `count`. It holds for all in front of that one and for
/// none behind it.
@inlinable @inline(__always) package func bisect(_ count: Int, _ isBefore: (Int) -> Bool) -> Int {
    var low = 0, high = count
    while low < high {
        let middle = (low + high) / 2
        if isBefore(middle) { low = middle + 1 } else { high = middle }
    }
    return low
}
