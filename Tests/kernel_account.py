"""Finds out whether the kernel reports here when threads run, without the tool: a test that asked the tool would pass without it.
Makes a program that runs others where it does not."""
import ctypes
import os
import platform
import struct
import subprocess

# perf_event_open(2) is refused as containers refuse it, then a command is run.
REFUSING = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char *arguments[]) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
    execv(arguments[1], arguments + 1);
    return 98;
}
"""


def kernel_reports(inside=False):
    """perf_event_open(2), as tracer record asks it: this user, this level of kernel.perf_event_paranoid, these filters.
    `inside`: also what happens in the kernel itself."""
    try:
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            level = int(file.read())
    except FileNotFoundError:
        return False
    if level > 2 and os.geteuid() != 0:
        return False
    # A container's seccomp filter refuses whatever the level is.
    attributes = struct.pack("<IIQQ", 1, 112, 9, 0) + bytes(16) + struct.pack("<Q", 1 << 6 if inside else 1 << 5 | 1 << 6) + bytes(112 - 48)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall({"x86_64": 298, "aarch64": 241}[platform.machine()], attributes, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def refusing(path, error):
    """Builds the program above; the error is a name of errno(3)."""
    subprocess.run(["gcc", f"-DREFUSAL={error}", "-xc", "-", "-o", path], input=REFUSING, text=True, check=True)
    return path
