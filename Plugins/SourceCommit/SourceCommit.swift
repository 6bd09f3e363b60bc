import Foundation
import PackagePlugin

/// Generates `let sourceCommit`: which commit the sources are of, for `tracer --version`.
///
/// A build command, and no prebuild command: SwiftPM runs those only when it plans the build anew, and a commit that
/// changes no source does not make it do so.
@main
struct SourceCommit: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let root = context.package.directoryURL
        let script = root.appending(path: "Plugins/SourceCommit/source-commit")
        let output = context.pluginWorkDirectoryURL.appending(path: "SourceCommit.swift")
        return [
            .buildCommand(
                displayName: "Asking git for the commit",
                executable: URL(filePath: "/bin/sh"),
                arguments: [script, root, output].map { $0.path(percentEncoded: false) },
                inputFiles: [script] + sources(of: root) + headLog(of: root),
                outputFiles: [output])
        ]
    }

    /// Every file that is built: after an edit the sources may be no longer those of the commit, or be so again.
    private func sources(of root: URL) -> [URL] {
        var found = [root.appending(path: "Package.swift")]
        for folder in ["Sources", "CSupport", "Plugins"] {
            let folder = root.appending(path: folder)
            guard let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.isRegularFileKey]) else { continue }
            for case let file as URL in files where (try? file.resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile == true {
                found.append(file)
            }
        }
        return found.sorted { $0.path < $1.path }
    }

    /// git appends to this log whenever HEAD becomes another commit. None outside a repository.
    private func headLog(of root: URL) -> [URL] {
        var folder = root.appending(path: ".git")
        // In a work tree of `git worktree` .git is a file that names the folder: gitdir: PATH.
        if let text = try? String(contentsOf: folder, encoding: .utf8), text.hasPrefix("gitdir: ") {
            let path = text.dropFirst("gitdir: ".count).trimmingCharacters(in: .newlines)
            folder = URL(filePath: path, relativeTo: root)
        }
        let log = folder.appending(path: "logs/HEAD").absoluteURL
        return FileManager.default.fileExists(atPath: log.path(percentEncoded: false)) ? [log] : []
    }
}
