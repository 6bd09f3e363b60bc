import LaunchLab
import Statistics

/// Launches put together from parts, with a little noise that is the same in every run of the tests.
struct ProfileMaker {
    var random = SplitMix(seed: 11)
    var constructor = 5e6
    var hasExtraLibrary = false
    var workCalls = 10
    /// Time of one call of work, in nanoseconds.
    var work = 1e5
    var lock = 1e4
    var relocations = 100
    /// Files used until ready; nil: not known.
    var files: Int? = 20
    /// Time of a lazy initializer in load, in nanoseconds; 0: it has none.
    var lazy = 0.0
    /// Start-up items, by stage and name.
    var items: [(stage: Int, name: String, time: Double)] = [(1, "config", 2e6), (1, "log", 1e4)]

    private mutating func noisy(_ value: Double) -> NanosecondCount {
        NanosecondCount(value * Double.random(in: 0.98...1.04, using: &random))
    }

    mutating func profile() -> LaunchProfile {
        func library(_ name: String, _ constructor: String, _ time: NanosecondCount) -> CallNode {
            CallNode(
                .init(.library, module: name, name: name), count: 1, total: time,
                children: [CallNode(.init(.constructor, module: name, name: constructor), count: 1, total: time)])
        }
        var libraries = [library("libslow.so", "slow_init", noisy(constructor))]
        if hasExtraLibrary { libraries.append(library("libextra.so", "extra_init", noisy(1e6))) }
        let work = CallNode(.init(.call, module: "libwork.so", name: "work"), count: workCalls, total: noisy(work * Double(workCalls)))
        let lock = CallNode(.init(.call, module: "libc.so.6", name: "pthread_mutex_lock"), count: 1, total: noisy(lock))
        var load = CallNode(
            .init(.call, module: "app.so", name: "load"), count: 1, total: work.total + lock.total + noisy(2e6), children: [work, lock])
        if lazy > 0 {
            let once = CallNode(.init(.call, module: "libc.so.6", name: "pthread_once"), count: 1, total: noisy(lazy))
            load.children.append(
                CallNode(.init(.lazy, module: "app.so", name: "make_table"), count: 1, total: once.total, children: [once]))
            load.total += once.total
        }
        let stages = [
            stage("map and relocate libraries", noisy(hasExtraLibrary ? 2.6e6 : 2e6), [], module: CauseSearch.loading),
            stage("constructors of libraries", libraries.reduce(0) { $0 + $1.total }, libraries),
            stage("main → ready", load.total + noisy(1e5), [load]),
        ]
        var profile = LaunchProfile(
            tree: CallNode(.init(.root, module: "", name: ""), count: 1, total: stages.reduce(0) { $0 + $1.total }, children: stages),
            readyReason: "first listen",
            libraries: [.init(name: "libslow.so", relocations: relocations)]
                + (hasExtraLibrary ? [.init(name: "libextra.so", relocations: 5)] : []),
            minorFaults: 500, majorFaults: 0, tracerTime: 1000)
        profile.files = files.map { Set((0..<$0).map { "/etc/file-\($0)" }) }
        profile.items = items.map { item in
            CallNode(.init(.item, module: "stage \(item.stage)", name: item.name), count: 1, total: noisy(item.time))
        }
        return profile
    }

    private func stage(_ name: String, _ total: NanosecondCount, _ children: [CallNode], module: String = "") -> CallNode {
        CallNode(.init(.stage, module: module, name: name), count: 1, total: total, children: children)
    }

    static func profiles(_ count: Int = 15, _ change: (inout ProfileMaker) -> Void = { _ in }) -> [LaunchProfile] {
        var maker = ProfileMaker()
        change(&maker)
        maker.random = SplitMix(
            seed: UInt64(maker.workCalls) ^ UInt64(maker.constructor) ^ (maker.hasExtraLibrary ? 1 << 40 : 0) ^ UInt64(maker.lock) ^ UInt64(
                maker.lazy) << 8)
        return (0..<count).map { _ in maker.profile() }
    }
}
