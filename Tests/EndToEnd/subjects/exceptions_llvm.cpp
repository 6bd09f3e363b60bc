// Throws, catches and cleans up as exceptions.cpp does, unwound by LLVM's libunwind instead of libgcc.
// compilers: gcc clang
// library: upper -Wl,--allow-shlib-undefined
// library: lower
// link: -Wl,--no-as-needed -l:libunwind.so.1
// needs: file:/usr/lib/x86_64-linux-gnu/libunwind.so.1
// architecture: x86_64 arm_programs.py has it for the other
// tree: none what the unwinder itself calls is another for each release of it
// modes: functions counts instrumented call_sites
#include "exceptions.cpp"
