// exit() by a thread that has the smallest stack there is, while others live: what the agent does at the end needs no more of it.
// link: -lpthread
// tree: none what is compared is the output
#include "subject.h"
#include <limits.h>
#include <semaphore.h>
enum { STACK = 16384, GUARD = 65536 };
static sem_t begun;
static void *lives(void *unused) {
    sem_post(&begun);
    for (;;) pause();
    return unused;
}
static void *ends(void *unused) {
    puts("over");
    exit(0);
    return unused;
}
int main(void) {
    pthread_t other, last;
    pthread_attr_t attributes;
    // Nothing below the stack can be written to.
    char *mapping = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapping != MAP_FAILED && !mprotect(mapping + GUARD, STACK, PROT_READ | PROT_WRITE));
    CHECK(!sem_init(&begun, 0, 0) && !pthread_create(&other, NULL, lives, NULL) && !sem_wait(&begun));
    CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, mapping + GUARD, STACK));
    CHECK(!pthread_create(&last, &attributes, ends, NULL) && !pthread_join(last, NULL));
    return 1;
}
