// Throws, catches and cleans up as exceptions.cpp does, unwound by nongnu libunwind instead of libgcc.
// compilers: gcc clang
// library: upper -Wl,--allow-shlib-undefined
// library: lower
// link: -Wl,--no-as-needed -l:libunwind.so.8
// variant: plt
// variant: O0 -O0
// needs: file:/usr/lib/x86_64-linux-gnu/libunwind.so.8
// architecture: x86_64 it has no exceptions on the other
// tree: none what the unwinder itself calls is another for each release of it
// modes: functions counts instrumented call_sites
#include "exceptions.cpp"
