// Memory that the program has at address 0 stays, while threads end and others begin, and while a large library whose scan the
// agent has cached is opened again: the agent unmaps only its own mappings. If the system allows none there, the program says so and ends.
// link: -lpthread -ldl
// plugin: large -fno-plt -Wl,--build-id
// env: BUILD={build}
// tree: none the thread calls by whether there is such memory
#include "subject.h"
#ifdef LIB_large
__asm__(".text\n.space 1100000\n"); // more text than the agent searches each time
EXPORT int large(void) { return getpid() > 0; }
#else
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
    char path[4096];
    snprintf(path, sizeof path, "%s/liblarge.so", getenv("BUILD"));
    for (int n = 0; n < 3; n++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library && ((int (*)(void))dlsym(library, "large"))() && !dlclose(library));
    }
    printf("it holds %c\n", *zero);
    return 0;
}
#endif
