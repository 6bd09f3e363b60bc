// Calls when it is told to: "c" a hundred times, "w" for as long as nothing more is said, from a second thread. Answers with how often it
// has called.
#include "subject.h"

// A shorter call may begin and end at the same reading of a clock that goes on in steps of 10 ns (AMD's in a virtual machine).
#define DIGITS "00000000000000000000000000000000000000000000000000000000000000000000000000000000000012"

static volatile int works, ends;
static volatile unsigned long worked;

static void *work(void *unused) {
    char text[16];
    while (!ends) {
        while (!works && !ends) sched_yield();
        while (works) {
            snprintf(text, sizeof text, "%lu", worked);
            worked++;
        }
    }
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char line[16], text[16];
    unsigned long calls = 0;
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, work, NULL));
    while (fgets(line, sizeof line, stdin)) {
        works = line[0] == 'w';
        if (line[0] == 'e') break;
        for (int n = 0; line[0] == 'c' && n < 100; n++, calls++) strtol(DIGITS, NULL, 10);
        if (line[0] == 'f') {
            pid_t child = fork();
            CHECK(child >= 0);
            if (!child) {
                for (int n = 0; n < 100; n++) strtol(DIGITS, NULL, 10);
                _exit(0);
            }
            CHECK(waitpid(child, NULL, 0) == child);
        }
        snprintf(text, sizeof text, "%lu", calls);
        puts(text);
    }
    ends = 1;
    works = 0;
    CHECK(!pthread_join(thread, NULL));
    counted("worked", worked);
    return 0;
}
