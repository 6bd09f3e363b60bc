// A member that is reached from a parameter: `request->uri.len`.
import CElfutils

package struct MemberPath: Sendable, Hashable {
    package struct Member: Sendable, Hashable {
        /// After `->`, and not after `.`
        var isBehindPointer: Bool
        var name: String
    }
    package let text: String
    package let parameter: String
    let members: [Member]

    /// nil: the text has neither `->` nor `.`, or no name before or after one.
    package init?(_ text: String) {
        self.text = text
        var words: [Member] = []
        for (n, part) in text.split(separator: "->", omittingEmptySubsequences: false).enumerated() {
            for (k, name) in part.split(separator: ".", omittingEmptySubsequences: false).enumerated() {
                if name.isEmpty { return nil }
                words.append(Member(isBehindPointer: n > 0 && k == 0, name: String(name)))
            }
        }
        guard words.count > 1 else { return nil }
        parameter = words[0].name
        members = Array(words.dropFirst())
    }
}

/// The member that a path leads to.
package struct SourceMember: Sendable {
    /// Offsets from the parameter on: of each pointer that is followed, and of the member.
    package var steps: [Int]
    package var type: SourceType
}

/// Why a path leads nowhere.
package struct MemberProblem: Error, Sendable {
    package var reason: String
}

extension MemberPath {
    /// - Parameter type: of the parameter
    func resolved(from type: Dwarf_Die, _ types: inout SourceTypeReader) throws(MemberProblem) -> SourceMember {
        var current = type, offset: Int?, steps: [Int] = [], way = parameter
        for member in members {
            guard var whole = SourceMembers.definition(current) else { throw MemberProblem(reason: "the type of \(way) is only declared") }
            let tag = Int(dwarf_tag(&whole))
            if [DW_TAG_pointer_type, DW_TAG_reference_type, DW_TAG_rvalue_reference_type].contains(tag) {
                guard member.isBehindPointer == (tag == DW_TAG_pointer_type) else {
                    throw MemberProblem(reason: "\(way) is a \(tag == DW_TAG_pointer_type ? "pointer: write ->" : "reference: write .")")
                }
                if let offset { steps.append(offset) }
                offset = 0
                guard let behind = SourceMembers.target(whole).flatMap(SourceMembers.definition) else {
                    throw MemberProblem(reason: "what \(way) points to is only declared")
                }
                whole = behind
            } else if member.isBehindPointer || offset == nil {
                throw MemberProblem(reason: "\(way) is no pointer\(offset == nil ? " and no reference" : "")")
            }
            guard let found = SourceMembers.member(member.name, of: whole) else {
                throw MemberProblem(reason: "\(way) has no member \(member.name), or it is a bit-field")
            }
            offset = offset! + found.offset
            current = found.type
            way += (member.isBehindPointer ? "->" : ".") + member.name
        }
        return SourceMember(steps: steps + [offset!], type: types.type(at: current))
    }
}
