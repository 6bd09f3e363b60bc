// Layout of struct held, which registers_seen.c and results_seen.c share with part_held.S.
#define HELD_PHASE 0
#define HELD_SPIN 4
#define HELD_TARGET 8
#define HELD_SAVED 16      /* rbx rbp r12-r15; x19-x29 */
#define HELD_ARGUMENTS 104 /* rdi rsi rdx rcx r8 r9 r10 rax; x0-x8 */
#define HELD_RESULTS 176   /* rax rdx rcx r8; x0 x1 */
#define HELD_OUT 208       /* results and saved registers as the caller finds them */
#define HELD_OUT_SAVED 240

#define PHASE_NONE 0      /* the registers hold no patterns */
#define PHASE_ARGUMENTS 1 /* on the way to the callee */
#define PHASE_CALLEE 2
#define PHASE_RESULTS 3   /* on the way back */
