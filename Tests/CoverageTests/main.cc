#include "shapes.hh"
#include <cstdio>

static int helper(int value) { return value - 1; }

struct Counter {
    Counter() { made++; }
    ~Counter() { made--; }
    static int made;
};
int Counter::made = 0;
static Counter global;

int shapes::tried(int value) { return helper(value); }

int main(int argc, char **argv) {
    Counter local;
    printf("%g %d\n", shapes::sum(argc, argv), Counter::made);
    return 0;
}
