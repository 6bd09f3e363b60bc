// Functions whose arguments are to be recorded: chosen among those whose prototypes are known, by their names, or with prototypes of the
// user's own.
import CPrototypes
import Glibc

package struct ArgumentChoice: Sendable {
    package struct Chosen: Sendable {
        package var name: String
        package var prototype: Prototype
        /// What calls must be, and as they were written.
        var tests: [PlannedTest] = []
        var conditions: [String] = []
    }
    /// What the functions' conditions decide.
    package enum Purpose: UInt32, Sendable { case keep = 0, trigger = 1 } // ARGUMENTS_TESTS_
    private(set) var purpose = Purpose.keep
    /// The chosen functions by their names, each once.
    package private(set) var functions: [Chosen] = []
    package private(set) var enumerations: [Enumeration] = []

    package enum Problem: Error {
        case prototype(String)
        case unknown(String)
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

    /// Name of what the tool itself brings along: another tool may have other prototypes.
    package static let version: String = {
        let text = UnsafeBufferPointer(start: prototypes_address(), count: Int(prototypes_text_bytes))
        return hash(of: Array(text) + Array((files + lookUps).utf8))
    }()
    package static func hash(of content: [UInt8]) -> String {
        String(content.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16) // FNV-1a
    }

    /// Names of parameters whose values are not recorded unless their prototype is in a file and says another type on purpose.
    static let secretNames: Set<String> = [
        "password", "passwd", "passphrase", "pass_phrase", "secret", "token", "api_key", "apikey", "private_key", "credential",
        "credentials",
    ]

    /// - Parameters:
    ///   - lists: values of `--arguments`: globs of names, and prototypes, separated by commas
    ///   - files: content of files of prototypes, by their paths; later ones go before earlier ones
    ///   - hidden: globs of parameters whose values are not to be recorded
    package init(lists: [String], files: [(path: String, text: String)], hidden: [String]) throws(Problem) {
        enumerations = Self.builtIn.enumerations
        var known: [String: Prototype] = [:]
        for prototype in Self.builtIn.prototypes { for name in prototype.names { known[name] = prototype } }
        for (path, text) in files {
            let more: Prototypes
            do throws(PrototypeError) { more = try Prototypes(file: text, known: enumerations) } catch {
                throw .malformed("\(path):\(error.line): \(error.reason)")
            }
            enumerations = enumerations.filter { old in !more.enumerations.contains { $0.name == old.name } } + more.enumerations
            for prototype in more.prototypes { for name in prototype.names { known[name] = prototype } }
        }
        var chosen: [String: Prototype] = [:]
        for item in lists.flatMap(Self.items) {
            if item.contains("(") {
                let own: Prototypes
                do throws(PrototypeError) { own = try Prototypes(file: item, known: enumerations) } catch {
                    throw .prototype("\(item): \(error.reason)")
                }
                for prototype in own.prototypes { for name in prototype.names { chosen[name] = prototype } }
            } else if item.contains(where: { "*?[".contains($0) }) {
                let names = known.keys.filter { fnmatch(item, $0, 0) == 0 }
                if names.isEmpty, !chosen.keys.contains(where: { fnmatch(item, $0, 0) == 0 }) { throw .unknown(item) }
                for name in names where chosen[name] == nil { chosen[name] = known[name] }
            } else {
                if chosen[item] != nil { continue }
                guard let prototype = known[item] else { throw .unknown(item) }
                chosen[item] = prototype
            }
        }
        for (name, prototype) in chosen.sorted(by: { $0.key < $1.key }) {
            var prototype = prototype
            prototype.names = [name]
            prototype.hide { parameter in hidden.contains { fnmatch($0, parameter, 0) == 0 } }
            for n in prototype.parameters.indices
            where prototype.parameters[n].type == .string && Self.secretNames.contains(prototype.parameters[n].name) {
                let own = prototype.parameters[n].name
                prototype.hide { $0 == own }
            }
            functions.append(Chosen(name: name, prototype: prototype))
        }
    }

    /// Calls of a chosen function are to fulfil all conditions that name it, if it has what they are about.
    /// - Parameters:
    ///   - conditions: with a function each
    ///   - machine: ELF e_machine of what is recorded
    package mutating func set(_ conditions: [CallCondition], for purpose: Purpose, machine: UInt32) throws(Problem) {
        self.purpose = purpose
        for condition in conditions {
            guard let function = condition.function else { continue }
            var isUsed = false, problem: String?
            for n in functions.indices where fnmatch(function, functions[n].name, 0) == 0 {
                guard let recorded = RecordedPrototype(text: text(functions[n]), machine: machine) else { continue }
                guard recorded.has(condition.subject) else {
                    problem = problem ?? "\(functions[n].name) has no \(condition.subject.name)"
                    continue
                }
                do throws(PlannedTest.Problem) {
                    functions[n].tests += try recorded.tests(condition)
                } catch {
                    throw .condition("'\(condition.text)': \(error.reason)")
                }
                functions[n].conditions.append(condition.textOfValue)
                isUsed = true
            }
            if !isUsed { throw .condition("'\(condition.text)': \(problem ?? "no function is called \(function)")") }
        }
    }
    /// Functions with conditions that are not the C library's alone.
    package var namesWithConditions: [String] { functions.filter { !$0.conditions.isEmpty && !$0.prototype.isLibc }.map(\.name) }

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
        let names = chosen.prototype.enumerations
        let conditions = purpose == .keep ? chosen.conditions.map { RecordedPrototype.conditionMark + $0 } : []
        return ([chosen.prototype.text] + enumerations.filter { names.contains($0.name) }.map(\.text) + conditions).joined(separator: "\n")
    }
}
