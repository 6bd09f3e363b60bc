/// A library that only one of two sets of launches loads.
struct LibraryChange {
    var name: String
    var kind: Cause.Change
    var relocations: Int

    static func between(_ first: [LaunchProfile], _ second: [LaunchProfile]) -> [LibraryChange] {
        let before = usual(first), after = usual(second)
        return after.filter { before[$0.key] == nil }.map { LibraryChange(name: $0.key, kind: .new, relocations: $0.value) }
            + before.filter { after[$0.key] == nil }.map { LibraryChange(name: $0.key, kind: .gone, relocations: $0.value) }
    }

    /// Relocations of those that most launches have.
    private static func usual(_ profiles: [LaunchProfile]) -> [String: Int] {
        var counts: [String: (launches: Int, relocations: Int)] = [:]
        for profile in profiles {
            for (name, group) in Dictionary(grouping: profile.libraries, by: \.name) {
                counts[name, default: (0, 0)].launches += 1
                counts[name]!.relocations = group.reduce(0) { $0 + $1.relocations }
            }
        }
        return counts.filter { $0.value.launches * 2 > profiles.count }.mapValues(\.relocations)
    }
}
