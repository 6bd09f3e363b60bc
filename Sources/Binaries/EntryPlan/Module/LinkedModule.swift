// The file of an executable or a shared library, opened, with what of it is code.
import CZydis
import ELF
import Glibc

struct LinkedModule {
    let file: CodeFile
    let code: ModuleCode

    init(path: String) throws(PlanProblem) {
        do throws(CodeFile.Refusal) {
            file = try CodeFile(path: path)
        } catch {
            switch error {
            case .noFile(let number): throw PlanProblem(message: "cannot read \(path): \(String(cString: strerror(number)))")
            case .noELF: throw PlanProblem(message: "\(path) is not a 64-bit ELF file: name an executable or a shared library")
            }
        }
        guard file.type == 2 || file.type == 3 else {
            throw PlanProblem(message: "\(path) is not linked: name an executable or a shared library")
        }
        guard let architecture = Architecture(rawValue: file.elfMachine) else {
            throw PlanProblem(message: "\(path) is for another CPU architecture: plans exist for x86_64 and aarch64")
        }
        guard let code = ModuleCode(file, architecture) else {
            throw PlanProblem(message: "\(path) has no code, or more than 2 GB of it")
        }
        self.code = code
    }

    /// Before the first instruction is decoded.
    func openDecoder() throws(PlanProblem) {
        if code.architecture == .x86, let why = x86_decoder_open(installedLibraryFolder()) {
            throw PlanProblem(message: String(cString: why))
        }
    }
}
