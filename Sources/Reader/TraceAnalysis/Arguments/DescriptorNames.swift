// What the descriptors among arguments and results are open on, for those who show them.

package struct DescriptorNames: Sendable {
    /// nil: it is not known what the descriptor is open on at that moment.
    let object: @Sendable (_ descriptor: Int32, _ moment: UInt64) -> String?
    /// A function of this name may close the descriptor that it is passed.
    let mayClose: @Sendable (String) -> Bool

    private func named(_ value: ArgumentValue, at moment: UInt64) -> ArgumentValue {
        guard case .integer(let number) = value, let descriptor = Int32(exactly: number), let object = object(descriptor, moment) else {
            return value
        }
        return .descriptor(number, object)
    }
    /// Names the descriptors among the arguments of a call that begins then.
    func name(_ arguments: inout NamedArguments, of recorded: RecordedPrototype, from begin: UInt64) {
        let prototype = recorded.prototype, isClosing = mayClose(prototype.names[0])
        for n in arguments.values.indices {
            guard prototype.parameters.contains(where: { $0.name == arguments.values[n].name && $0.isDescriptor }) else { continue }
            // What a call closes is open until it begins.
            arguments.values[n].value = named(arguments.values[n].value, at: isClosing ? begin &- 1 : begin)
        }
    }
    /// Returns the result of a call that ends then, with the name if it is a descriptor.
    func name(_ result: ArgumentValue, of recorded: RecordedPrototype, at end: UInt64) -> ArgumentValue {
        recorded.prototype.result?.isDescriptor == true ? named(result, at: end) : result
    }
}

extension RecordedPrototype {
    var hasDescriptors: Bool { prototype.result?.isDescriptor == true || prototype.parameters.contains { $0.isDescriptor } }
}
extension Prototype.Parameter {
    fileprivate var isDescriptor: Bool { typeName == "fd" || type == .folder }
}
extension Prototype.Result {
    fileprivate var isDescriptor: Bool { typeName == "fd" }
}
