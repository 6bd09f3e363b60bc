// Names of code in the files of a trace. Every answer comes from a file whose build-id is the one in the trace, or, without one, whose
// size and time are; without such a file there is none. Files are opened when they are first asked for and stay open.
import ELF
import Synchronization

/// Modules that were asked about in vain, because another file lies at their path than the one that was loaded.
package final class ChangedFiles: Sendable {
    package static let shared = ChangedFiles()
    private let state = Mutex(Set<ModuleIdentity>())

    package var modules: Set<ModuleIdentity> { state.withLock { $0 } }
    fileprivate func add(_ module: ModuleIdentity) { state.withLock { _ = $0.insert(module) } }
}

/// Not for use by two threads at once.
package final class Symbolizer {
    private final class Entry {
        let file: ObjectFile
        let debugFile: ObjectFile?
        lazy var table = symbols(.functions)
        lazy var variables = symbols(.variables)
        lazy var debugInformation: DebugInformation? = DebugInformation(file) ?? debugFile.flatMap { DebugInformation($0) }
        lazy var frameIndex = FrameIndex(file)

        init(_ file: ObjectFile, _ debugFile: ObjectFile?) {
            self.file = file
            self.debugFile = debugFile
        }

        private func symbols(_ kind: SymbolTable.Kind) -> SymbolTable {
            debugFile.map { SymbolTable($0, kind) }.flatMap { $0.isEmpty ? nil : $0 } ?? SymbolTable(file, kind)
        }
    }

    private let debugFiles: DebugFiles
    private var entries: [ModuleIdentity: Entry?] = [:]

    /// - Parameter debugDirectories: where separate debug files are looked for
    package init(debugDirectories: [String] = ["/usr/lib/debug"]) {
        debugFiles = DebugFiles(directories: debugDirectories)
    }

    private func entry(_ module: ModuleIdentity) -> Entry? {
        if let known = entries[module] { return known }
        var entry: Entry?
        if module.path.hasPrefix("/"), let file = ObjectFile(path: module.path) {
            if module.isLoaded(from: file) {
                entry = Entry(file, debugFiles.debugFile(of: file))
            } else {
                ChangedFiles.shared.add(module)
            }
        }
        entries[module] = entry
        return entry
    }

    /// True if the module's file is here and is the one that was loaded.
    package func hasFile(of module: ModuleIdentity) -> Bool { entry(module) != nil }

    /// The function that holds `address` (as linked: less the load bias).
    package func function(at address: UInt64, in module: ModuleIdentity) -> FunctionSymbol? {
        entry(module)?.table.symbol(at: address)
    }

    /// All names, mangled, of the function that begins at `address` (as linked): the linker may have folded several into one.
    package func names(at address: UInt64, in module: ModuleIdentity) -> [String] { entry(module)?.table.names(at: address) ?? [] }
    /// Returns the start of the function that holds `address` (as linked) from the module's unwind table. For code without symbols.
    package func functionStart(at address: UInt64, in module: ModuleIdentity) -> UInt64? {
        entry(module)?.frameIndex?.start(at: address)
    }

    /// The variable, mangled, that holds `address` (as linked).
    package func variable(at address: UInt64, in module: ModuleIdentity) -> String? {
        entry(module)?.variables.symbol(at: address)?.name
    }

    /// The name of the section that `address` (as linked) lies in.
    package func section(at address: UInt64, in module: ModuleIdentity) -> String? { entry(module)?.file.sectionName(at: address) }

    /// Returns the contiguous range of its compilation unit's code that holds `address` (as linked): one section of the object file, as far
    /// as DWARF says.
    package func unitRange(at address: UInt64, in module: ModuleIdentity) -> Range<UInt64>? {
        entry(module)?.debugInformation?.unitRange(at: address)
    }

    /// nil when the module's file is not here.
    package func dynamicSymbols(of module: ModuleIdentity, isExecutable: Bool) -> DynamicSymbols? {
        entry(module).map { DynamicSymbols($0.file, isExecutable: isExecutable) }
    }

    package func hasDebugInformation(of module: ModuleIdentity) -> Bool { entry(module)?.debugInformation != nil }

    /// Functions, mangled where DWARF has that, which the compiler has put into the one that holds `address` (as linked), there: innermost
    /// first.
    package func inlined(at address: UInt64, in module: ModuleIdentity) -> [String] {
        entry(module)?.debugInformation?.inlined(at: address) ?? []
    }

    /// File and line of `address` (as linked), when there is DWARF. Of a return address ask for the byte before it.
    package func source(at address: UInt64, in module: ModuleIdentity) -> SourceLocation? {
        entry(module)?.debugInformation?.line(at: address)
    }
}

// Static initializers. gcc and clang gather them in one function for each source file, _GLOBAL__sub_I_ and the name of
// the file (clang) or of a global of it (gcc), which calls others that both compilers have names of their own for.
extension Symbolizer {
    package struct StaticInitializers: Sendable, Equatable {
        /// Without a directory; nil when neither symbol table nor DWARF says.
        package var fileName: String?
        /// Its globals, mangled, that are initialized by code; empty without DWARF.
        package var globals: [String]
        /// They are destroyed, not made.
        package var areDestructors: Bool

        package init(fileName: String? = nil, globals: [String], areDestructors: Bool) {
            self.fileName = fileName
            self.globals = globals
            self.areDestructors = areDestructors
        }
    }

    /// Returns the source file and the globals that `function` initializes or destroys; nil when it is not such a function.
    package func staticInitializers(_ function: FunctionSymbol, in module: ModuleIdentity) -> StaticInitializers? {
        guard
            let kind = ["_GLOBAL__sub_I_", "_GLOBAL__sub_I.", "_GLOBAL__I_", "_GLOBAL__sub_D_", "_GLOBAL__sub_D.", "_GLOBAL__D_"]
                .first(where: { function.name.hasPrefix($0) }), let entry = entry(module)
        else { return nil }
        var result = StaticInitializers(
            fileName: function.sourceFile.map { Self.lastComponent($0) }, globals: [],
            areDestructors: kind.contains("D"))
        if result.fileName == nil { result.fileName = Self.fileName(in: String(function.name.dropFirst(kind.count))) }
        guard let information = entry.debugInformation else { return result }
        if let name = information.unitName(at: function.address) { result.fileName = Self.lastComponent(name) }
        let parts = information.unitRanges(at: function.address).flatMap { range in
            entry.table.functions(in: range) {
                $0.hasPrefix("_Z41__static_initialization_and_destruction_0") || $0.hasPrefix("__cxx_global_var_init")
                    || $0.hasPrefix("__cxx_global_array_dtor")
            }
        }
        result.globals = information.variables(
            initializedIn: ([function] + parts).map {
                $0.address..<$0.address &+ max($0.byteCount, 1)
            })
        return result
    }

    /// Returns the part of the name after _GLOBAL__sub_I_ when it is a source file; nil when it is a global.
    private static func fileName(in suffix: String) -> String? {
        guard let dot = suffix.lastIndex(of: "."), dot != suffix.startIndex else { return nil }
        return ["cpp", "cc", "cxx", "c++", "C", "c", "mm", "m", "cu", "ixx", "cppm"].contains(String(suffix[suffix.index(after: dot)...]))
            ? suffix : nil
    }

    private static func lastComponent(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? path
    }
}
