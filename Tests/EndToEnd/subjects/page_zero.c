// Memory that the program has at address 0 stays, while threads end and others begin: what the agent never had it does not
// give back. Where the system allows nothing there, the program says so and ends.
// link: -lpthread
// tree: none the thread calls by whether there is such memory
#include "subject.h"
#include <pthread.h>
#include <sys/mman.h>
static void *thread(void *unused) {
    CHECK(getpid() > 0);
    return unused;
}
int main(void) {
    char *zero = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zero == MAP_FAILED) {
        puts("nothing may be mapped there");
        return 0;
    }
    __asm__ volatile("" : "+r"(zero)); // no null pointer to the compiler
    *zero = 'z';
    for (int n = 0; n < 4; n++) {
        pthread_t id;
        CHECK(!pthread_create(&id, NULL, thread, NULL) && !pthread_join(id, NULL));
    }
    printf("it holds %c\n", *zero);
    return 0;
}
