// Records about a module that are written when it is found. Its details are counted while it is bound.
import CSupport
import CTraceLayout

extension MetadataWriter {
    /// - Parameter file: of a module without a build-id
    static func module(_ module: Module, _ index: UInt32, _ file: FileStatus?) {
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
        guard let file else { return }
        var status = trace_module_file_record()
        status.module = index
        status.written_seconds = Int64(file.writtenSeconds)
        status.written_nanoseconds = file.writtenNanoseconds
        status.byte_count = UInt64(truncatingIfNeeded: file.byteCount)
        status.file = plan_mix(file.device, file.inode)
        append(Int(TRACE_RECORD_MODULE_FILE), 0, status)
    }
}
