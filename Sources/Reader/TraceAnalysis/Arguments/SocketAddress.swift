// Addresses of sockets, as a call was given them (ip(7), ipv6(7), unix(7)).
import Glibc

enum SocketAddress {
    /// nil: there are too few bytes.
    static func value(_ bytes: [UInt8]) -> ArgumentValue? {
        if bytes.isEmpty { return .structure([]) }
        guard bytes.count >= 2 else { return nil }
        let family = Int64(bytes[0]) | Int64(bytes[1]) << 8
        var fields = [ArgumentField(name: "sa_family", value: .name(domains.text(family)))]
        switch Int32(family) {
        case AF_INET:
            guard bytes.count >= 8, let address = text(AF_INET, bytes[4..<8]) else { return nil }
            fields += [ArgumentField(name: "sin_port", value: port(bytes)), ArgumentField(name: "sin_addr", value: .name(address))]
        case AF_INET6:
            guard bytes.count >= 24, let address = text(AF_INET6, bytes[8..<24]) else { return nil }
            fields += [ArgumentField(name: "sin6_port", value: port(bytes)), ArgumentField(name: "sin6_addr", value: .name(address))]
            let scope = bytes.dropFirst(24).prefix(4).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            if bytes.count >= 28, scope != 0 { fields.append(ArgumentField(name: "sin6_scope_id", value: .unsigned(scope))) }
        case AF_UNIX:
            // The name of one that is not in the file system begins with a zero byte and is as long as the address.
            let path = bytes.dropFirst(2), isAbstract = path.first == 0
            if !path.isEmpty {
                fields.append(
                    ArgumentField(name: "sun_path", value: .string(isAbstract ? Array(path) : Array(path.prefix { $0 != 0 }), .whole)))
            }
        default: if bytes.count > 2 { fields.append(ArgumentField(name: "sa_data", value: .opaque)) }
        }
        return .structure(fields)
    }

    private static let domains = ArgumentChoice.builtIn.enumerations.first { $0.name == "domain" }!

    /// In the order of the network.
    private static func port(_ bytes: [UInt8]) -> ArgumentValue { .unsigned(UInt64(bytes[2]) << 8 | UInt64(bytes[3])) }

    private static func text(_ family: Int32, _ bytes: ArraySlice<UInt8>) -> String? {
        var text = [CChar](repeating: 0, count: 64)
        let isWritten = Array(bytes).withUnsafeBytes { inet_ntop(family, $0.baseAddress, &text, socklen_t(text.count)) != nil }
        return isWritten ? String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }
}
