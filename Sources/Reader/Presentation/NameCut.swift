// Names of functions that are too long for their column: what is between the parentheses goes first, then the middle of what is in
// front of them. The name itself stands at the end of that, where cutting from the right would take it.

package func cutName(_ name: String, _ width: Int) -> String {
    guard name.count > width else { return name }
    let (head, parameters, tail) = nameParts(name)
    if parameters.count > 2 {
        let fixed = head.count + tail.count + 2
        if fixed + 1 <= width {
            // Some of the parameters from both ends.
            let left = width - fixed - 1, inner = parameters.dropFirst().dropLast()
            return head + "(" + inner.prefix((left + 1) / 2) + "…" + inner.suffix(left / 2) + ")" + tail
        }
        return cutMiddle(head + "(…)" + tail, width)
    }
    return cutMiddle(name, width)
}

private func cutMiddle(_ text: String, _ width: Int) -> String {
    guard text.count > width else { return text }
    guard width > 1 else { return "…" }
    let front = (width - 1) / 3
    return text.prefix(front) + "…" + text.suffix(width - 1 - front)
}

/// "a::f<int>", "(int, char)", " const". Parameters are the last pair of parentheses that is not within others or within <>.
package func nameParts(_ name: String) -> (head: String, parameters: String, tail: String) {
    var depth = 0, end: String.Index?, index = name.endIndex
    while index > name.startIndex {
        index = name.index(before: index)
        switch name[index] {
        case ")":
            if depth == 0, end == nil { end = name.index(after: index) }
            depth += 1
        case "(":
            depth -= 1
            if depth == 0, let end {
                return (String(name[..<index]), String(name[index..<end]), String(name[end...]))
            }
        default: break
        }
    }
    return (name, "", "")
}
