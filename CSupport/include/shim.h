#pragma once
long shim_syscall(long, long, long, long, long, long, long);
