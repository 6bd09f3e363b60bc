// A traced call leaves the caller's registers alone: at any moment each callee-saved register holds what it holds without
// the agent while the callee and the program run, and while the agent runs it is there or on the thread's own stack.
// sources: part_held.S
// library: held=part_held.S -DCALLEE
// build: -O1 -DSITES=20000
// link: -Wl,-z,now
// env: TRACER_MODE=ring TRACER_MAXSIZE=512K QEMU_SINGLESTEP=1 QEMU_ONE_INSN_PER_TB=1
// variant: plt
// variant: noplt -DNO_PLT
// case: in_a_leaf_by_signal signal leaf here
// case: in_a_leaf_by_ptrace ptrace leaf here
// case: in_a_call_with_a_call_inside_by_signal signal outer here
// case: in_a_call_with_a_call_inside_by_ptrace ptrace outer here
// case: in_a_callee_that_ends_in_a_tail_call_by_signal signal tail here
// case: in_a_callee_that_ends_in_a_tail_call_by_ptrace ptrace tail here
// case: when_the_caller_is_a_tail_call_by_signal signal jump here
// case: below_the_time_filter_by_signal TRACER_MINMS=100 signal outer here
// case: below_the_time_filter_by_ptrace TRACER_MINMS=100 ptrace outer here
// case: beyond_the_depth_by_signal TRACER_MAXDEPTH=1 signal outer around
// case: beyond_the_depth_by_ptrace TRACER_MAXDEPTH=1 ptrace outer around
// case: on_a_context_by_signal signal outer context
// case: on_a_context_by_ptrace ptrace outer context
// case: on_a_signal_stack_by_signal signal outer signal_stack
// case: on_a_signal_stack_by_ptrace ptrace outer signal_stack
// case: not_recording_by_signal TRACER_START=off signal outer here
// case: while_recording_is_switched_off_and_on_by_signal signal outer toggled
// case: in_another_thread_by_signal signal outer thread
// case: at_first_calls_from_many_sites_by_signal signal sites here
// case: by_the_kernels_clock_by_signal TRACER_CLOCK=monotonic signal outer here
// case: by_the_kernels_clock_by_ptrace TRACER_CLOCK=monotonic ptrace outer here
// case: at_first_calls_from_many_sites_by_ptrace ptrace sites here
// case: in_dlopen_by_signal signal dlopen here
// case: in_dlopen_by_ptrace ptrace dlopen here
// case: in_a_call_that_the_agent_inspects_by_ptrace ptrace syscall here
// native: in_a_leaf_by_ptrace in_a_call_with_a_call_inside_by_ptrace because an emulator of user programs has no ptrace
// native: in_a_callee_that_ends_in_a_tail_call_by_ptrace below_the_time_filter_by_ptrace because an emulator of user programs has no ptrace
// native: beyond_the_depth_by_ptrace on_a_context_by_ptrace on_a_signal_stack_by_ptrace because an emulator of user programs has no ptrace
// native: by_the_kernels_clock_by_ptrace at_first_calls_from_many_sites_by_ptrace because an emulator of user programs has no ptrace
// native: in_dlopen_by_ptrace in_a_call_that_the_agent_inspects_by_ptrace because an emulator of user programs has no ptrace
// timeout: 900
// tree: none there are as many calls as the observer needs
// modes: arm_old arm_functions arm_call_sites for plt.in_a_*
// modes: call_sites arm for plt.*
// thorough: call_sites arm for noplt.* because the way to the trampoline differs, which `slots` shows, and not the trampoline
// thorough: arm_old arm_functions arm_call_sites for plt.* because the emulator takes minutes, and what is recorded around the trampoline does not differ by them
#define JUDGE_SAVED
#include "subject.h"
#include "part_seen.h"
