// Description of an area's stubs and relocated instructions for unwinders (CSupport/relocated_code.h): where each function's first bytes
// were, and how the copy differs from them. It lies after the hooks.
import CSupport
import CTraceLayout

struct RelocatedArea {
    private let area: UnsafeMutablePointer<relocated_area>
    private let sites: UnsafeMutablePointer<UInt32>
    private let shapes: UnsafeMutablePointer<relocated_shape>
    private let landings: UnsafeMutablePointer<relocated_landing>
    private var count = 0

    /// Size for this many functions, this many of them with a shape, and this many with a landing.
    static func bytes(_ functions: UInt32, _ shapes: UInt32, _ landings: UInt32) -> UInt64 {
        landingsOffset(functions, shapes) &+ UInt64(landings) &* UInt64(MemoryLayout<relocated_landing>.stride)
    }
    private static let stride = UInt64(MemoryLayout<relocated_shape>.stride)
    private static func shapesOffset(_ functions: UInt32) -> UInt64 { sitesOffset &+ (UInt64(functions) &* 4) }
    private static func landingsOffset(_ functions: UInt32, _ shapes: UInt32) -> UInt64 {
        shapesOffset(functions) &+ UInt64(shapes) &* stride
    }
    private static var sitesOffset: UInt64 { UInt64(MemoryLayout<relocated_area>.stride) }

    /// Space for frame descriptions, for all areas that reach it: a profiler fills some of its pages. When none is free an unwinder ends
    /// in relocated instructions.
    static let descriptionBytes: UInt64 = 8192 &* UInt64(DESCRIPTION_BYTES)

    /// `address`: as many bytes of zeros as `bytes` says. `descriptions`: within 32 bits of the code; 0: none.
    init(at address: UInt64, _ functions: UInt32, _ shapes: UInt32, code: Range<UInt64>, hooks: UInt64, base: UInt64, descriptions: UInt64)
    {
        let start = UnsafeMutableRawPointer(bitPattern: UInt(address))!
        area = start.assumingMemoryBound(to: relocated_area.self)
        sites = (start + Int(RelocatedArea.sitesOffset)).assumingMemoryBound(to: UInt32.self)
        self.shapes = (start + Int(RelocatedArea.shapesOffset(functions))).assumingMemoryBound(to: relocated_shape.self)
        landings = (start + Int(RelocatedArea.landingsOffset(functions, shapes))).assumingMemoryBound(to: relocated_landing.self)
        area.pointee.code = code.lowerBound
        area.pointee.code_end = code.upperBound
        area.pointee.functions = UnsafePointer(bitPattern: UInt(hooks))
        area.pointee.base = base
        area.pointee.sites = UnsafePointer(sites)
        area.pointee.shapes = UnsafePointer(self.shapes)
        area.pointee.landings = UnsafePointer(landings)
        area.pointee.descriptions = OpaquePointer(bitPattern: UInt(descriptions))
        area.pointee.descriptions_count = descriptions == 0 ? 0 : RelocatedArea.descriptionBytes / UInt64(DESCRIPTION_BYTES)
    }

    mutating func add(_ function: plan_function, _ plan: PlanContent) {
        sites[count] = function.address &+ UInt32(function.patch) | EntryPatch.siteFlags(function)
        if function.instruction_count > 0 {
            let shape = shapes + Int(area.pointee.shape_count)
            shape.pointee.function = UInt32(count)
            shape.pointee.instruction_count = function.instruction_count
            shape.pointee.linked = function.linked
            withUnsafeMutableBytes(of: &shape.pointee.instructions) {
                let instructions = $0.assumingMemoryBound(to: relocated_instruction.self)
                for k in 0..<Int(function.instruction_count) {
                    let instruction = plan.instruction(of: function, k)
                    instructions[k] = relocated_instruction(
                        relocated: instruction.relocated, original: instruction.original &- function.patch)
                }
            }
            area.pointee.shape_count &+= 1
        }
        if PlanContent.isByLanding(function) && !Process.isAttached {
            add(relocated_landing(address: function.landing, function: UInt32(count)))
        }
        count &+= 1
    }

    /// They come nearly in order: each is in reach of a short jump.
    private func add(_ landing: relocated_landing) {
        var n = Int(area.pointee.landing_count)
        while n > 0 && landings[n &- 1].address > landing.address {
            landings[n] = landings[n &- 1]
            n = n &- 1
        }
        landings[n] = landing
        area.pointee.landing_count &+= 1
    }

    /// From now on unwinders find it.
    func publish() {
        area.pointee.count = UInt64(count)
        tracer_add_relocated(area)
    }
}
