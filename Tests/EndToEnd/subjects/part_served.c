// Requests, a few of them slow, as a server has them: the test says how many, and the program by its own clock how many took longer than the
// limit. Slow ones sleep for longer than that. With OWN the request is the program's own function, else a library's.
#include "subject.h"
#include "tracer.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

#if defined(PART) || defined(OWN)
double within; // how long the last request took, without its call
EXPORT size_t item(const char *text) {
    OPAQUE();
    return text[0] != 0;
}
EXPORT size_t request(int items, int sleeps_ms) {
    double begun = now();
    size_t sum = 0;
    for (int n = 0; n < items; n++) sum += item(n & 1 ? "one" : "other");
    if (sleeps_ms) {
        struct timespec pause = {0, sleeps_ms * 1000000L};
        nanosleep(&pause, NULL);
    }
    for (int n = 0; n < items; n++) sum += item("last");
    within = now() - begun;
    return sum;
}
#else
extern double within;
size_t item(const char *text);
size_t request(int items, int sleeps_ms);
#endif

#ifndef PART
static uint32_t state = 12345;
static uint32_t random_number(void) { return state = state * 1664525u + 1013904223u; } // Numerical Recipes, 7.1

static void *busy(void *unused) {
    for (;;) item("busy");
    return unused;
}

/// Not by stdio, which holds its lock while it reads: a thread that does is not led away.
static int read_line(char *line, size_t bytes) {
    size_t n = 0;
    while (n + 1 < bytes && read(0, line + n, 1) == 1 && line[n] != '\n') n++;
    line[n] = 0;
    return n > 0;
}

int main(int count, char **words) {
    double limit = count > 1 ? atof(words[1]) : 20;
    for (int n = 0; n < (count > 2 ? atoi(words[2]) : 0); n++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, busy, NULL));
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    char line[64];
    while (read_line(line, sizeof line)) {
        int surely = 0, perhaps = 0, requests = atoi(line + 1);
        if (line[0] == 'e') break;
        if (line[0] == 's') tracer_snapshot("asked for");
        for (int n = 0; line[0] != 's' && n < requests; n++) {
            double begun = now();
            request(20, random_number() >> 16 < 65536 / 40 ? (int)(limit * 1.5) : 0);
            double around = now() - begun;
            surely += within > limit;
            perhaps += around > limit;
        }
        if (line[0] == 'k') kill(getpid(), SIGKILL);
        printf("%d %d\n", surely, perhaps);
    }
    return 0;
}
#endif
