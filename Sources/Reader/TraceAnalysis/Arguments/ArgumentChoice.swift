// Functions whose arguments are to be recorded: chosen among those whose prototypes are known, by their names, or with prototypes of the
// user's own.
import CPrototypes
import Glibc

package struct ArgumentChoice: Sendable {
    package struct Chosen: Sendable {
        package var name: String
        package var prototype: Prototype
    }
    /// The chosen functions by their names, each once.
    package private(set) var functions: [Chosen] = []
    package private(set) var enumerations: [Enumeration] = []

    package enum Problem: Error {
        case prototype(String)
        case unknown(String)
        case malformed(String)
    }

    /// Prototypes that the tool brings along.
    package static let builtIn: Prototypes = {
        let text = String(decoding: UnsafeBufferPointer(start: prototypes_address(), count: Int(prototypes_text_bytes)), as: UTF8.self)
        do throws(PrototypeError) { return try Prototypes(file: text) } catch {
            preconditionFailure("prototypes.txt:\(error.line): \(error.reason)")
        }
    }()

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
                if names.isEmpty { throw .unknown(item) }
                for name in names where chosen[name] == nil { chosen[name] = known[name] }
            } else {
                guard let prototype = known[item] else { throw .unknown(item) }
                if chosen[item] == nil { chosen[item] = prototype }
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
        return ([chosen.prototype.text] + enumerations.filter { names.contains($0.name) }.map(\.text)).joined(separator: "\n")
    }
}
