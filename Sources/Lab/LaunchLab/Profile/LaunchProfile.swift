// Profile of one launch, from exec to ready: the part of a trace by which launches are compared. It is a tree that holds
// all of the launch's time: stages, below them libraries with their constructors, and the calls on the way to ready.

package struct LaunchProfile: Sendable {
    package struct Library: Equatable, Sendable {
        /// The file's name without its folder: builds live in different directories.
        package var name: String
        package var relocations: Int
        package init(name: String, relocations: Int) { (self.name, self.relocations) = (name, relocations) }
    }

    /// Its children are the stages, in order, one after the other.
    package var tree: CallNode
    package var readyReason: String
    package var libraries: [Library]
    package var minorFaults: Int, majorFaults: Int
    /// Start-up items of all threads, in the order in which they began, each without the items that it ran itself. Those of the main
    /// thread are in the tree as well.
    package var items: [CallNode] = []
    /// Time that the agent itself took; not part of the stages.
    package var tracerTime: NanosecondCount
    /// How long the main thread could have gone on and had no CPU, or waited for threads that had none; not part of the stages.
    package var cpuWait: NanosecondCount = 0
    /// How long it had no CPU besides, at moments that are not known: that is in some of the stages. nil: nobody knows how long.
    package var hiddenWait: UInt64? = 0
    /// How long other threads of the program went on while the main thread had no CPU: it may have waited that much less for them.
    package var concurrentWait: NanosecondCount = 0
    /// How long it waited for other threads of which nobody knows since when they had no CPU; part of the stages.
    package var uncertainWait: NanosecondCount = 0
    /// Until ready; nil: they were not watched, or the kernel did not report them.
    package var diskFaults: [DiskFault]?
    /// Paths of the files of which a call succeeded until ready; nil: the calls that use files were not recorded with their arguments.
    package var files: Set<String>?
    /// Share of the cost of recording a call that lies in the call's own length, as the agent measured it; the default, for
    /// when it could not, is typical of the machines that were measured.
    package var insideShare = 0.4

    package init(
        tree: CallNode, readyReason: String, libraries: [Library], minorFaults: Int, majorFaults: Int,
        tracerTime: NanosecondCount
    ) {
        self.tree = tree
        self.readyReason = readyReason
        self.libraries = libraries
        self.minorFaults = minorFaults
        self.majorFaults = majorFaults
        self.tracerTime = tracerTime
    }

    /// With times as `change` makes them.
    func mapped(_ change: (CallNode) -> CallNode) -> LaunchProfile {
        var profile = self
        profile.tree = change(tree)
        profile.items = items.map(change)
        return profile
    }

    /// The shortest, and the longest, that it may have been for what is not known of its threads: each stage in which there may be several.
    var shortest: LaunchProfile { extended(by: -uncertainWait) }
    var longest: LaunchProfile { extended(by: concurrentWait) }
    private func extended(by time: NanosecondCount) -> LaunchProfile {
        var profile = self
        func extend(_ node: inout CallNode) { node.total = max(node.total + time, 0) }
        extend(&profile.tree)
        for index in profile.tree.children.indices where !LaunchReader.isBeforeThreads(profile.tree.children[index].key.name) {
            extend(&profile.tree.children[index])
        }
        return profile
    }

    package var stages: [CallNode] { tree.children }
    package var total: NanosecondCount { tree.total }
    package var relocations: Int { libraries.reduce(0) { $0 + $1.relocations } }
    package func duration(of stage: String) -> NanosecondCount? { stages.first { $0.key.name == stage }?.total }

    /// With the library that each belongs to, wherever in the tree.
    package var constructors: [CallNode] { tree.all(.constructor) }
}
