// Items of another file: one, and hundreds of stage 9 (two thousand with -DTHOUSANDS: compilers take long), each
// after the one whose number is its own without the last digit.
#include "part_startup_items.h"

TRACER_STARTUP_ITEM(1, other_file) { say("other_file"); }

static int ran, ran_in_front;
#define ROOT(a) \
    static int has_run_##a; \
    TRACER_STARTUP_ITEM(9, n##a) { has_run_##a = ++ran; }
#define ITEM(above, digit) \
    static int has_run_##above##digit; \
    TRACER_STARTUP_ITEM(9, n##above##digit, n##above) { \
        ran_in_front += has_run_##above > 0; \
        has_run_##above##digit = ++ran; \
    }
#define EACH_DIGIT(with, above) \
    with(above, 0) with(above, 1) with(above, 2) with(above, 3) with(above, 4) with(above, 5) with(above, 6) with(above, 7) \
    with(above, 8) with(above, 9) with(above, a) with(above, b) with(above, c) with(above, d) with(above, e) with(above, f)
#define EACH_DIGIT_AGAIN(with, above) \
    with(above, 0) with(above, 1) with(above, 2) with(above, 3) with(above, 4) with(above, 5) with(above, 6) with(above, 7) \
    with(above, 8) with(above, 9) with(above, a) with(above, b) with(above, c) with(above, d) with(above, e) with(above, f)
#define DEEPER(above, digit) ITEM(above, digit) EACH_DIGIT_AGAIN(ITEM, above##digit)
#define TREE(digit) ROOT(digit) EACH_DIGIT(DEEPER, digit)
#ifdef THOUSANDS
enum { ROOTS = 8 };
TREE(0) TREE(1) TREE(2) TREE(3) TREE(4) TREE(5) TREE(6) TREE(7)
#else
enum { ROOTS = 1 };
TREE(0)
#endif

void check_many(void) {
    tracer_run_startup(9);
    CHECK(ran == ROOTS * (1 + 16 + 256));
    CHECK(ran_in_front == ROOTS * (16 + 256));
}
