// Globals of C++ in three files, init_priority, a global that is first used by another.
// compilers: gcc clang
// sources: part_globals_a.cpp part_globals_b.cpp
#include "subject.h"
extern int a_value();
extern int b_value();
struct Global {
    int value;
    Global(int given) : value(given + a_value()) {}
    ~Global() { OPAQUE(); }
};
static Global later __attribute__((init_priority(302))) (2);
static Global earlier __attribute__((init_priority(301))) (1);
static Global ordinary(3);
static pthread_once_t flag = PTHREAD_ONCE_INIT;
static int rounds;
extern "C" void runs_once() { rounds++; }
static int lazily() {
    static Global inside(b_value());
    return inside.value;
}
int main() {
    CHECK(later.value == 2 + a_value() && earlier.value == 1 + a_value() && ordinary.value == 3 + a_value());
    for (int i = 0; i < 5; i++) CHECK(lazily() == b_value() + a_value());
    for (int i = 0; i < 5; i++) CHECK(pthread_once(&flag, runs_once) == 0);
    CHECK(rounds == 1);
    return 0;
}
