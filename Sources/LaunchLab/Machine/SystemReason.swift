import Foundation

extension Error {
    /// What the system said, as it says it ("No such file or directory"), and not Foundation's account of it.
    package var systemReason: String {
        var error = self as NSError
        if let underlying = error.userInfo[NSUnderlyingErrorKey] as? any Error { error = underlying as NSError }
        return error.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(error.code))) : localizedDescription
    }
}
