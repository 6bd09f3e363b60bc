// Shares of a whole, as options take them.
import ArgumentParser

/// --min of trees: "5ms" is the length of a call; "2%" and "2" are a share of the time, as before --min-share.
struct Least: ExpressibleByArgument {
    var share: Double?
    var time: TimeLength?

    init?(argument: String) {
        share = Percentage(argument: argument)?.share
        time = share == nil ? TimeLength(argument: argument) : nil
        if share == nil, time == nil || Double(argument) != nil { return nil }
    }
}

/// "1%", "0.5": percent of something.
struct Percentage: ExpressibleByArgument {
    /// 0 … 1.
    var share: Double

    init(_ share: Double) { self.share = share }

    init?(argument: String) {
        guard let percent = Double(argument.hasSuffix("%") ? String(argument.dropLast()) : argument), (0...100).contains(percent) else {
            return nil
        }
        share = percent / 100
    }

    var defaultValueDescription: String {
        let percent = share * 100
        return (percent == percent.rounded() ? "\(Int(percent))" : "\(percent)") + "%"
    }
}
