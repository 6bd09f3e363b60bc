// The functions of one module whose prototypes its debug information has.
import CTraceLayout
import ELF
import Glibc
import Presentation

package final class ModuleFunctions {
    private let file: CodeFile
    package var path: String { file.path }
    package var machine: UInt16 { file.elfMachine }
    private lazy var debugInformation = file.debugInformation

    /// nil: there is no such file, or it is no ELF file.
    package init?(path: String) {
        guard let file = try? CodeFile(path: path) else { return nil }
        self.file = file
    }

    /// What the choice of its functions depends on: the file's identity, and that of its separate debug file.
    package var stamp: String {
        let debug = file.debugStatus.map { "\($0.st_dev) \($0.st_ino) \($0.st_size) \($0.st_mtim.tv_sec) \($0.st_mtim.tv_nsec)" } ?? ""
        return "\(path)\n\(identity)\n\(file.status.st_size) \(file.status.st_mtim.tv_sec) \(file.status.st_mtim.tv_nsec)\n\(debug)"
    }

    /// Identity as the agent computes it (ModuleTable.add).
    fileprivate var identity: UInt64 {
        let id = file.buildID
        if !id.isEmpty, id.count <= 20 {
            var words: (UInt64, UInt64, UInt32) = (0, 0, 0)
            withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: id) }
            let hash = arguments_module_id(words.0, words.1, words.2)
            if hash != 0 { return hash }
        }
        let status = file.status
        let written = plan_mix(UInt64(bitPattern: Int64(status.st_mtim.tv_sec)), UInt64(status.st_mtim.tv_nsec))
        return plan_mix(plan_mix(UInt64(status.st_dev), UInt64(status.st_ino)), plan_mix(UInt64(status.st_size), written)) | 1
    }

    /// The C library's own functions are those of the tool's own file.
    package var isLibc: Bool {
        guard let library = SharedLibrary(path: path), let name = library.soname else { return false }
        return ["libc.", "ld-", "libpthread.", "libdl."].contains { name.hasPrefix($0) }
    }

    /// Code of a function that the compiler has put elsewhere, since it rarely runs: nobody calls it.
    private static func isPart(_ name: String) -> Bool { name.hasSuffix(".cold") || name.contains(".cold.") }

    fileprivate struct Found {
        var prototypes: [(name: String, address: UInt64, prototype: DebugPrototype)] = []
        /// Functions of these names that have none, by the reason; and one of each as an example.
        var refused: [PrototypeRefusal: (count: Int, example: String)] = [:]
        /// Each is the name of a function.
        var names: Set<String> = []
        /// Paths of .dwo files that are not here.
        var missing: [String] = []
        var hasDebugInformation = true
        /// Why prototypes that choose members are wrong, by the functions' names.
        var problems: [(name: String, reason: String)] = []
    }

    /// - Parameters:
    ///   - selection: a prototype that chooses members of a function's parameters, by its name in the symbol table
    ///   - isWanted: of such names
    fileprivate func functions(_ selection: (String) -> Prototype?, where isWanted: (String) -> Bool) -> Found {
        var found = Found(), wanted: [UInt64: [FunctionName]] = [:], others: [String] = []
        file.forEachCodeSymbol { symbol in
            if symbol.isResolver || symbol.isNoType && symbol.isLocal { return }
            let text = String(decoding: symbol.name, as: UTF8.self)
            guard isWanted(text), !Self.isPart(text) else { return }
            found.names.insert(text)
            let name = FunctionName(text, isLocal: symbol.isLocal)
            guard Prototype.isName(text), wanted[symbol.address]?.contains(where: { $0.text == text }) != true else {
                // .dynsym and .symtab have it.
                if !symbol.isLocal, let n = wanted[symbol.address]?.firstIndex(where: { $0.text == text }) {
                    wanted[symbol.address]![n].isLocal = false
                }
                return
            }
            wanted[symbol.address, default: []].append(name)
        }
        found.hasDebugInformation = file.hasDebugInformation
        if wanted.isEmpty { return found }
        guard let debugInformation else {
            found.hasDebugInformation = false
            return found
        }
        // C++ and Rust have no such names, but for those that compilers make of theirs.
        for (address, names) in wanted {
            let clones = names.filter { $0.text.contains(".") && !$0.text.hasPrefix("_R") && !$0.text.contains("17h") }
            others += clones.map(\.text)
            if clones.count == names.count { wanted[address] = nil }
        }
        var described: Set<UInt64> = []
        let machine = file.elfMachine
        var selections: [String: Prototype] = [:]
        for name in wanted.values.joined() { selections[name.text] = selection(name.text) }
        let paths = selections.mapValues(\.paths)
        let swift = wanted.values.joined().contains { $0.text.hasPrefix("$s") } ? SwiftDescriptions(file) : nil
        let swiftNames = SwiftTypeNames(cases: { swift?.cases(of: $0) }, fields: { swift?.fields(of: $0) })
        debugInformation.forEachSourceFunction(
            at: wanted, paths: paths, swiftNames: swiftNames, isMissing: { found.missing.append($0) }
        ) { function in
            described.insert(function.address)
            let code = file.content.bytes(at: function.address)
            if let selection = selections[function.name] {
                do throws(PrototypeProblem) {
                    let prototype = try DebugPrototype(function, machine: machine, code: code, selecting: selection)
                    found.prototypes.append((function.name, function.address, prototype))
                } catch {
                    found.problems.append((function.name, error.reason))
                }
                return
            }
            do throws(PrototypeRefusal) {
                let prototype = try DebugPrototype(function, machine: machine, code: code)
                found.prototypes.append((function.name, function.address, prototype))
            } catch {
                found.add(error, function.name)
            }
        }
        for name in others { found.add(.clone, name) }
        if found.missing.isEmpty {
            for (address, names) in wanted where !described.contains(address) { found.add(.noEntry, names[0].text) }
        }
        return found
    }
}

extension ModuleFunctions {
    /// Names in the symbol table that each of the patterns means.
    fileprivate func symbols(meantBy patterns: [String: FunctionPattern]) -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        file.forEachCodeSymbol { symbol in
            let name = String(decoding: symbol.name, as: UTF8.self)
            if symbol.isResolver || symbol.isNoType && symbol.isLocal || Self.isPart(name) { return }
            for (written, pattern) in patterns where pattern.matches(symbol: name) { found[written, default: []].insert(name) }
        }
        return found
    }

    /// Names of all functions, as people read them.
    fileprivate var readableNames: [String] {
        var names: Set<String> = []
        file.forEachCodeSymbol { if !$0.isNoType { names.insert(String(decoding: $0.name, as: UTF8.self)) } }
        return names.map { demangled($0) }
    }
}

extension ModuleFunctions.Found {
    fileprivate mutating func add(_ refusal: PrototypeRefusal, _ name: String) {
        let known = refused[refusal]
        refused[refusal] = ((known?.count ?? 0) + 1, min(known?.example ?? name, name))
    }

    /// Why some of its functions have no prototype; nil: all have one.
    /// - Parameter isTold: of reasons
    fileprivate func reasons(where isTold: (PrototypeRefusal) -> Bool = { _ in true }) -> String? {
        let refused = refused.filter { isTold($0.key) }
        if refused.isEmpty { return nil }
        return refused.sorted { ($0.value.count, $0.value.example) > ($1.value.count, $1.value.example) }.map { refusal, functions in
            functions.count == 1
                ? "\(functions.example): \(refusal.reason)"
                : "\(functions.example) and \(grouped(functions.count - 1)) more: \(refusal.reason)"
        }.joined(separator: "; ")
    }
}

extension ArgumentChoice {
    /// Gives prototypes of functions that were named as people read them, such as net::Server::handle, the names of these in the symbol
    /// table. One that no module has may be of a library that is opened later.
    /// - Returns: names in the symbol table that have been given
    mutating func nameAsInModules(_ modules: [ModuleFunctions]) throws(Problem) -> Set<String> {
        var written: [String: FunctionPattern] = [:], given: Set<String> = []
        for chosen in functions where chosen.place == nil && chosen.prototype.library == .any {
            written[chosen.name] = FunctionPattern(chosen.name)
        }
        if written.isEmpty || modules.isEmpty { return given }
        var symbols: [String: Set<String>] = [:]
        for module in modules { symbols.merge(module.symbols(meantBy: written)) { $0.union($1) } }
        for (name, found) in symbols.sorted(by: { $0.key < $1.key }) where !found.contains(name) {
            // Constructors have several symbols.
            let readable = Set(found.map { demangled($0) })
            if readable.count > 1 {
                throw .prototype(
                    "\(name): several functions are called so: \(listed(readable.sorted(), most: 4)): write one's name in the symbol table, such as \(found.min()!)"
                )
            }
            let chosen = functions.remove(at: functions.firstIndex { $0.name == name && $0.place == nil }!)
            given.formUnion(found)
            for symbol in found.sorted() {
                var own = chosen
                own.name = symbol
                own.prototype.names = [symbol]
                functions.append(own)
            }
        }
        if let name = written.keys.sorted().first(where: { $0.contains("::") && symbols[$0] == nil }) {
            throw .unknown(name, reason: nil, nearest: Self.nearest(to: name, modules))
        }
        return given
    }

    private static func nearest(to item: String, _ modules: [ModuleFunctions]) -> String? {
        let pattern = FunctionPattern(item)
        return modules.lazy.compactMap { pattern.nearest($0.readableNames) }.first
    }

    /// Adds the functions of modules that `items` name.
    /// - Parameters:
    ///   - selections: prototypes that choose members, by the names of functions
    ///   - unknown: items that name nothing else
    ///   - own: names of functions that a prototype was given for
    mutating func add(
        _ modules: [ModuleFunctions], _ items: [String], _ selections: [String: Prototype], unknown: [String], besides own: Set<String>,
        _ hidden: [String]
    ) throws(Problem) {
        var names: Set<String> = [], program: ModuleFunctions.Found?, missing: [String: String] = [:]
        let patterns = items.map { FunctionPattern($0) }, ofSelections = selections.map { (FunctionPattern($0.key), $0.value) }
        func isMeant(_ name: String) -> Bool { FunctionPattern.any(patterns, match: name) }
        func selection(_ name: String) -> Prototype? {
            selections[name] ?? ofSelections.first { $0.0.matches(symbol: name) }?.1
        }
        var problems: [(name: String, reason: String)] = []
        for (n, module) in (items.isEmpty && selections.isEmpty ? [] : modules).enumerated() {
            let found = module.functions(selection) { selection($0) != nil || !own.contains($0) && isMeant($0) }
            problems += found.problems
            if n == 0 { program = found }
            let file = String(module.path.split(separator: "/").last ?? "")
            for (name, address, debug) in found.prototypes {
                var prototype = debug.prototype
                prototype.hideSecrets(hidden)
                names.insert(name)
                functions.append(
                    Chosen(
                        name: name, prototype: prototype, place: Place(module: module.identity, address: address),
                        enumerations: debug.enumerations
                            + enumerations.filter { own in !debug.enumerations.contains { $0.name == own.name } }))
            }
            if !found.missing.isEmpty {
                notes.append(
                    "\(file): \(counted(UInt64(found.missing.count), "unit")) of its debug information \(found.missing.count == 1 ? "is" : "are") in split files that are not here (\(found.missing[0])): arguments of their functions are not recorded"
                )
            }
            for name in found.names where missing[name] == nil {
                missing[name] = found.hasDebugInformation ? found.reasons() ?? "" : "\(file) has no debug information: compile it with -g"
            }
            if n == 0, !found.hasDebugInformation, !found.names.isEmpty {
                notes.append(
                    "\(file) has no debug information (-g), so arguments of its own functions are recorded only by prototypes that you give"
                )
            } else if n == 0, let reasons = found.reasons(where: { $0 != .noEntry && $0 != .unshown }) { // every program has some of these
                notes.append("\(file): arguments of some functions are not recorded: \(reasons)")
            }
        }
        for name in selections.keys.sorted() {
            // Overloads without the members are not meant.
            let pattern = FunctionPattern(name)
            if names.contains(where: { pattern.matches(symbol: $0) }) { continue }
            if let problem = problems.first(where: { pattern.matches(symbol: $0.name) }) {
                throw .prototype("\(demangled(problem.name)): \(problem.reason)")
            }
            let reason = missing.filter { pattern.matches(symbol: $0.key) }.min { $0.key < $1.key }?.value
            throw .unknown(name, reason: reason ?? "no debug information has it", nearest: Self.nearest(to: name, modules))
        }
        names.formUnion(own)
        for item in unknown {
            let pattern = FunctionPattern(item)
            if names.contains(where: { pattern.matches(symbol: $0) }) { continue }
            let found = missing.filter { pattern.matches(symbol: $0.key) }.min { $0.key < $1.key }?.value
            let reason = found ?? (program?.hasDebugInformation == false ? "the program has no debug information: compile it with -g" : nil)
            throw .unknown(
                item, reason: reason?.isEmpty == true ? nil : reason, nearest: found == nil ? Self.nearest(to: item, modules) : nil)
        }
    }
}

extension Prototype {
    /// Members that it names.
    fileprivate var paths: [MemberPath] {
        parameters.flatMap { parameter in
            var all = [parameter.path]
            if case .text(.bytes(let count)) = parameter.type { all.append(MemberPath(count)) }
            return all.compactMap { $0 }
        }
    }
}
