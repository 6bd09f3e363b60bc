import Synchronization
import Testing
import TracerAPI

/// Each test has stages of its own: items are the process's.
@Suite struct StartupTests {
    private final class Record: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { names.withLock { $0 } }
        func add(_ name: String) { names.withLock { $0.append(name) } }
    }

    @Test func itemsRunOnceInTheOrderOfTheirDependencies() {
        let record = Record()
        Startup.item(stage: 101, "database", after: ["config", "log"]) { record.add("database") }
        Startup.item(stage: 101, "free") { record.add("free") }
        Startup.item(stage: 101, "log", after: ["config"]) { record.add("log") }
        Startup.item(stage: 101, "config") { record.add("config") }
        #expect(record.all == [])
        for _ in 0..<3 { Startup.run(stage: 101) }
        #expect(record.all == ["free", "config", "log", "database"])
    }

    @Test func anItemOfThePoolRunsBetweenThoseItNamesAndThoseThatNameIt() {
        let record = Record()
        Startup.item(stage: 102, "last", after: ["beside"]) { record.add("last") }
        Startup.item(stage: 102, "beside", after: ["first"], on: .pool) { record.add("beside") }
        Startup.item(stage: 102, "first") { record.add("first") }
        Startup.run(stage: 102)
        #expect(record.all == ["first", "beside", "last"])
    }

    @Test func anItemMayRegisterOneAndRunAnotherStage() {
        let record = Record()
        Startup.item(stage: 103, "outer") {
            Startup.item(stage: 104, "inner of any name: é (stage 7") { record.add("inner") }
            Startup.run(stage: 104)
            record.add("outer")
        }
        Startup.run(stage: 103)
        #expect(record.all == ["inner", "outer"])
    }

    @Test func aStageWithoutItemsIsNothing() { Startup.run(stage: 105) }
}
