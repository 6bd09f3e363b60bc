// Counts in shared memory what it has begun and done, until it is killed. durability.py kills it at random moments.
// library: durable
// tree: none it runs only under durability.py; alone it makes 1,000 calls and ends
// modes: arm
#include "subject.h"
long durable_step(long value);
#ifdef LIB_durable
EXPORT long durable_step(long value) { return value + 1; }
#else
struct progress { volatile uint64_t begun, done, pad[6]; };
static struct progress *progress;
static uint64_t limit = 1000;
static void *body(void *index) {
    struct progress *mine = &progress[(long)index];
    for (uint64_t i = 0; i < limit; i++) {
        mine->begun = i + 1;
        CHECK(durable_step((long)i) == (long)i + 1);
        mine->done = i + 1;
    }
    return NULL;
}
int main(int argc, char **argv) {
    int threads = 1, flags = MAP_SHARED | MAP_ANONYMOUS, file = -1;
    if (argc == 3) { // file of one page, threads
        file = open(argv[1], O_RDWR);
        CHECK(file >= 0);
        threads = atoi(argv[2]);
        limit = UINT64_MAX;
        flags = MAP_SHARED;
    }
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, file, 0);
    CHECK(progress != MAP_FAILED && threads <= 32);
    for (long i = 1; i < threads; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, body, (void *)i));
    }
    body(0);
    puts("done");
    return 0;
}
#endif
