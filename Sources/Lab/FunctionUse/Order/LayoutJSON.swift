// What `tracer order --json` prints.
import ELF
import Presentation
import TraceAnalysis

extension LayoutOrder: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("module", "file name", \.module.name)
        Member("path", \.module.path)
        Member("build_id", "hexadecimal; null: it has none") { order in
            order.module.identity.buildID.isEmpty ? nil : hexadecimal(order.module.identity.buildID)
        }
        Member("traces", "number of those of this build of the module", \.traceCount)
        Member("readiness", "what ended the start, and in how many traces", \.readiness)
        Member(
            "pages", "text pages, of 4096 bytes, that the start's functions lie on, each function counted whole; null: sizes are not known",
            \.startPages?.now)
        Member("pages_together", "pages that they would lie on if they were placed together", \.startPages?.together)
        Member(
            "start",
            "called during start-up, in the order for the linker; its file lacks those without symbols and of the compiler's start files",
            \.start)
        Member("later", "called later; they follow those", \.later)
        Member("never_called", "functions of the file; null: it was not found, or no plan of it can be made", \.uncalledCount)
        Member("doubts", "functions that the linker may not find, or not place alone", \.doubts.kinds)
        Member("has_debug_information", "false: it is not known whether each function has its own section") { !$0.doubts.isWithoutSections }
        Member("other_modules", "other modules with functions that were called", \.doubts.others)
    }

    /// nil: sizes are in the file alone.
    private var startPages: Pages? {
        let pages = Pages(start)
        return pages.now == 0 ? nil : pages
    }
}

extension LayoutOrder.Readiness: Record {
    package static let members = declare {
        Member("text", \.text)
        Member("traces", \.traces)
    }
}

extension LaidFunction: Record {
    package static let members = declare {
        Member("name", "demangled; an address where it has none", \.name)
        Member("symbols", "all of its names as in the file; empty: it has none, and the linker's file lacks it", \.symbols)
        Member("address", "as linked", \.address)
        Member("size", "in bytes; null: not known") { $0.byteCount == 0 ? nil : $0.byteCount }
    }
}

extension LayoutDoubts.Kind: Record {
    package static let members = declare {
        Member("reason", \.text)
        Member("addresses") { kind in kind.functions.map(\.address) }
    }
}

extension LayoutDoubts.OtherModule: Record {
    package static let members = declare {
        Member("module", \.module)
        Member("functions", \.functions)
    }
}
