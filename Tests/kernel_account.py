"""Finds out whether the kernel reports here when threads run, without the tool: a test that asked the tool would pass without it."""
import ctypes
import os
import platform
import struct


def kernel_reports():
    """perf_event_open(2), as tracer record asks it: this user, this level of kernel.perf_event_paranoid, these filters."""
    try:
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            level = int(file.read())
    except FileNotFoundError:
        return False
    if level > 2 and os.geteuid() != 0:
        return False
    # A container's seccomp filter refuses whatever the level is.
    attributes = struct.pack("<IIQQ", 1, 112, 9, 0) + bytes(16) + struct.pack("<Q", 1 << 5 | 1 << 6) + bytes(112 - 48)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall({"x86_64": 298, "aarch64": 241}[platform.machine()], attributes, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0
