/// A moment on the calendar, in UTC.
package struct UTC: Sendable {
    private let date: String, time: String
    private let milliseconds: UInt64

    /// - Parameter nanoseconds: since 1970
    package init(nanoseconds: UInt64) {
        let seconds = nanoseconds / 1_000_000_000
        // Days to a civil date as in http://howardhinnant.github.io/date_algorithms.html#civil_from_days.
        let shifted = seconds / 86400 + 719_468
        let era = shifted / 146_097, dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let rest = seconds % 86400
        date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
        time = "\(padded(rest / 3600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))"
        milliseconds = nanoseconds / 1_000_000 % 1000
    }

    /// - Parameter seconds: since 1970
    package init(seconds: Double) { self.init(nanoseconds: UInt64(max(seconds, 0)) &* 1_000_000_000) }

    /// "2026-11-21T10:41:42.123Z" (ISO 8601).
    package var iso8601: String { "\(date)T\(time).\(padded(milliseconds, 3))Z" }

    /// "2026-11-21 10:41:42", which databases read without instructions.
    package var text: String { "\(date) \(time)" }
}
