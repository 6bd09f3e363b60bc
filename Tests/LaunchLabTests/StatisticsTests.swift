import LaunchLab
import Statistics
import Testing

@Suite struct StatisticsTests {
    @Test func quantilesLieBetweenTheNearestRuns() {
        let sample = Sample([40, 10, 30, 20])
        #expect(sample.median == 25)
        #expect(sample.quantile(0) == 10)
        #expect(sample.quantile(1) == 40)
        #expect(sample.quantile(0.9) == 37)
        #expect(sample.spread == 15)
        #expect(Sample([]).median == 0)
        #expect(Sample([7]).quantile(0.95) == 7)
    }

    /// Tables of the exact distribution: Mann and Whitney's own paper, and U = 3 of 4 and 5 values.
    @Test func rankTestGivesTheExactProbabilities() {
        #expect(abs(RankTest.probability(Sample([1, 2, 3]), Sample([4, 5, 6])) - 0.1) < 1e-12)
        #expect(abs(RankTest.probability(Sample([1, 2, 3, 4, 5]), Sample([6, 7, 8, 9, 10])) - 2.0 / 252) < 1e-12)
        #expect(abs(RankTest.probability(Sample([19, 22, 16, 29, 24]), Sample([20, 11, 17, 12])) - 14.0 / 126) < 1e-12)
        #expect(RankTest.probability(Sample([]), Sample([1])) == 1)
    }

    @Test func equalValuesAreNoDifference() {
        #expect(RankTest.probability(Sample([5, 5, 5, 5]), Sample([5, 5, 5, 5])) == 1)
        #expect(RankTest.probability(Sample([1, 1, 1, 2, 2, 2]), Sample([1, 1, 2, 2, 2, 1])) > 0.9)
    }

    @Test func manyRunsOfOneDistributionAreSeldomCalledDifferent() {
        var random = SplitMix(seed: 7)
        var alarms = 0
        for _ in 0..<300 {
            let a = Sample((0..<25).map { _ in Double.random(in: 0...1, using: &random) })
            let b = Sample((0..<25).map { _ in Double.random(in: 0...1, using: &random) })
            if RankTest.probability(a, b) < 0.05 { alarms += 1 }
        }
        #expect((4...28).contains(alarms)) // 15 expected; a binomial leaves this range once in 10,000
    }

    @Test func differenceHoldsTheTrueOneAndIsTheSameEachTime() {
        var random = SplitMix(seed: 3)
        let a = Sample((0..<30).map { _ in Double.random(in: 100...110, using: &random) })
        let b = Sample((0..<30).map { _ in Double.random(in: 105...115, using: &random) })
        let difference = Difference(a, b)
        #expect(difference.isSignificant)
        #expect(difference.low < 5 && difference.high > 5 && difference.low > 0)
        #expect(Difference(a, b) == difference)
        #expect(!Difference(a, a).isSignificant)
    }

    @Test func whatTheMachineAlwaysDoesIsNoDisturbance() {
        let second: UInt64 = 1_000_000_000, ms: UInt64 = 1_000_000
        var quiet = MachineWatch()
        for _ in 0..<4 {
            #expect(quiet.reason(calibration: 2 * ms, stolen: 0, elapsed: second) == nil)
            #expect(quiet.reason(calibration: 2 * ms, stolen: 10 * ms, elapsed: 20 * ms) == nil) // one step of the counter
        }
        #expect(quiet.reason(calibration: 2 * ms, stolen: 150 * ms, elapsed: second) == "the hypervisor took 150.000 ms")
        #expect(quiet.reason(calibration: 3 * ms, stolen: 0, elapsed: second) == "the CPU was 50.0% slower than usual")
        var stolenAlways = MachineWatch()
        let reasons = (0..<6).map { _ in stolenAlways.reason(calibration: 2 * ms, stolen: 150 * ms, elapsed: second) }
        #expect(reasons == [nil, nil, nil, nil, nil, nil])
        #expect(stolenAlways.reason(calibration: 2 * ms, stolen: 400 * ms, elapsed: second) == "the hypervisor took 400.000 ms")
    }

    @Test func waitingForACPUIsADisturbanceWhereItCannotBeTakenOut() {
        let ms: UInt64 = 1_000_000
        #expect(MachineWatch.reason(hiddenWait: 0, length: 10 * ms) == nil)
        #expect(MachineWatch.reason(hiddenWait: ms / 20, length: ms / 10) == nil) // a thread that is woken waits a little
        #expect(
            MachineWatch.reason(hiddenWait: 4 * ms, length: 40 * ms)
                == "it waited 4.000 ms for a CPU, and the kernel does not report when")
    }

    @Test func aLaunchLastsUntilItHappenedNotUntilTheToolHeardOfIt() {
        func moment(late: UInt64, ran: UInt64 = 3, waited: UInt64 = 20) -> LaunchMoment {
            LaunchMoment(exec: 1000, at: 1100, late: late, cpu: 4, firstThread: .init(ran: ran, waited: waited))
        }
        #expect(moment(late: 0).wall == 100 && moment(late: 0).net == 80)
        #expect(moment(late: 60).at == 1040 && moment(late: 60).net == 20)
        // The tool had waited before that, too: the program ran for that long, and waited for a CPU.
        #expect(moment(late: 95).at == 1023 && moment(late: 95).net == 3)
        #expect(moment(late: 500, ran: 200).net == 80) // figures that cannot be
        // What the program did is its launch's until the tool heard, and answered, also where the estimate is too early.
        #expect(moment(late: 95).heard == 1100)
        let unknown = LaunchMoment(exec: 1000, at: 1100, late: 40, cpu: 4, firstThread: nil)
        #expect(unknown.net == 60 && unknown.cpuWait == nil)
        #expect(LaunchMoment(exec: 1000, at: 900, cpu: 0, firstThread: nil).wall == 0)
    }

    @Test func figuresThatCannotBothBeTrueAreSaid() {
        var result = LaunchResult()
        result.profiles = ProfileMaker.profiles(15)
        let total = Sample(result.profiles.map { Double($0.total) }).median
        result.untracedTotals = (0..<5).map { total * (0.98 + Double($0) / 100) }
        #expect(result.contradictions == [])
        result.untracedTotals = result.untracedTotals.map { $0 / 2 }
        #expect(result.contradictions.count == 1 && result.contradictions[0].contains("without the agent"), "\(result.contradictions)")
        result.untracedTotals = result.untracedTotals.map { $0 * 4 }
        #expect(result.contradictions.count == 1)
        result.disturbedKept = 1
        #expect(result.contradictions == [])
        // A stage longer than the launch that it is in.
        result.untracedTotals = []
        result.profiles = result.profiles.map { profile in
            var profile = profile
            profile.tree.total /= 4
            return profile
        }
        #expect(result.contradictions.contains { $0.contains("its stage") })
    }

    @Test func launchesThatWereMadeAgainMakeTimesWildToo() {
        var result = LaunchResult()
        result.allTotals = [5, 1000, 1000, 5, 5, 1000, 1000, 5].map { $0 * 1e6 } // the long ones do not count
        result.profiles = ProfileMaker.profiles(4)
        #expect(result.wildTimes(swing: 1)?.early == 5e6 && result.wildTimes(swing: 1)?.late == 1000e6)
        result.disturbed = ["slow"]
        #expect(result.isLastQuarterCalm)
        result.disturbed += ["slow", "slow", "slow"] // what made these long may be the machine
        #expect(!result.isLastQuarterCalm)
        #expect(result.wildTimes(swing: 100) == nil) // the machine itself was that much slower
        result.allTotals = [5, 6, 5, 7, 5, 6, 1000].map { $0 * 1e6 }
        #expect(result.wildTimes(swing: 1) == nil)
    }

    @Test func commandsAreReadAsAShellReadsWords() {
        #expect(LaunchCommand(text: "./app --serve 'two words' a\\ b \"c'd\"")?.words == ["./app", "--serve", "two words", "a b", "c'd"])
        #expect(LaunchCommand(text: "  ")?.words == [])
        #expect(LaunchCommand(text: "app 'open") == nil)
        #expect(LaunchCommand(words: ["a b", "it's", "x=1"]).text == "'a b' 'it'\\''s' x=1")
    }
}
