import ELF
import Glibc
import Testing
import Unwinding

@Suite struct ProcessViewTests {
    @Test func filesOfAnotherRootAreBelowIt() {
        let container = ProcessView(root: "/proc/7/root", prefix: "")
        #expect(container.path(of: "/usr/lib/libc.so.6") == "/proc/7/root/usr/lib/libc.so.6")
        let jail = ProcessView(root: "/proc/7/root", prefix: "/srv/jail")
        #expect(jail.path(of: "/srv/jail/lib/libc.so.6") == "/proc/7/root/lib/libc.so.6")
        #expect(jail.path(of: "/srv/jail") == "/proc/7/root")
        // Mapped before it called chroot: not within.
        #expect(jail.path(of: "/srv/jailer/lib/libc.so.6") == "/proc/7/root/srv/jailer/lib/libc.so.6")
    }

    @Test func whatIsNoNameOfAFileStays() {
        let container = ProcessView(root: "/proc/7/root", prefix: "")
        for name in ["", "[heap]", "[vdso]", "/memfd:libtracer.so (deleted)", "anon_inode:[perf_event]"] {
            #expect(container.path(of: name) == name)
        }
    }

    @Test func ownFilesHaveTheirOwnNames() {
        let own = ProcessView(of: getpid())
        #expect(own.root == nil && own.path(of: "/bin/sh") == "/bin/sh")
        #expect(ProcessView.program(of: getpid()) != nil)
        #expect(ProcessMaps(pid: getpid()).allSatisfy { $0.name == $0.path })
    }
}
