// Records about a module that are written when it is found. Its details are counted while it is bound.
import CSupport
import CTraceLayout

extension MetadataWriter {
    static func module(_ module: Module, _ index: UInt32) {
        var fixed = trace_module_record()
        let count = length(module.path)
        fixed.module = index
        fixed.path_bytes = UInt32(count)
        fixed.load_bias = module.image.bias
        fixed.low_address = module.image.low
        fixed.high_address = module.image.high
        fixed.loaded_ticks = Clock.ticks()
        fixed.build_id_bytes = module.image.copyBuildID(&fixed.build_id)
        append(Int(TRACE_RECORD_MODULE), 0, fixed, module.path, count)
    }
}
