/// The machine that launches were made on, as a baseline names it.
package struct MeasuredMachine: Decodable, Equatable, Sendable {
    package var architecture: String
    package var cpu: String
    package var kernel: String
    /// Duration of the calibration arithmetic, milliseconds: how fast the machine was. 0: not measured.
    package var calibrationMs: Double

    package init(architecture: String, cpu: String, kernel: String, calibrationMs: Double) {
        self.architecture = architecture
        self.cpu = cpu
        self.kernel = kernel
        self.calibrationMs = calibrationMs
    }

    enum CodingKeys: String, CodingKey { case architecture, cpu = "processor", kernel, calibrationMs = "calibration_ms" }
}
