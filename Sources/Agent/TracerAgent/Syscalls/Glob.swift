// Patterns of * and ?, as lists of functions and conditions on strings have them. Without a system call.

enum Glob {
    /// Iterative glob: on a mismatch the last '*' takes one more character.
    /// The text ends at its NUL, or where it is `longest` bytes long.
    @inline(never) static func matches(_ pattern: CText, _ count: Int, _ text: CText, _ longest: Int = .max) -> Bool {
        if count == 1 && pattern[0] == 0x2a { return true } // the text may be where nobody has read yet
        var p = 0, t = 0, star = -1, resume = 0
        while t < longest && text[t] != 0 {
            if p < count && pattern[p] == 0x2a {
                star = p
                resume = t
                p &+= 1
            } else if p < count && (pattern[p] == 0x3f || pattern[p] == text[t]) {
                p &+= 1
                t &+= 1
            } else if star >= 0 {
                p = star &+ 1
                resume &+= 1
                t = resume
            } else {
                return false
            }
        }
        while p < count && pattern[p] == 0x2a { p &+= 1 }
        return p == count
    }
}
