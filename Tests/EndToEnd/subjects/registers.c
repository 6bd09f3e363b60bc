// The register contract: everything that the psABI, Swift's convention or __regcall lets carry an argument or a result
// arrives unchanged, in full width, whichever path of the agent the call takes.
// sources: part_registers_call.S
// library: probe=part_registers_probe.S
// library: descend=part_descend.c
// link: -Wl,-z,now
// variant: sse -DLEVEL=0
// variant: avx -DLEVEL=1
// variant: avx512 -DLEVEL=2
// variant: avx512_lazy -DLEVEL=2 exe:-Wl,-z,lazy
// variant: avx512_noplt -DLEVEL=2 -DNO_PLT
// case: fast_path fast 1000
// case: first_call_of_thread thread 200
// case: chunk_full fast 150000
// case: deep deep 20000
// case: other_stack_open stacks 100000
// case: other_stack_open_limited TRACER_MAXDEPTH=3 stacks 2000
// case: beyond_depth_limit TRACER_MAXDEPTH=2 limited 10
// case: below_time_filter TRACER_MINMS=100 filtered 2000
// case: excluded TRACER_EXCLUDE=probe excluded 100
// case: recording_off TRACER_START=off excluded 100
// architecture: x86_64 its registers
// tree: none the subject counts its calls
// modes: call_sites arm
#include "subject.h"
#include "part_other_stack.h"

struct state {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags;
    uint8_t vectors[32][64];
    uint64_t masks[8];
    uint32_t mxcsr;
    uint16_t fcw, gap;
    uint16_t environment[14]; // fnstenv: [4] is the tag word
    uint8_t pad[28];
    uint8_t st[2][16];
    uint64_t stack[4];
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct state, st) == 2304 && offsetof(struct state, stack) == 2336, "part_registers.h");

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
    // Every rounding mode in turn, flush-to-zero and denormals-are-zero, sticky flags set, all exceptions masked.
    state->mxcsr = 0x1f80 | (seed & 3) << 13 | (seed & 4 ? 0x8040 : 0) | (seed & 0x3f);
    state->fcw = 0x007f | (uint16_t)((seed & 1 ? 0 : 2) << 8) | (uint16_t)((seed >> 1 & 3) << 10);
    long double values[2] = {seed * 1.25L + 0.125L, -(long double)seed / 3};
    memcpy(state->st[0], &values[0], 10);
    memcpy(state->st[1], &values[1], 10);
}

static void wrong(const char *what, int index) {
    fprintf(stderr, "call %llu: %s %d\n", (unsigned long long)calls, what, index);
    _exit(98);
}
#define SAME(a, b) do { if ((a) != (b)) wrong(#a " is not " #b, 0); } while (0)

/// One call, every register compared. `first_lazy`: ld.so's own resolver may spend r10 and r11.
static void check(int first_lazy) {
    int vectors = LEVEL == 2 ? 32 : 16;
    size_t width = LEVEL == 2 ? 64 : LEVEL == 1 ? 32 : 16;
    call_probe(&in, &out);
    calls++;
    SAME(seen.rax, in.rax); SAME(seen.rcx, in.rcx); SAME(seen.rdx, in.rdx); SAME(seen.rsi, in.rsi);
    SAME(seen.rdi, in.rdi); SAME(seen.rbp, in.rbp); SAME(seen.r8, in.r8); SAME(seen.r9, in.r9);
    if (!first_lazy) SAME(seen.r10, in.r10);
    SAME(seen.r12, in.r12); SAME(seen.r13, in.r13); SAME(seen.r14, in.r14); SAME(seen.r15, in.r15);
    SAME(seen.stack[0], in.stack[0]); SAME(seen.stack[1], in.stack[1]); SAME(seen.stack[2], in.stack[2]);
    if ((seen.stack[3] + 8) & 15) wrong("stack not aligned at entry", 0);
    if (seen.stack[3] != out.stack[3] - 8) wrong("stack pointer at entry", (int)(out.stack[3] - seen.stack[3]));
    if (seen.environment[4] != 0xffff) wrong("x87 registers in use at entry", seen.environment[4]);
    if ((seen.flags | out.flags) & 0x400) wrong("direction flag", 0);
    SAME(seen.mxcsr, in.mxcsr); SAME(seen.fcw, in.fcw);
    SAME(out.rax, give.rax); SAME(out.rcx, give.rcx); SAME(out.rdx, give.rdx); SAME(out.r8, give.r8);
    SAME(out.r12, give.r12); SAME(out.r14, give.r14);
    SAME(out.rbx, in.rbx); SAME(out.rbp, in.rbp); SAME(out.r13, in.r13); SAME(out.r15, in.r15);
    // The caller's registers that probe leaves alone, as Swift's preserve_most functions do; rdi had an address.
    SAME(out.rsi, in.rsi); SAME(out.rdi, (uint64_t)&give); SAME(out.r9, in.r9);
    if (!first_lazy) SAME(out.r10, in.r10);
    SAME(out.mxcsr, give.mxcsr); SAME(out.fcw, give.fcw);
    if (memcmp(out.st[0], give.st[0], 10)) wrong("st0", 0);
    if (memcmp(out.st[1], give.st[1], 10)) wrong("st1", 0);
    if (out.environment[4] != 0xffff) wrong("x87 registers in use after return", out.environment[4]);
    for (int i = 0; i < vectors; i++) {
        if (memcmp(seen.vectors[i], in.vectors[i], width)) wrong("vector argument", i);
        if (memcmp(out.vectors[i], give.vectors[i], width)) wrong("vector result", i);
    }
    for (int i = 0; LEVEL == 2 && i < 8; i++) {
        if (seen.masks[i] != in.masks[i]) wrong("mask argument", i);
        if (out.masks[i] != give.masks[i]) wrong("mask result", i);
    }
}

#define MISSING (LEVEL == 2 && !__builtin_cpu_supports("avx512bw") ? "no AVX-512 here" : LEVEL == 1 && !__builtin_cpu_supports("avx") ? "no AVX here" : NULL)
#include "part_registers_ways.h"
