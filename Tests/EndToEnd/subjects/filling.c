// Makes calls, in several threads and processes, until `tracer record` has taken over full chunks; then more. Says how many it made.
// library: filling
// tree: none it runs only under collected.py; alone it makes 20,000 calls and ends
// modes: arm
#include "subject.h"
long filled(long value);
#ifdef LIB_filling
EXPORT long filled(long value) { return value + 1; }
#else
enum { COLLECTED_OFFSET = 176, SPARES_OFFSET = 1024, SPARES = 128, FREE = 1 }; // trace_layout.h
struct spare { uint64_t offset, destination; uint32_t state, byte_count; };
enum { ROUND = 20000, ROUNDS = 8 };

/// The first page of the process's own trace.
static const volatile char *own_trace(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.2.trace", folder, (int)getpid()); // the program that a forked child has executed
    int file = open(path, O_RDONLY);
    if (file < 0) {
        snprintf(path, sizeof path, "%s/%d.trace", folder, (int)getpid());
        file = open(path, O_RDONLY);
    }
    CHECK(file >= 0);
    const volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    CHECK(page != MAP_FAILED);
    close(file);
    return page;
}

static int is_one_free(const volatile char *page) {
    const volatile struct spare *spares = (const volatile struct spare *)(page + SPARES_OFFSET);
    for (int n = 0; n < SPARES; n++)
        if (spares[n].state == FREE) return 1;
    return 0;
}

static const char *folder;
static long calls;
static void round_of_calls(void) {
    for (long i = 0; i < ROUND; i++) CHECK(filled(i) == i + 1);
    __atomic_fetch_add(&calls, ROUND, __ATOMIC_RELAXED);
}
/// The chunk that was taken over is used again: two are filled.
static void *until_one_was_taken_over(void *unused) {
    const volatile char *page = own_trace(folder);
    while (!*(const volatile uint64_t *)(page + COLLECTED_OFFSET)) sched_yield();
    for (int n = 0; n < ROUNDS; n++) round_of_calls();
    while (!is_one_free(page)) sched_yield();
    for (int n = 0; n < 4; n++) round_of_calls();
    return unused;
}

/// filling [FOLDER THREADS PROCESSES MORE]: as many further threads and processes, and rounds after a byte of standard input.
int main(int count, char **words) {
    if (count != 5) { // alone
        round_of_calls();
        puts("done");
        return 0;
    }
    folder = words[1];
    int threads = atoi(words[2]), processes = atoi(words[3]), more = atoi(words[4]);
    pid_t children[8];
    for (int n = 0; n < processes; n++) {
        children[n] = fork();
        CHECK(children[n] >= 0);
        if (children[n]) continue;
        until_one_was_taken_over(NULL);
        printf("%d %ld\n", (int)getpid(), calls);
        exit(0);
    }
    pthread_t thread[8];
    for (int n = 0; n < threads; n++) CHECK(!pthread_create(&thread[n], NULL, until_one_was_taken_over, NULL));
    until_one_was_taken_over(NULL);
    for (int n = 0; n < threads; n++) CHECK(!pthread_join(thread[n], NULL));
    for (int n = 0; n < processes; n++) CHECK(waitpid(children[n], NULL, 0) == children[n]);
    if (more) {
        puts("ready");
        fflush(stdout);
        CHECK(getchar() != EOF);
        while (more--) round_of_calls();
    }
    printf("%d %ld\n", (int)getpid(), calls);
    return 0;
}
#endif
