// The register contract on aarch64: what the AAPCS64, Swift's convention or preserve_most lets carry an argument, a
// result or the caller's own arrives unchanged, whichever path of the agent the call takes.
// architecture: aarch64 its registers
// sources: part_registers_aarch64.S
// library: probe=part_registers_aarch64.S -DPROBE -nostdlib -Wl,-z,force-bti
// library: descend=part_descend.c
// link: -Wl,-z,now
// variant: now
// variant: lazy exe:-Wl,-z,lazy
// variant: noplt -DNO_PLT
// variant: protected -mbranch-protection=standard
// case: fast_path fast 1000
// case: first_call_of_thread thread 200
// case: chunk_full fast 40000
// case: deep deep 20000
// case: other_stack_open stacks 40000
// case: other_stack_open_limited TRACER_MAXDEPTH=3 stacks 2000
// case: beyond_depth_limit TRACER_MAXDEPTH=2 limited 10
// case: below_time_filter TRACER_MINMS=100 filtered 2000
// case: excluded TRACER_EXCLUDE=probe excluded 100
// case: recording_off TRACER_START=off excluded 100
// case: kernels_clock TRACER_CLOCK=monotonic fast 1000
// tree: none the subject counts its calls
// modes: arm call_sites for now.* *.fast_path *.first_call_of_thread
// modes: arm_old arm_functions arm_call_sites for now.fast_path now.first_call_of_thread now.chunk_full now.deep now.kernels_clock
// thorough: call_sites arm because the emulator takes minutes, and the way to the trampoline is in two cases of each link
// thorough: arm_old because the emulator takes minutes, and what the CPU changes is in five cases of one link
// thorough: arm_functions for now.* because the emulator takes minutes, and what the mode changes is in five of the cases
// thorough: arm_call_sites for now.* noplt.* because the emulator takes minutes, and what the mode changes is in five of the cases
#include "subject.h"
#include "part_other_stack.h"

struct state { // part_registers_aarch64.S
    uint64_t x[32]; // x30 is the link register, the last word the stack pointer
    uint8_t q[32][16];
    uint64_t fpcr, fpsr;
    uint64_t stack[4]; // passed on the stack
} __attribute__((aligned(16)));

void call_probe(const struct state *in, struct state *out);
void probe(void);
void probe_states(const struct state *give, struct state *seen);
void descend(int levels, void (*at_each)(void));

static struct state in, out, give, seen;
static uint64_t calls;

static void fill(struct state *state, unsigned seed) {
    uint64_t x = seed * 2654435761u + 1;
    uint8_t *bytes = (uint8_t *)state;
    for (size_t i = 0; i < sizeof *state; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(bytes + i, &x, 8);
    }
    state->fpcr = (uint64_t)(seed & 7) << 22; // every rounding mode in turn, flush-to-zero
    state->fpsr = seed & 0x1f;                // sticky flags
}

static void wrong(const char *what, int index) {
    fprintf(stderr, "call %llu: %s %d\n", (unsigned long long)calls, what, index);
    _exit(98);
}
#define SAME(a, b, index) do { if ((a) != (b)) wrong(#a " is not " #b, index); } while (0)

/// One call, every register compared but x16 and x17, which belong to linkage. `first_lazy`: ld.so's own resolver keeps
/// the arguments and no more.
static void check(int first_lazy) {
    call_probe(&in, &out);
    calls++;
    for (int n = 0; n < 30; n++) {
        if (n == 16 || n == 17) continue;
        if (!first_lazy || n < 9 || n > 18) SAME(seen.x[n], in.x[n], n);
        // Results; what preserve_most keeps, if the callee changes it too; Swift's context registers. The rest is the
        // caller's own, and probe leaves it alone.
        int isGiven = n <= 15 || n == 18 || (n >= 20 && n <= 22);
        SAME(out.x[n], (isGiven ? give : in).x[n], n);
    }
    for (int n = 0; n < 32; n++) {
        if ((!first_lazy || n < 8) && memcmp(seen.q[n], in.q[n], 16)) wrong("vector argument", n);
        if (memcmp(out.q[n], give.q[n], 16)) wrong("vector result", n);
    }
    for (int n = 0; n < 4; n++) SAME(seen.stack[n], in.stack[n], n);
    SAME(seen.x[31], out.x[31], 31);
    SAME(seen.fpcr, in.fpcr, 0);
    SAME(seen.fpsr, in.fpsr, 0);
    SAME(out.fpcr, give.fpcr, 0);
    SAME(out.fpsr, give.fpsr, 0);
}

#define MISSING (char *)NULL
#include "part_registers_ways.h"
