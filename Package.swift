// swift-tools-version: 6.1
import PackageDescription

// The agent runs inside processes that know nothing of Swift: Embedded Swift, no allocation, nothing but libc.
// - stack protector off: its guard lives in the traced program's thread block, and trampolines run before libc is up.
// - x86-64 baseline (the default target): legacy SSE leaves upper vector halves and mask registers alone, which is
//   what lets the slow path save xmm0-15 and nothing else.
let agentSwift: [SwiftSetting] = [
    .enableExperimentalFeature("Embedded"),
    .enableExperimentalFeature("Extern"),
    .unsafeFlags([
        "-wmo", "-no-allocations", "-Ounchecked", "-Xfrontend", "-function-sections", "-disable-stack-protector", "-dwarf-version=4",
    ]),
]
// Jumps that touch a 32-byte boundary are slow on Skylake and its kin (Intel SKX102).
#if arch(x86_64)
let jumpPadding = ["-mbranches-within-32B-boundaries"]
// Who calls a function of ours may have left the stack at 8 off 16: assembly, JITs.
let realignment = ["-mstackrealign"]
let reservedStart = "0x100000"
#else
let jumpPadding: [String] = []
let realignment: [String] = [] // the CPU checks the stack pointer at each use
let reservedStart = "0x200000" // segments begin on pages of 64 KB (scripts/cross-build)
#endif
let agentC: [CSetting] = [
    .unsafeFlags(
        [
            "-O2", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fvisibility=hidden",
            "-fasynchronous-unwind-tables", "-ftls-model=initial-exec", "-gdwarf-4",
        ] + jumpPadding + realignment),
    .headerSearchPath("../Sources/Format/CTraceLayout/include"),
]
// initfirst: our constructor runs before every other, libc's included, so that what those call is recorded.
// "Embedded" keeps the driver from linking Swift's runtime.
// bfd gives the reserved area for labels, which is in no file (trampoline.S), a segment of its own. gold puts it after the code, where
// the loader would have to clear a part of a page of code; lld before it, and then sorts the table of .eh_frame_hdr wrongly.
let agentLinker: [LinkerSetting] = [
    .unsafeFlags([
        "-enable-experimental-feature", "Embedded", "-use-ld=bfd", "-Xclang-linker", "-shared",
        "-Xlinker", "--version-script=\(Context.packageDirectory)/CSupport/exports.map",
        "-Xlinker", "-z", "-Xlinker", "initfirst", "-Xlinker", "-z", "-Xlinker", "now",
        "-Xlinker", "-z", "-Xlinker", "noseparate-code", "-Xlinker", "--gc-sections", "-Xlinker", "-soname=libtracer.so",
        // Slots and return addresses of the program lead into it: dlclose must not unmap it.
        "-Xlinker", "-z", "-Xlinker", "nodelete",
        // Far from the writable segment: bfd begins a new one only where a page would be skipped.
        "-Xlinker", "--section-start=.reserved=\(reservedStart)",
        // The build id also shows the agent whether a cached scan is of the same agent (ScanCache.swift).
        "-Xlinker", "--build-id=sha1",
    ]),
    // Symbols stay; debugging information would only make debuggers of traced programs complain of missing modules.
    .unsafeFlags(["-Xlinker", "-S"], .when(configuration: .release)),
]

// For modules without hot loops. LLVM optimizes as everywhere; Swift's own optimizer, which takes three quarters of a module's
// build time, neither specializes nor inlines, which also makes the code smaller. Diagnostics and run-time checks are those of -O.
let coldSwift: [SwiftSetting] = [.unsafeFlags(["-Xfrontend", "-disable-sil-perf-optzns"], .when(configuration: .release))]

// The tool brings Swift's runtime and Foundation along, which makes it start in half the time and run where no Swift is. The
// objects are compiled for dynamic libraries, as the test bundle needs them, so they do not name the archives that Foundation needs.
let staticSwift: [LinkerSetting] = [
    .unsafeFlags([
        "-static-stdlib", "-lCoreFoundation", "-l_FoundationICU", "-l_FoundationCShims", "-l_FoundationCollections",
        "-lstdc++", // ICU's; scripts/package links its archive, which the linker reads where it is named
    ])
]

let package = Package(
    name: "tracer",
    products: [
        // SwiftPM keeps link inputs in NAME.product, whatever the kind of product: a library "tracer" would share the folder
        // with the tool of that name, and the second build would link one with the other's objects. The agent is therefore
        // an "executable" that the linker is instructed to make a shared library.
        .executable(name: "libtracer.so", targets: ["AgentEntry"]),
        // For programs that name their own moments and stretches; needs nothing of the rest.
        .library(name: "TracerAPI", targets: ["TracerAPI"]),
        .executable(name: "tracer", targets: ["tracer"]),
        // For LD_AUDIT, on request: tracer startup --loader.
        .library(name: "tracer-audit", type: .dynamic, targets: ["LoaderAudit"]),
        .library(name: "tracer-labels", type: .dynamic, targets: ["LabelLibrary"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        .target(name: "CTraceLayout", path: "Sources/Format/CTraceLayout"),
        // How everything that the tool prints or writes is spelt.
        .target(name: "Presentation", path: "Sources/Reader/Presentation"),
        .target(name: "TraceFormat", dependencies: ["CTraceLayout"], path: "Sources/Format/TraceFormat"),
        .target(name: "CSupport", path: "CSupport", cSettings: agentC),
        .target(
            name: "TracerAgent", dependencies: ["CSupport", "CTraceLayout"], path: "Sources/Agent/TracerAgent", swiftSettings: agentSwift),
        .executableTarget(
            name: "AgentEntry", dependencies: ["CSupport", "TracerAgent"], path: "Sources/Agent/AgentEntry", cSettings: agentC,
            linkerSettings: agentLinker),
        .target(name: "CTracerAPI", path: "Sources/Program/CTracerAPI"),
        .target(name: "TracerAPI", dependencies: ["CTracerAPI"], path: "Sources/Program/TracerAPI"),
        .testTarget(name: "TracerAPITests", dependencies: ["TracerAPI"]),
        // In libswiftCore and libiberty.
        .target(name: "CDemangle", path: "Sources/Binaries/CDemangle", linkerSettings: [.linkedLibrary("iberty")]),
        // libdw and libelf of elfutils.
        .systemLibrary(name: "CElfutils", path: "Sources/Binaries/CElfutils"),
        // ELF files and their DWARF.
        .target(name: "ELF", dependencies: ["CElfutils", "TraceFormat"], path: "Sources/Binaries/ELF"),
        .target(name: "Symbols", dependencies: ["CTraceLayout", "ELF", "TraceFormat"], path: "Sources/Binaries/Symbols"),
        .systemLibrary(name: "CDeflate", path: "Sources/Reader/CDeflate"),
        // Prototypes that are known without asking: prototypes.txt.
        .target(
            name: "CPrototypes", path: "Sources/Reader/CPrototypes", exclude: ["prototypes.txt"], cSettings: [.unsafeFlags(["-std=c23"])]),
        // Loads libZydis when it is asked to decode; needs its headers alone.
        .target(name: "CZydis", path: "Sources/Binaries/CZydis"),
        // Decides which functions of a module get an entry patch, and of what kind.
        .target(
            name: "EntryPlan", dependencies: ["CTraceLayout", "CZydis", "ELF", "Symbols", "TraceFormat"], path: "Sources/Binaries/EntryPlan"
        ),
        .target(
            name: "TraceAnalysis",
            dependencies: [
                "Presentation", "TraceFormat", "CTraceLayout", "CDemangle", "CDeflate", "CPrototypes", "ELF", "Symbols",
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ], path: "Sources/Reader/TraceAnalysis"),
        // No libc: the loader would load a second one for it.
        .target(
            name: "LoaderAudit", path: "Sources/Agent/LoaderAudit", exclude: ["exports.map"],
            cSettings: [
                .unsafeFlags(["-O2", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fvisibility=hidden"]),
                .headerSearchPath("../../Format/CTraceLayout/include"),
            ],
            linkerSettings: [
                .unsafeFlags([
                    "-enable-experimental-feature", "Embedded", "-nostartfiles", "-Xclang-linker", "-nostdlib",
                    "-Xlinker", "--version-script=\(Context.packageDirectory)/Sources/Agent/LoaderAudit/exports.map",
                    "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "-soname=libtracer-audit.so",
                ])
            ]),
        .target(
            name: "LabelLibrary", path: "Sources/Agent/LabelLibrary",
            cSettings: [.headerSearchPath("../../Format/CTraceLayout/include")],
            linkerSettings: [
                .unsafeFlags([
                    "-enable-experimental-feature", "Embedded", "-use-ld=bfd", "-nostartfiles", "-Xclang-linker", "-nostdlib",
                    "-Xlinker", "-z", "-Xlinker", "noseparate-code", "-Xlinker", "-soname=libtracer-labels.so",
                    "-Xlinker", "-z", "-Xlinker", "nodelete",
                    // As for the agent's.
                    "-Xlinker", "--section-start=.reserved=0x100000",
                ])
            ]),
        // Stacks out of registers and a copy of a stack's end.
        .target(name: "Unwinding", dependencies: ["CTraceLayout", "CZydis", "ELF", "TraceFormat"], path: "Sources/Binaries/Unwinding"),
        .target(name: "CInheritance", path: "Sources/Recorder/CInheritance"),
        .target(name: "CRecorder", dependencies: ["CInheritance"], path: "Sources/Recorder/CRecorder"),
        .target(
            name: "Recorder", dependencies: ["CRecorder", "CTraceLayout", "ELF", "TraceFormat", "Unwinding"],
            path: "Sources/Recorder/Recorder"),
        .target(name: "CLaunch", dependencies: ["CInheritance"], path: "Sources/Lab/CLaunch"),
        .target(name: "Statistics", path: "Sources/Lab/Statistics"),
        .systemLibrary(name: "CSQLite", path: "Sources/Lab/CSQLite"),
        .target(
            name: "LaunchLab",
            dependencies: [
                "CLaunch", "CRecorder", "CSQLite", "ELF", "Presentation", "Recorder", "Statistics", "Symbols", "TraceAnalysis",
                "TraceFormat",
            ], path: "Sources/Lab/LaunchLab",
            swiftSettings: coldSwift),
        .target(name: "CPageFiles", path: "Sources/Reader/CPageFiles", cSettings: [.unsafeFlags(["-std=c23"])]),
        .target(
            name: "TracePage",
            dependencies: ["CPageFiles", "CTraceLayout", "Presentation", "Symbols", "TraceAnalysis", "TraceFormat"],
            path: "Sources/Reader/TracePage",
            exclude: ["Resources"]), // CPageFiles has them
        // Apart, so that TracePage and LaunchLab are compiled at the same time.
        .target(
            name: "LaunchPage", dependencies: ["LaunchLab", "Presentation", "TraceAnalysis", "TracePage"], path: "Sources/Lab/LaunchPage",
            swiftSettings: coldSwift),
        .target(name: "CCoveragePage", path: "Sources/Lab/CCoveragePage", cSettings: [.unsafeFlags(["-std=c23"])]),
        // Use of functions over several traces: which were never called, and in which order the linker should lay them out.
        .target(
            name: "FunctionUse",
            dependencies: ["CCoveragePage", "CTraceLayout", "ELF", "EntryPlan", "Presentation", "Symbols", "TraceAnalysis", "TraceFormat"],
            path: "Sources/Lab/FunctionUse",
            exclude: ["Resources"], // CCoveragePage has them
            swiftSettings: coldSwift),
        .executableTarget(
            name: "tracer",
            dependencies: [
                "FunctionUse", "Presentation", "LaunchPage", "TracePage", "TraceAnalysis", "TraceFormat", "CTraceLayout", "EntryPlan",
                "ELF", "LaunchLab", "Recorder", "Unwinding",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: coldSwift,
            linkerSettings: staticSwift,
            plugins: ["SourceCommit"]),
        // For tracer --version.
        .plugin(name: "SourceCommit", capability: .buildTool(), path: "Plugins/SourceCommit"),
        .target(name: "TraceTesting", dependencies: ["TraceFormat", "CTraceLayout"], path: "Tests/TraceTesting"),
        .executableTarget(
            name: "generate-trace", dependencies: ["TraceTesting", "TraceFormat", "CTraceLayout"],
            path: "Tests/generate-trace"),
        .executableTarget(name: "cut-trace", dependencies: ["TraceAnalysis", "CTraceLayout"], path: "Tests/cut-trace"),
        .testTarget(name: "PresentationTests", dependencies: ["Presentation"]),
        .target(
            name: "EveryReading", dependencies: ["Presentation", "Symbols", "TraceAnalysis", "TraceFormat", "TracePage"],
            path: "Fuzz/reading"),
        .testTarget(name: "MutatedTraceTests", dependencies: ["EveryReading", "Statistics"]),
        .testTarget(name: "TraceFormatTests", dependencies: ["TraceFormat"]),
        .testTarget(
            name: "TraceAnalysisTests",
            dependencies: ["Presentation", "TraceAnalysis", "TraceFormat", "CTraceLayout", "TraceTesting"]),
        .testTarget(
            name: "TracePageTests",
            dependencies: [
                "CPageFiles", "Presentation", "Symbols", "TracePage", "TraceAnalysis", "TraceFormat", "CTraceLayout", "TraceTesting",
            ]),
        .testTarget(name: "FunctionUseTests", dependencies: ["FunctionUse"]),
        .testTarget(name: "SymbolsTests", dependencies: ["ELF", "Statistics", "Symbols"]),
        .testTarget(
            name: "LaunchLabTests",
            dependencies: ["LaunchLab", "CLaunch", "Presentation", "Recorder", "Statistics"]),
        .testTarget(name: "UnwindingTests", dependencies: ["ELF", "Statistics", "Unwinding", "UnwindingTesting"]),
        .target(name: "UnwindingTesting", dependencies: ["CUnwindingTests", "Unwinding"], path: "Tests/UnwindingTesting"),
        .target(name: "CUnwindingTests", path: "Tests/CUnwindingTests", linkerSettings: [.linkedLibrary("dw")]),
        .executableTarget(
            name: "unwind-program", dependencies: ["CTraceLayout", "Unwinding", "UnwindingTesting"], path: "Tests/unwind-program"),
        .testTarget(
            name: "RecorderTests", dependencies: ["CRecorder", "CTraceLayout", "CUnwindingTests", "Recorder", "TraceFormat", "Unwinding"]),
    ]
)

// Tests run once: optimizing them takes longer than it saves. What they test is optimized. Without optimization the driver would
// check the types of a module twice, in two jobs, and types are most of the work: macros of Testing.
for target in package.targets where target.type == .test {
    target.swiftSettings = [.unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"], .when(configuration: .release))]
}

// scripts/documentation.
if Context.environment["TRACER_DOCUMENTATION"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0"))
}

// scripts/fuzz: everything is then compiled with -sanitize=fuzzer, whose runtime brings main.
if Context.environment["TRACER_FUZZ"] != nil {
    package.targets.append(.target(name: "FuzzDriver", path: "Fuzz/driver"))
    package.targets.append(
        .executableTarget(
            name: "fuzz-trace", dependencies: ["EveryReading", "FuzzDriver"], path: "Fuzz/reader",
            swiftSettings: [.unsafeFlags(["-parse-as-library"])]))
    package.targets.append(
        .executableTarget(
            name: "fuzz-plan", dependencies: ["FuzzDriver", "EntryPlan", "CTraceLayout", "TraceFormat"], path: "Fuzz/plan",
            swiftSettings: [.unsafeFlags(["-parse-as-library"])]))
    // The agent's parsers of untrusted input, built for the build machine with checked arithmetic. A source file belongs to one target.
    package.products.removeAll { $0.name == "libtracer.so" }
    package.targets.removeAll { $0.name == "TracerAgent" || $0.name == "AgentEntry" }
    package.targets.append(
        .target(
            name: "AgentReading", dependencies: ["CSupport", "CTraceLayout"], path: "Sources/Agent/TracerAgent",
            sources: [
                "ELF", "Processor", "Syscalls", "TraceFormat", "Settings.swift", "Functions/NameFilter.swift",
                "Functions/CallObjects.swift", "Functions/Executions.swift", "Functions/FunctionHome.swift", "Functions/HookPolicy.swift",
                "Functions/SpecialFunction.swift", "Functions/TriggerList.swift", "Functions/UnwinderQuestions.swift",
                "Guests/SanitizerRuntime.swift",
            ],
            swiftSettings: [.unsafeFlags(["-enable-testing"]), .enableExperimentalFeature("Extern")]))
    package.targets.append(
        .executableTarget(
            name: "fuzz-elf", dependencies: ["FuzzDriver", "AgentReading", "CSupport", "CTraceLayout"], path: "Fuzz/elf",
            swiftSettings: [.unsafeFlags(["-parse-as-library"])],
            // The agent brings its own memcmp and its like, libFuzzer's runtime does too.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--allow-multiple-definition"])]))
}
