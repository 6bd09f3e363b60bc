// compilers: gcc clang
// variant: O0 -O0
// variant: O2 -O2
// variant: Os -Os
// modes: functions arm_functions
// tree: none its calls are its own
//
// Functions that look at the address they return to, by whatever instruction the compiler has for it: they see the program's.
#include "subject.h"
#define WORD ((uintptr_t)__builtin_return_address(0))
typedef struct { uintptr_t a, b; } Pair;
extern char etext[], __executable_start[]; // ld's and lld's, where the program's code ends and its file begins
static volatile int noted;
NOINLINE void note(void) { noted++; }
NOINLINE int compares(uintptr_t expected) { return WORD == expected; }
NOINLINE int is_below(uintptr_t limit) { return WORD < limit; }
NOINLINE uintptr_t loads(void) { return WORD; }
NOINLINE uintptr_t subtracts(uintptr_t base) { return base - WORD; }
NOINLINE uintptr_t adds(uintptr_t base) { return base + WORD; }
NOINLINE uintptr_t mixes(uintptr_t key) { return (key ^ WORD) * 3; }
NOINLINE void stores(uintptr_t *target) { *target = WORD; }
NOINLINE void stores_between_calls(uintptr_t *target) { note(); *target = WORD; note(); }
NOINLINE int compares_between_calls(uintptr_t limit) { note(); int is = WORD < limit; note(); return is; }
NOINLINE Pair returns_two(uintptr_t a) { return (Pair){a, WORD}; }
NOINLINE void stores_two(Pair *target, uintptr_t a) { *target = (Pair){a, WORD}; }
NOINLINE int chooses(int which, uintptr_t limit) { return which ? WORD < limit : 7; }
NOINLINE uint32_t takes_half(void) { return (uint32_t)WORD; }
NOINLINE int has_a_large_frame(uintptr_t limit) { volatile char buffer[100000]; buffer[5] = 1; note(); return buffer[5] && WORD < limit; }

static int is_own(uintptr_t address) { return address > (uintptr_t)__executable_start && address < (uintptr_t)etext; }

int main(void) {
    uintptr_t end = (uintptr_t)etext, start = (uintptr_t)__executable_start, word;
    Pair pair;
    for (int n = 0; n < 3; n++) {
        CHECK(!compares(end));
        CHECK(is_below(end) && !is_below(start));
        CHECK(is_own(loads()));
        CHECK(is_own(-subtracts(0)));
        CHECK(is_own(adds(0)));
        CHECK(is_own((mixes(0) * (uintptr_t)0xaaaaaaaaaaaaaaab))); // the inverse of 3
        stores(&word);
        CHECK(is_own(word));
        stores_between_calls(&word);
        CHECK(is_own(word));
        CHECK(compares_between_calls(end) && !compares_between_calls(start));
        pair = returns_two(5);
        CHECK(pair.a == 5 && is_own(pair.b));
        stores_two(&pair, 6);
        CHECK(pair.a == 6 && is_own(pair.b));
        CHECK(chooses(1, end) && !chooses(1, start) && chooses(0, 0) == 7);
        CHECK((uint32_t)(takes_half() - start) < (uint32_t)(end - start));
        CHECK(has_a_large_frame(end) && !has_a_large_frame(start));
    }
    puts("all right");
    return 0;
}
