// Calls its own functions and a library's when it is told to: "c" each a hundred times, "h" one for some milliseconds, "w" each in two threads until
// "n". "l" loads the library anew and calls it, "f" has a child call, too. Answers with the sum of all results, which it also knows beforehand.
#include "subject.h"
#include <dlfcn.h>
#include <time.h>

#define PLAIN __attribute__((noinline))
int part_one(int n);
int part_two(int n);

PLAIN int alpha_one(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
PLAIN int alpha_two(int n) { __asm__ volatile("" : "+r"(n)); return alpha_one(n) + 1; }
PLAIN int beta(int n) { __asm__ volatile("" : "+r"(n)); return n + 3; }
PLAIN void tick(void) { __asm__ volatile(""); }

static volatile int works, ends;
static volatile long wrong;

PLAIN static long once(void) { return alpha_one(0) + alpha_two(0) + beta(0) + part_one(0) + part_two(0); }
#define ONCE (1 + 2 + 3 + 10 + 20)

static void *work(void *unused) {
    while (!ends) {
        while (!works && !ends) sched_yield();
        while (works && !ends)
            if (once() != ONCE) wrong++;
    }
    return unused;
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char line[16];
    pthread_t threads[2];
    for (int n = 0; n < 2; n++) CHECK(!pthread_create(&threads[n], NULL, work, NULL));
    while (fgets(line, sizeof line, stdin)) {
        long sum = 0;
        if (line[0] == 'e') break;
        if (line[0] == 'w') works = 1;
        if (line[0] == 'n') works = 0;
        for (int n = 0; line[0] == 'c' && n < 100; n++) sum += once() - ONCE + 1;
        for (clock_t end = clock() + CLOCKS_PER_SEC / 100; line[0] == 'h' && clock() < end;) tick();
        if (line[0] == 'l') {
            void *library = dlopen(arguments[1], RTLD_NOW);
            CHECK(library);
            int (*outer)(int) = (int (*)(int))dlsym(library, "outer");
            CHECK(outer);
            for (int n = 0; n < 100; n++) sum += outer(n) - n;
            CHECK(!dlclose(library));
        }
        if (line[0] == 'f') {
            pid_t child = fork();
            CHECK(child >= 0);
            if (!child) {
                for (int n = 0; n < 100; n++) sum += once();
                _exit(sum == 100 * ONCE ? 0 : 1);
            }
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
        }
        printf("%ld %ld\n", sum, wrong);
    }
    ends = 1;
    for (int n = 0; n < 2; n++) CHECK(!pthread_join(threads[n], NULL));
    return count > 9 || wrong;
}
