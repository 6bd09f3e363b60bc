// registers.c, where the function that is called has calls with an object: it is called as one of libdispatch is, and in a library of that
// name.
// sources: part_registers_call.S
// library: dispatch=part_registers_probe.S
// library: descend=part_descend.c
// build: -O2 -Dprobe=dispatch_semaphore_wait
// link: -Wl,-z,now
// variant: sse -DLEVEL=0
// variant: avx512_lazy -DLEVEL=2 exe:-Wl,-z,lazy
// variant: avx512_noplt -DLEVEL=2 -DNO_PLT
// case: fast_path fast 1000
// case: with_sites TRACER_CALLSITES=1 fast 1000
// case: first_call_of_thread thread 200
// case: chunk_full fast 150000
// case: deep deep 20000
// case: other_stack_open stacks 100000
// case: other_stack_open_limited TRACER_MAXDEPTH=3 stacks 2000
// case: beyond_depth_limit TRACER_MAXDEPTH=2 limited 10
// case: below_time_filter TRACER_MINMS=100 filtered 2000
// case: recording_off TRACER_START=off excluded 100
// architecture: x86_64 its registers
// tree: none the subject counts its calls
// modes: call_sites arm arm_old
#define PROBE "dispatch_semaphore_wait"
#include "registers.c"
