import Foundation

extension Error {
    /// The system's own message for an errno ("No such file or directory"); Foundation's description where there is none.
    package var systemReason: String {
        var error = self as NSError
        if let underlying = error.userInfo[NSUnderlyingErrorKey] as? any Error { error = underlying as NSError }
        return error.domain == NSPOSIXErrorDomain ? String(cString: strerror(Int32(error.code))) : localizedDescription
    }
}
