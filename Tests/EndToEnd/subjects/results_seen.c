// A pointer that an argument or a result register carries through a traced call can be seen all the way, in registers or
// on the stack at or above its pointer (what is below is not looked at by collectors and leak checkers), and so can what the
// caller keeps in registers of its own: `step` looks after every instruction.
// sources: part_held.S
// library: held=part_held.S -DCALLEE -Wl,-z,now
// build: -O1 -DSITES=20000
// link: -Wl,-z,now
// env: QEMU_SINGLESTEP=1 QEMU_ONE_INSN_PER_TB=1 TRACER_MODE=ring TRACER_MAXSIZE=512K
// variant: plt
// variant: noplt -DNO_PLT
// case: of_a_leaf_by_step step leaf here
// case: of_a_call_with_a_call_inside_by_step step outer here
// case: of_a_tail_call_by_step step tail here
// case: when_the_caller_is_a_tail_call_by_step step jump here
// case: below_the_time_filter_by_step TRACER_MINMS=100 step outer here
// case: beyond_the_depth_by_step TRACER_MAXDEPTH=1 step outer around
// case: on_a_context_by_step step outer context
// case: on_a_signal_stack_by_step step outer signal_stack
// case: by_the_kernels_clock_by_step TRACER_CLOCK=monotonic step outer here
// case: at_first_calls_from_many_sites_by_step step sites here
// case: in_dlopen_by_step step dlopen here
// case: in_a_call_that_the_agent_inspects_by_step step syscall here
// case: in_a_call_of_a_number_by_step step number here
// case: of_a_leaf_by_signal signal leaf here
// case: of_a_call_with_a_call_inside_by_signal signal outer here
// case: of_a_tail_call_by_signal signal tail here
// case: below_the_time_filter_by_signal TRACER_MINMS=100 signal outer here
// case: on_a_context_by_signal signal outer context
// native: of_a_leaf_by_step of_a_call_with_a_call_inside_by_step of_a_tail_call_by_step because an emulator of user programs has no ptrace
// native: when_the_caller_is_a_tail_call_by_step below_the_time_filter_by_step because an emulator of user programs has no ptrace
// native: beyond_the_depth_by_step on_a_context_by_step on_a_signal_stack_by_step because an emulator of user programs has no ptrace
// native: by_the_kernels_clock_by_step at_first_calls_from_many_sites_by_step in_dlopen_by_step because an emulator of user programs has no ptrace
// native: in_a_call_that_the_agent_inspects_by_step in_a_call_of_a_number_by_step because an emulator of user programs has no ptrace
// timeout: 900
// tree: none there are as many calls as the observer needs
// modes: arm for plt.*
// thorough: arm for noplt.* because the way to the trampoline differs, which `slots` shows, and not the trampoline
#define JUDGE_SAVED
#define JUDGE_ARGUMENTS
#include "subject.h"
#include "part_seen.h"
