// One file that is about to be executed, and what the kernel and the loader will make of it.
import CRecorder
import ELF
import Glibc

/// Credentials of the process that calls exec. With the file's, they decide whether the loader will honour LD_PRELOAD.
package struct Identity: Sendable {
    package var realUser, effectiveUser: uid_t
    package var realGroup, effectiveGroup: gid_t
    /// prctl(PR_GET_NO_NEW_PRIVS): set-user-ID bits do nothing.
    package var noNewPrivileges: Bool

    package init(
        realUser: uid_t, effectiveUser: uid_t, realGroup: gid_t, effectiveGroup: gid_t,
        noNewPrivileges: Bool
    ) {
        self.realUser = realUser
        self.effectiveUser = effectiveUser
        self.realGroup = realGroup
        self.effectiveGroup = effectiveGroup
        self.noNewPrivileges = noNewPrivileges
    }

    package static var current: Identity {
        Identity(
            realUser: getuid(), effectiveUser: geteuid(), realGroup: getgid(), effectiveGroup: getegid(),
            noNewPrivileges: recorder_no_new_privileges() != 0)
    }
}

/// The privileges that a file carries.
package struct FilePrivileges: Sendable {
    package var mode: mode_t
    package var owner: uid_t
    package var group: gid_t
    /// The raw `security.capability` attribute, empty without one.
    package var capabilities: [UInt8]
    /// Mounted nosuid: neither the mode bits nor the capabilities count.
    package var mountIgnoresThem: Bool

    package init(mode: mode_t, owner: uid_t, group: gid_t, capabilities: [UInt8], mountIgnoresThem: Bool) {
        self.mode = mode
        self.owner = owner
        self.group = group
        self.capabilities = capabilities
        self.mountIgnoresThem = mountIgnoresThem
    }

    /// Why the kernel would set AT_SECURE, on which the loader ignores a preloaded library that is not in a system
    /// directory; nil when it would not. Linux, security/commoncap.c, cap_bprm_creds_from_file: secure when the new
    /// effective user or group is not the real one, or, unless the real user is root, when the file grants
    /// capabilities. So a set-user-ID-root program is not secure for root, nor `ping` with cap_net_raw.
    package func secureReason(for identity: Identity) -> String? {
        let ignored = mountIgnoresThem || identity.noNewPrivileges
        let isSetUser = mode & S_ISUID != 0 && !ignored
        // Without group execute permission the bit once meant mandatory locking and does nothing.
        let isSetGroup = mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP && !ignored
        if (isSetUser ? owner : identity.effectiveUser) != identity.realUser {
            return isSetUser ? "runs as another user (set-user-ID)" : "would run with an effective user ID other than the real one"
        }
        if (isSetGroup ? group : identity.effectiveGroup) != identity.realGroup {
            return isSetGroup ? "runs as another group (set-group-ID)" : "would run with an effective group ID other than the real one"
        }
        if identity.realUser != 0, !mountIgnoresThem, grantsCapabilities {
            return "has file capabilities"
        }
        return nil
    }

    /// vfs_cap_data: magic and flags, then permitted and inheritable words. Inheritable ones alone give something only
    /// to a process that has them in its own inheritable set; that hardly exists, so it counts too.
    private var grantsCapabilities: Bool {
        guard capabilities.count >= 12 else { return false }
        return capabilities[0] & 1 != 0 || capabilities[4..<min(capabilities.count, 20)].contains { $0 != 0 }
    }
}

/// An open file that is to be executed.
package struct ProgramFile {
    package let path: String
    package let format: ExecutableFormat
    package let privileges: FilePrivileges

    /// Fails with a `Refusal` when the file is missing, not a program, or cannot be looked into.
    package init(path: String) throws(Refusal) {
        self.path = path
        var info = stat()
        guard stat(path, &info) == 0 else {
            let error = errno
            let message = "\(path): \(String(cString: strerror(error)))"
            throw error == ENOENT || error == ENOTDIR ? .notFound(message) : .cannotRun(message)
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            throw .cannotRun("\(path) is \(info.st_mode & S_IFMT == S_IFDIR ? "a directory" : "not a regular file"), not a program")
        }
        guard faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 else {
            throw .cannotRun("\(path) is not executable: chmod +x it, or name its interpreter")
        }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw .cannotRun(
                "\(path) cannot be read, so it cannot be checked or traced: make it readable (chmod +r), or run it without tracer")
        }
        defer { close(file) }
        format = ExecutableFormat(reading: readBytes(of: file))
        var fileSystem = statvfs()
        let knowsMount = fstatvfs(file, &fileSystem) == 0
        let capabilities = [UInt8](unsafeUninitializedCapacity: 64) { buffer, filled in
            filled = max(0, recorder_file_capabilities(file, buffer.baseAddress, buffer.count))
        }
        privileges = FilePrivileges(
            mode: info.st_mode, owner: info.st_uid, group: info.st_gid, capabilities: capabilities,
            mountIgnoresThem: knowsMount && fileSystem.f_flag & UInt(ST_NOSUID) != 0)
    }
}
