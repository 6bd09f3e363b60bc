/// XML 1.0 (https://www.w3.org/TR/xml), and HTML likewise.
package enum XML {
    /// For the text of an element or a value in double quotes. What XML has no way to say (2.2: most control characters)
    /// is omitted.
    package static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t": break
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
