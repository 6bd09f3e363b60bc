// Values that are Encodable, as JSON: members in the order in which they are encoded, which is that of the CodingKeys where
// the compiler writes `encode(to:)`. Foundation's encoder sorts them or leaves their order to chance.

extension JSON {
    package init(_ value: some Encodable) throws {
        let place = JSONPlace()
        try place.encode(value)
        self = place.json
    }
}

/// Destination of one value, with what has been encoded there so far.
private final class JSONPlace {
    private enum Content {
        case nothing
        case value(JSON)
        case array([JSONPlace])
        case object([(String, JSONPlace)])
    }
    private var content = Content.nothing

    var json: JSON {
        switch content {
        case .nothing: .object([]) // a type without members
        case .value(let value): value
        case .array(let places): .array(places.map(\.json))
        case .object(let members): .object(members.map { ($0.0, $0.1.json) })
        }
    }

    func encode(_ value: some Encodable) throws {
        switch value {
        case let value as String: content = .value(.string(value))
        case let value as Bool: content = .value(.bool(value))
        case let value as Double: content = .value(.number(value))
        case let value as any SignedInteger & FixedWidthInteger: content = .value(.signed(Int64(value)))
        case let value as any UnsignedInteger & FixedWidthInteger: content = .value(.unsigned(UInt64(value)))
        default: try value.encode(to: JSONValueEncoder(place: self, codingPath: []))
        }
    }

    func encodeNull() { content = .value(.null) }

    func member(_ key: any CodingKey) -> JSONPlace {
        guard case .object(var members) = content else { preconditionFailure("\(key.stringValue) is not a member of an object") }
        let place = JSONPlace()
        content = .nothing // or the members would be copied
        members.append((key.stringValue, place))
        content = .object(members)
        return place
    }

    func element() -> JSONPlace {
        guard case .array(var places) = content else { preconditionFailure("not an element of an array") }
        let place = JSONPlace()
        content = .nothing
        places.append(place)
        content = .array(places)
        return place
    }

    var elementCount: Int { if case .array(let places) = content { places.count } else { 0 } }
    func becomeObject() { if case .object = content {} else { content = .object([]) } }
    func becomeArray() { if case .array = content {} else { content = .array([]) } }
}

private struct JSONValueEncoder: Encoder {
    let place: JSONPlace
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        place.becomeObject()
        return KeyedEncodingContainer(Members(place: place, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        place.becomeArray()
        return Elements(place: place, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(place: place, codingPath: codingPath) }

    private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let place: JSONPlace
        let codingPath: [any CodingKey]

        func encodeNil(forKey key: Key) { place.member(key).encodeNull() }
        func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try place.member(key).encode(value) }
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
            encoder(key).container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder(key).unkeyedContainer() }
        func superEncoder() -> any Encoder { JSONValueEncoder(place: place, codingPath: codingPath) }
        func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
        private func encoder(_ key: Key) -> JSONValueEncoder { JSONValueEncoder(place: place.member(key), codingPath: codingPath + [key]) }
    }

    private struct Elements: UnkeyedEncodingContainer {
        let place: JSONPlace
        let codingPath: [any CodingKey]
        var count: Int { place.elementCount }

        func encodeNil() { place.element().encodeNull() }
        func encode<T: Encodable>(_ value: T) throws { try place.element().encode(value) }
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            encoder.container(keyedBy: type)
        }
        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.unkeyedContainer() }
        func superEncoder() -> any Encoder { encoder }
        private var encoder: JSONValueEncoder { JSONValueEncoder(place: place.element(), codingPath: codingPath) }
    }

    private struct Single: SingleValueEncodingContainer {
        let place: JSONPlace
        let codingPath: [any CodingKey]

        func encodeNil() { place.encodeNull() }
        func encode<T: Encodable>(_ value: T) throws { try place.encode(value) }
    }
}
