// A set of launches of one program, put together: a sample for each stage, and what most of them have in common.
import Foundation
import Statistics

package struct LaunchSummary: Sendable {
    package struct Stage: Sendable {
        package var name: String
        package var sample: Sample
    }
    package struct Constructor: Sendable {
        package var key: CallNode.Key
        /// Nanoseconds.
        package var median: Double, least: Double
    }

    package struct Item: Sendable {
        package var key: CallNode.Key
        package var sample: Sample
        /// Confidence interval of the median, nanoseconds, at the confidence of all intervals here (95%).
        package var interval: ClosedRange<Double> {
            let fromNothing = Difference(Sample([0]), sample)
            return fromNothing.low...max(fromNothing.low, fromNothing.high)
        }
    }

    /// The name under which the whole launch stands among its stages.
    package static let wholeLaunch = "launch"

    /// The whole launch first.
    package var stages: [Stage]
    package var relocations: Int
    package var minorFaults: Int, majorFaults: Int
    /// Libraries that more than half of the launches load, sorted by name.
    package var libraries: [LaunchProfile.Library]
    /// Files that more than half of the launches use until they are ready, sorted by path; nil: no launch says which.
    package var files: [String]?
    /// The slowest first.
    package var constructors: [Constructor]
    /// Start-up items, in the order in which they begin.
    package var items: [Item]

    package init(_ profiles: [LaunchProfile]) {
        stages = [Stage(name: LaunchSummary.wholeLaunch, sample: Sample(profiles.map { Double($0.total) }))]
        // In the order of the launch that has most of them; a stage that a launch does not have took no time there.
        let longest = profiles.max { $0.stages.count < $1.stages.count }
        for stage in longest?.stages ?? [] {
            stages.append(Stage(name: stage.key.name, sample: Sample(profiles.map { Double($0.duration(of: stage.key.name) ?? 0) })))
        }
        func median(_ value: (LaunchProfile) -> Int) -> Int { Int(Sample(profiles.map { Double(value($0)) }).median) }
        relocations = median(\.relocations)
        minorFaults = median(\.minorFaults)
        majorFaults = median(\.majorFaults)

        items = LaunchSummary.items(profiles)
        files = LaunchSummary.files(profiles)
        var usual: [String: [Int]] = [:]
        var times: [CallNode.Key: [Double]] = [:]
        for profile in profiles {
            for library in profile.libraries { usual[library.name, default: []].append(library.relocations) }
            var own: [CallNode.Key: Double] = [:]
            for node in profile.constructors { own[node.key, default: 0] += Double(node.total) }
            for (key, time) in own { times[key, default: []].append(time) }
        }
        libraries = usual.filter { $0.value.count * 2 > profiles.count }
            .map { LaunchProfile.Library(name: $0.key, relocations: $0.value.max() ?? 0) }
            .sorted { $0.name < $1.name }
        constructors = times.filter { $0.value.count * 2 > profiles.count }
            .map { Constructor(key: $0.key, median: Sample($0.value).median, least: $0.value.min()!) }
            .sorted { ($1.median, $0.key.module, $0.key.name) < ($0.median, $1.key.module, $1.key.name) }
    }

    private static func files(_ profiles: [LaunchProfile]) -> [String]? {
        let launches = profiles.compactMap(\.files)
        if launches.isEmpty { return nil }
        var uses: [String: Int] = [:]
        for files in launches { for path in files { uses[path, default: 0] += 1 } }
        return uses.filter { $0.value * 2 > launches.count }.keys.sorted()
    }

    /// Returns the items that more than half of the launches have, in the order of the launch with the most items.
    private static func items(_ profiles: [LaunchProfile]) -> [Item] {
        var times: [CallNode.Key: [Double]] = [:]
        for profile in profiles {
            for (key, items) in Dictionary(grouping: profile.items, by: \.key) { // several may have one name
                times[key, default: []].append(items.reduce(0) { $0 + Double($1.total) })
            }
        }
        let longest = profiles.max { $0.items.count < $1.items.count }
        return (longest?.items ?? []).compactMap { item in
            times.removeValue(forKey: item.key).flatMap { $0.count * 2 > profiles.count ? Item(key: item.key, sample: Sample($0)) : nil }
        }
    }
}
