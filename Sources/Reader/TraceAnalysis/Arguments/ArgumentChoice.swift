// Functions whose arguments are to be recorded: chosen among those whose prototypes are known, by their names, or with prototypes of the
// user's own. Prototypes are those of the tool's own file, of the user's files, and of the debug information of modules
// (ModuleFunctions.swift).
import CPrototypes
import CTraceLayout
import ELF
import Glibc

package struct ArgumentChoice: Sendable {
    package struct Chosen: Sendable {
        package var name: String
        package var prototype: Prototype
        /// nil: whichever function has the name.
        package var place: Place?
        /// What it names; those of the choice where it has no place.
        var enumerations: [Enumeration] = []
        /// What calls must be, and as they were written.
        var tests: [PlannedTest] = []
        var conditions: [String] = []
    }
    /// What the functions' conditions decide.
    package enum Purpose: UInt32, Sendable { case keep = 0, trigger = 1 } // ARGUMENTS_TESTS_
    private(set) var purpose = Purpose.keep
    /// A function of one module.
    package struct Place: Hashable, Sendable {
        /// Identity of the module (arguments_module_id).
        package var module: UInt64
        /// As linked.
        package var address: UInt64
    }
    /// The chosen functions; one name may stand for several, in different places.
    package internal(set) var functions: [Chosen] = []
    package private(set) var enumerations: [Enumeration] = []
    /// What there is to say of it, a line each.
    package internal(set) var notes: [String] = []
    /// ELF's e_machine of the program.
    let machine: UInt16

    package enum Problem: Error {
        case prototype(String)
        /// - Parameters:
        ///   - reason: why debug information has none; nil: it does not have the name, either
        ///   - nearest: a function whose name is much alike
        case unknown(String, reason: String?, nearest: String?)
        case malformed(String)
        case condition(String)
    }

    /// Prototypes that the tool brings along.
    package static let builtIn: Prototypes = {
        let text = String(decoding: UnsafeBufferPointer(start: prototypes_address(), count: Int(prototypes_text_bytes)), as: UTF8.self)
        do throws(PrototypeError) { return try Prototypes(file: text) } catch {
            preconditionFailure("prototypes.txt:\(error.line): \(error.reason)")
        }
    }()

    /// Functions that `tracer files` needs, for `init`. The streams' own reads and writes are not among them: they are too many.
    package static let files = """
        open,open64,__open,__open64,__open_2,__open64_2,openat,openat64,__openat_2,__openat64_2,creat,creat64,fopen,fopen64,freopen,freopen64,\
        fdopen,fclose,opendir,fdopendir,closedir,close,__close,dup,dup2,__dup2,dup3,fcntl,fcntl64,__fcntl,chdir,fchdir,\
        read,__read,__read_chk,pread,pread64,__pread64,__pread_chk,__pread64_chk,readv,preadv,preadv64,\
        write,__write,pwrite,pwrite64,__pwrite64,writev,pwritev,pwritev64,sendfile,sendfile64,copy_file_range,mmap,mmap64,\
        fsync,fdatasync,syncfs,fstat,fstat64,__fxstat,__fxstat64,unlink,remove,unlinkat,rename,renameat,renameat2,link,symlink,symlinkat,linkat,mkdir,mkdirat,rmdir,\
        truncate,truncate64,ftruncate,ftruncate64,fallocate,fallocate64,chmod,fchmod,fchmodat
        """

    /// More of them, which many programs call by the thousands: their paths are copied by the kernel.
    package static let lookUps = """
        stat,stat64,lstat,lstat64,fstatat,fstatat64,__xstat,__xstat64,__lxstat,__lxstat64,__fxstatat,__fxstatat64,statx,statfs,statfs64,\
        access,euidaccess,eaccess,faccessat,readlink,__readlink_chk,readlinkat,realpath,__realpath_chk
        """

    /// Name of what the tool itself brings along: another tool may have other prototypes, or write another kind of plan.
    package static let version: String = {
        let text = UnsafeBufferPointer(start: prototypes_address(), count: Int(prototypes_text_bytes))
        return hash(of: Array(text) + Array((files + lookUps).utf8) + [UInt8(ARGUMENTS_VERSION)])
    }()
    package static func hash(of content: [UInt8]) -> String {
        String(content.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16) // FNV-1a
    }

    /// Names of parameters whose values are not recorded unless their prototype is in a file and says another type on purpose.
    static let secretNames: Set<String> = [
        "password", "passwd", "passphrase", "pass_phrase", "secret", "token", "api_key", "apikey", "private_key", "credential",
        "credentials",
    ]

    /// Processor of this machine, as the tool's own file says.
    private static let nativeMachine = SharedLibrary(path: "/proc/self/exe")?.elfMachine ?? 0

    /// Names and globs that may mean functions of modules, too, and prototypes: these may name members, or a function of C++ as people do.
    package static func soughtInModules(_ lists: [String]) -> [String] {
        let known = Set(builtIn.prototypes.flatMap(\.names))
        return lists.flatMap(items).filter { !known.contains($0) }
    }

    /// - Parameters:
    ///   - lists: values of `--arguments`: globs of names, and prototypes, separated by commas
    ///   - files: content of files of prototypes, by their paths; later ones go before earlier ones
    ///   - hidden: globs of parameters whose values are not to be recorded
    ///   - modules: where functions are looked for that are not known otherwise; the first is the program
    package init(
        lists: [String], files: [(path: String, text: String)], hidden: [String], modules: [ModuleFunctions] = []
    ) throws(Problem) {
        machine = modules.first?.machine ?? Self.nativeMachine
        enumerations = Self.builtIn.enumerations
        var known: [String: Prototype] = [:]
        for prototype in Self.builtIn.prototypes { for name in prototype.names { known[name] = prototype } }
        for (path, text) in files {
            let more: Prototypes
            do throws(PrototypeError) { more = try Prototypes(file: text, known: enumerations) } catch {
                throw .malformed("\(path):\(error.line): \(error.reason)")
            }
            enumerations = enumerations.filter { old in !more.enumerations.contains { $0.name == old.name } } + more.enumerations
            for prototype in more.prototypes {
                if prototype.isSelection { throw .malformed("\(path): \(prototype.names[0]): members can be chosen by --arguments alone") }
                for name in prototype.names { known[name] = prototype }
            }
        }
        var selections: [String: Prototype] = [:]
        var chosen: [String: Prototype] = [:], unknown: [String] = []
        for item in lists.flatMap(Self.items) {
            if item.contains("(") {
                let own: Prototypes
                do throws(PrototypeError) { own = try Prototypes(file: item, known: enumerations) } catch {
                    throw .prototype("\(item): \(error.reason)")
                }
                for prototype in own.prototypes {
                    for name in prototype.names {
                        if prototype.isSelection { selections[name] = prototype } else { chosen[name] = prototype }
                    }
                }
            } else if item.contains(where: { "*?[".contains($0) }) {
                let names = known.keys.filter { fnmatch(item, $0, 0) == 0 }
                if names.isEmpty, !chosen.keys.contains(where: { fnmatch(item, $0, 0) == 0 }) { unknown.append(item) }
                for name in names where chosen[name] == nil { chosen[name] = known[name] }
            } else {
                if chosen[item] != nil { continue }
                if let prototype = known[item] { chosen[item] = prototype } else { unknown.append(item) }
            }
        }
        for (name, prototype) in chosen.sorted(by: { $0.key < $1.key }) {
            var prototype = prototype
            prototype.names = [name]
            prototype.hideSecrets(hidden)
            functions.append(Chosen(name: name, prototype: prototype))
        }
        // What somebody has written of a function holds for all of the name.
        var own = Set(known.filter { $0.value.library == .any }.keys).union(chosen.filter { $0.value.library == .any }.keys)
        own.formUnion(try nameAsInModules(modules))
        try add(
            modules, Self.soughtInModules(lists).filter { !$0.contains("(") }, selections, unknown: unknown, besides: own, hidden)
    }

    /// Calls of a chosen function are to fulfil all conditions that name it, if it has what they are about.
    /// - Parameter conditions: with a function each
    package mutating func set(_ conditions: [CallCondition], for purpose: Purpose) throws(Problem) {
        self.purpose = purpose
        for condition in conditions {
            guard let function = condition.function else { continue }
            var isUsed = false, problem: String?
            let pattern = FunctionPattern(function)
            for n in functions.indices where pattern.matches(symbol: functions[n].name) {
                guard let recorded = RecordedPrototype(text: text(functions[n]), machine: UInt32(machine)) else { continue }
                guard recorded.has(condition.subject) else {
                    problem = problem ?? "\(demangled(functions[n].name)) has no \(condition.subject.name)"
                    continue
                }
                do throws(PlannedTest.Problem) {
                    functions[n].tests += try recorded.tests(
                        condition, of: functions[n].prototype.operation(of: condition.subject, on: machine))
                } catch {
                    throw .condition("'\(condition.text)': \(error.reason)")
                }
                functions[n].conditions.append(condition.textOfValue)
                isUsed = true
            }
            if !isUsed { throw .condition("'\(condition.text)': \(problem ?? "no function is called \(function)")") }
        }
    }
    /// Functions with conditions that are not one library's alone.
    package var namesWithConditions: [String] { functions.filter { !$0.conditions.isEmpty && $0.prototype.library == .any }.map(\.name) }
    /// Symbols of the functions that conditions of this function speak of.
    package func names(of function: String) -> [String] {
        let pattern = FunctionPattern(function)
        return functions.filter { !$0.conditions.isEmpty && pattern.matches(symbol: $0.name) }.map(\.name)
    }

    /// Splits at commas outside parentheses.
    package static func items(_ list: String) -> [String] {
        var items: [String] = [], item = "", depth = 0
        for character in list {
            if character == ",", depth == 0 {
                items.append(item)
                item = ""
                continue
            }
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            item.append(character)
        }
        items.append(item)
        return items.map { String($0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }.filter { !$0.isEmpty }
    }

    /// What a PROTOTYPE record of the function says.
    func text(_ chosen: Chosen) -> String {
        let names = chosen.prototype.enumerations, all = chosen.place == nil ? enumerations : chosen.enumerations
        let conditions = purpose == .keep ? chosen.conditions.map { RecordedPrototype.conditionMark + $0 } : []
        return ([chosen.prototype.text] + all.filter { names.contains($0.name) }.map(\.text) + conditions).joined(separator: "\n")
    }
}

extension Prototype {
    /// - Parameter globs: names of parameters that the user hides
    mutating func hideSecrets(_ globs: [String]) {
        func last(_ name: String) -> String { String(name.split { ".>".contains($0) }.last ?? "") } // the member of a path
        hide { parameter in globs.contains { fnmatch($0, parameter, 0) == 0 || fnmatch($0, last(parameter), 0) == 0 } }
        let secret = Set(
            parameters.filter { parameter in
                if case .structure(let form) = parameter.type {
                    return form.contains { if case .characters = $0.type { ArgumentChoice.secretNames.contains($0.name) } else { false } }
                }
                return parameter.type.isText && ArgumentChoice.secretNames.contains(last(parameter.name))
            }.map(\.name))
        hide { secret.contains($0) }
        if let type = result?.type, type.isText,
            globs.contains(where: { fnmatch($0, "result", 0) == 0 }) || names.contains(where: Self.isSecret)
        {
            result = Result(typeName: "pointer", type: .pointer, failure: result?.failure ?? .never)
        }
    }
    /// A function of this name may return a secret. What has to do with tokens is more often a parser.
    private static func isSecret(_ function: String) -> Bool {
        let name = function.lowercased()
        return ArgumentChoice.secretNames.contains { $0 != "token" && name.contains($0) }
    }
}
