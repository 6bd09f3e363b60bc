import LaunchLab
import Statistics
import Testing

@Suite struct CauseSearchTests {
    @Test func whatRecordingCostIsTakenOutWhole() {
        func call(_ name: String, _ count: Int, _ total: NanosecondCount, _ children: [CallNode] = []) -> CallNode {
            CallNode(.init(.call, module: "app", name: name), count: count, total: total, children: children)
        }
        let tree = CallNode(
            .init(.stage, module: "", name: "main → ready"), count: 1, total: 1000,
            children: [
                call("work", 10, 600, [call("malloc", 100, 300)])
            ])
        // 110 calls of 5 ns. Of malloc's 500 its own 300 bear 200, work bears 300 and its own 20, of which it has but 300.
        let without = tree.without(callCost: 5, insideShare: 0.4)
        #expect(without.total == 1000 - 550)
        #expect(without.children[0].total == 100 && without.children[0].children[0].total == 100)
        // More than there is stays at nothing.
        #expect(tree.without(callCost: 100, insideShare: 0.4).total == 0)
    }

    let before = ProfileMaker.profiles()

    private func causes(_ change: (inout ProfileMaker) -> Void) -> Attribution {
        CauseSearch.attribute(from: before, to: ProfileMaker.profiles(15, change))
    }

    @Test func aSlowerConstructorIsNamed() throws {
        let found = causes { $0.constructor = 8e6 }
        let first = try #require(found.causes.first)
        #expect(first.kind == .constructor && first.name == "slow_init" && first.module == "libslow.so" && first.change == .slower)
        #expect(first.share > 0.9 && first.share < 1.1)
    }

    @Test func aNewLibraryIsTheReasonForItsConstructorAndForLoading() throws {
        let found = causes { $0.hasExtraLibrary = true }
        let first = try #require(found.causes.first)
        #expect(first.kind == .library && first.name == "libextra.so" && first.change == .new)
        #expect(abs(first.difference - 1.6e6) < 0.3e6)
        #expect(!found.causes.contains { $0.name == "extra_init" || $0.kind == .stage })
    }

    @Test func aLibraryThatIsGoneExplainsWhatBecameFaster() throws {
        let found = CauseSearch.attribute(from: ProfileMaker.profiles(15) { $0.hasExtraLibrary = true }, to: before)
        let first = try #require(found.causes.first)
        #expect(first.name == "libextra.so" && first.change == .gone && first.difference < 0)
        #expect(first.share > 0.8)
    }

    @Test func moreCallsAreNotTakenForSlowerCalls() throws {
        let often = try #require(causes { $0.workCalls = 100 }.causes.first)
        #expect(often.name == "work" && often.change == .calledMoreOften)
        #expect(often.callsBefore == 10 && often.callsAfter == 100)
        let slow = try #require(causes { $0.lock = 4e6 }.causes.first)
        #expect(slow.name == "pthread_mutex_lock" && slow.change == .slower && slow.callsAfter == 1)
        #expect(slow.path == ["main → ready", "load", "pthread_mutex_lock"])
    }

    /// As a machine does that is busier than it was: how often is a fact, and half of what they cost more, or nearly so.
    @Test func moreCallsAreNamedThoughEachTakesLongerToo() throws {
        let often = try #require(causes { ($0.workCalls, $0.work) = (40, 3e5) }.causes.first)
        #expect(often.name == "work" && often.change == .calledMoreOften)
        let less = try #require(
            CauseSearch.attribute(
                from: ProfileMaker.profiles { ($0.workCalls, $0.work) = (40, 3e5) }, to: ProfileMaker.profiles()
            ).causes.first)
        #expect(less.name == "work" && less.change == .calledLessOften)
        let slow = try #require(causes { ($0.workCalls, $0.work) = (11, 4e5) }.causes.first)
        #expect(slow.name == "work" && slow.change == .slower && slow.callsAfter == 11)
    }

    @Test func aLazyInitializerIsOneThing() throws {
        let slower = CauseSearch.attribute(
            from: ProfileMaker.profiles(15) { $0.lazy = 1e6 }, to: ProfileMaker.profiles(15) { $0.lazy = 5e6 })
        #expect(slower.causes.map(\.name) == ["make_table"])
        #expect(slower.causes[0].kind == .lazy && slower.causes[0].change == .slower)
        #expect(LaunchText.describe(slower.causes[0]) == "lazy initializer make_table of app.so, from load")
        let new = try #require(causes { $0.lazy = 2e6 }.causes.first)
        #expect(new.kind == .lazy && new.change == .new)
    }

    /// As a stripped program is compared with its next build.
    @Test func aFunctionWithoutANameIsNotNewBecauseItsAddressChanged() throws {
        func launches(_ names: [String], seed: UInt64, time: Double) -> [LaunchProfile] {
            var maker = ProfileMaker()
            maker.random = SplitMix(seed: seed)
            return (0..<15).map { _ in
                var profile = maker.profile()
                let calls = names.map {
                    CallNode(
                        .init(.call, module: "app", name: $0), count: 2,
                        total: NanosecondCount(time * Double.random(in: 0.98...1.04, using: &maker.random)))
                }
                profile.tree.children[2].children += calls
                profile.tree.children[2].total += calls.reduce(0) { $0 + $1.total }
                profile.tree.total += calls.reduce(0) { $0 + $1.total }
                return profile
            }
        }
        let old = launches(["app+0x1200", "app+0x1800"], seed: 1, time: 3e6)
        #expect(CauseSearch.attribute(from: old, to: launches(["app+0x1240", "app+0x1880"], seed: 2, time: 3e6)).causes.isEmpty)
        let slower = try #require(
            CauseSearch.attribute(from: old, to: launches(["app+0x1240", "app+0x1880"], seed: 2, time: 5e6)).causes.first)
        #expect(slower.name == "(without a name)" && slower.change == .slower && abs(slower.difference - 4e6) < 1e6)
        // In the same build, each function without a name is identified by its offset.
        let other = try #require(
            CauseSearch.attribute(from: old, to: launches(["app+0x1200", "app+0x1800", "app+0x1900"], seed: 2, time: 3e6)).causes.first)
        #expect(other.name == "app+0x1900" && other.change == .new)
        #expect(LaunchText.describe(other) == "app+0x1900, 2 times")
    }

    @Test func sharesAndTheRestAddUp() {
        let found = causes {
            $0.constructor = 7e6
            $0.workCalls = 40
        }
        #expect(found.causes.prefix(2).map(\.name) == ["work", "slow_init"])
        #expect(abs(found.causes.reduce(0) { $0 + $1.difference } + found.unexplained - found.difference) < 1)
        #expect(abs(found.unexplained) < 0.1 * found.difference)
    }

    @Test func unchangedLaunchesHaveNoCause() {
        var maker = ProfileMaker()
        maker.random = SplitMix(seed: 99)
        let again = (0..<15).map { _ in maker.profile() }
        #expect(CauseSearch.attribute(from: before, to: again).causes.isEmpty)
    }

    @Test func threeLaunchesAreEnoughForAClearCause() throws {
        let found = CauseSearch.attribute(from: ProfileMaker.profiles(3), to: ProfileMaker.profiles(3) { $0.constructor = 9e6 })
        #expect(found.causes.first?.name == "slow_init")
    }

    @Test func theAgentsShareIsTakenFromTheStagesThatMadeTheCalls() {
        var result = LaunchResult()
        result.profiles = ProfileMaker.profiles(15) { $0.workCalls = 1000 } // with two more: 1002 calls, all in main
        let total = Sample(result.profiles.map { Double($0.total) }).median
        result.untracedTotals = [total - 1e5, total - 1e5, total - 1e5]
        let corrected = LaunchSummary(result.corrected), raw = LaunchSummary(result.profiles)
        #expect(abs(raw.stages[0].sample.median - corrected.stages[0].sample.median - 1e5) < 10)
        for name in ["map and relocate libraries", "constructors of libraries"] {
            #expect(raw.stages.first { $0.name == name }!.sample == corrected.stages.first { $0.name == name }!.sample)
        }
        // Time subtracted from a call is subtracted from everything around it, too, so that nothing is left to explain.
        for profile in result.corrected {
            #expect(profile.tree.own == 0 && profile.tree.all(.call).allSatisfy { $0.own >= 0 })
        }
        // More than that many calls can cost is noise, and so is a launch that was faster with the agent.
        result.untracedTotals = [1, 1, 1]
        #expect(result.overhead == 1002 * LaunchResult.costliestCall)
        result.untracedTotals = [total * 2, total * 2, total * 2]
        #expect(result.overhead == 0)
    }
}
