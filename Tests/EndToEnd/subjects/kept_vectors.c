// gcc knows which registers a local function leaves alone, and keeps vectors and predicates of SVE in them over its call (-fipa-ra).
// compilers: gcc
// build: -O2 -march=armv8-a+sve
// architecture: aarch64 it is about SVE
// modes: arm_functions
// tree: none its calls are its own
#include "subject.h"
#include <arm_sve.h>
enum { MOST = 256 };
static volatile int ticks;
static NOINLINE void tick(int n) { ticks = n; }
static double in[MOST], out[MOST];

static void once(int turn) {
    svbool_t all = svptrue_b64(), odd = svcmpne_n_s64(all, svand_n_s64_x(all, svindex_s64(0, 1), 1), 0);
    svfloat64_t a = svadd_n_f64_m(all, svld1(all, in), turn), b = svadd_n_f64_m(all, a, 1000);
    tick(turn);
    svst1(all, out, svsel(odd, a, svmul_n_f64_m(all, b, 2)));
    for (unsigned long n = 0; n < svcntd(); n++) CHECK(out[n] == (n & 1 ? in[n] + turn : (in[n] + turn + 1000) * 2));
}

int main(void) {
    for (int n = 0; n < MOST; n++) in[n] = n;
    for (int turn = 0; turn < 20; turn++) once(turn);
    puts("all right");
    return 0;
}
