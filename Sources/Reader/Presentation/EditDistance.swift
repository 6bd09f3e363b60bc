extension String {
    /// How many characters have to be put in, taken out or exchanged, and how many neighbours swapped, to make the other of it
    /// (optimal string alignment).
    package func editDistance(to other: String) -> Int {
        let a = Array(self), b = Array(other)
        var before: [Int] = [], row = Array(0...b.count)
        for i in 1..<a.count + 1 {
            var next = [i]
            for j in 1..<b.count + 1 {
                var least = Swift.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { least = Swift.min(least, before[j - 2] + 1) }
                next.append(least)
            }
            (before, row) = (row, next)
        }
        return row[b.count]
    }
}

extension Sequence<String> {
    /// The one that a misspelt word is most like; nil when none is like it.
    package func nearest(to word: String) -> String? {
        map { ($0.editDistance(to: word), $0) }.filter { $0.0 <= Swift.max(2, word.count / 3) }.min { $0 < $1 }?.1
    }
}
