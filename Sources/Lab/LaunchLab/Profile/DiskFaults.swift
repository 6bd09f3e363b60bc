// Page faults of a launch that had to wait for the disk: the stage, the file and the offset of each.
import Statistics
import TraceAnalysis

/// A fault of a launch, in the stage in which it was.
package struct DiskFault: Hashable, Sendable {
    package var stage: String
    /// As the kernel names what is mapped there.
    package var path: String
    /// Offset of the page in the file, bytes.
    package var offset: UInt64
}

/// The faults of several launches together: the page-in map.
package struct PageInMap: Sendable {
    package struct Page: Sendable {
        package var fault: DiskFault
        /// Number of launches that had this fault.
        package var launches: Int
    }
    package let launches: Int
    /// Sorted by stage in the order of the launch, then by file, then by offset.
    package let pages: [Page]

    /// - Parameter stages: their names, in their order.
    package init(_ faults: [[DiskFault]], stages: [String]) {
        launches = faults.count
        var counts: [DiskFault: Int] = [:]
        for fault in faults.flatMap({ Set($0) }) { counts[fault, default: 0] += 1 }
        let order = Dictionary(stages.enumerated().map { ($0.element, $0.offset) }) { first, _ in first }
        pages = counts.map { Page(fault: $0.key, launches: $0.value) }.sorted {
            (order[$0.fault.stage] ?? .max, $0.fault.path, $0.fault.offset) < (
                order[$1.fault.stage] ?? .max, $1.fault.path, $1.fault.offset
            )
        }
        perLaunch = faults
    }
    private let perLaunch: [[DiskFault]]

    /// The median of a launch.
    package func faults(where matches: (DiskFault) -> Bool) -> Int {
        Int(Sample(perLaunch.map { Double($0.count(where: matches)) }).median.rounded())
    }

    /// Returns the faults in this file that more than half of the launches had.
    func usual(_ path: String) -> [Page] { pages.filter { $0.fault.path == path && $0.launches * 2 > launches } }
    var paths: Set<String> { Set(pages.map(\.fault.path)) }
}
