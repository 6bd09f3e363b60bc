// A program with the rows that node's start has: constructors of a source file, a local static that takes most of the
// start, and calls enough to be shown. What docs/guide/startup.md shows of node is looked for in its table where node is not there.
#include <cstdlib>
#include <cstring>

static size_t work(int rounds) {
    size_t sum = 0;
    char text[64] = "a text whose length is asked for";
    for (int round = 0; round < rounds; ++round) {
        void *volatile block = malloc(64);
        sum += strlen(text + round % 8);
        free(block);
    }
    return sum;
}

struct Store {
    size_t size;
    explicit Store(int rounds) : size(work(rounds)) {}
};

static Store early(20000); // takes as long as to be a row of its own

static Store &store() {
    static Store made(400000);
    return made;
}

int main() { return store().size == early.size; }
