// registers_aarch64.c, where the function that is called has calls with an object (registers_objects.c).
// architecture: aarch64 its registers
// sources: part_registers_aarch64.S
// library: dispatch=part_registers_aarch64.S -DPROBE -nostdlib -Wl,-z,force-bti
// library: descend=part_descend.c
// build: -O2 -Dprobe=dispatch_semaphore_wait
// link: -Wl,-z,now
// variant: now
// variant: lazy exe:-Wl,-z,lazy
// case: fast_path fast 1000
// case: with_sites TRACER_CALLSITES=1 fast 1000
// case: first_call_of_thread thread 200
// case: chunk_full fast 40000
// case: deep deep 20000
// case: other_stack_open stacks 40000
// case: other_stack_open_limited TRACER_MAXDEPTH=3 stacks 2000
// case: beyond_depth_limit TRACER_MAXDEPTH=2 limited 10
// case: below_time_filter TRACER_MINMS=100 filtered 2000
// case: recording_off TRACER_START=off excluded 100
// case: kernels_clock TRACER_CLOCK=monotonic fast 1000
// tree: none the subject counts its calls
// modes: arm call_sites for now.* lazy.fast_path lazy.first_call_of_thread
// modes: arm_old arm_functions arm_call_sites for now.fast_path now.with_sites now.first_call_of_thread now.chunk_full
// thorough: call_sites arm because the emulator takes minutes, and the way to the trampoline is in two cases of each link
// thorough: arm_old because the emulator takes minutes, and what the CPU changes is in four cases of one link
// thorough: arm_functions arm_call_sites for now.* because the emulator takes minutes, and what the mode changes is in four of the cases
#define PROBE "dispatch_semaphore_wait"
#include "registers_aarch64.c"
