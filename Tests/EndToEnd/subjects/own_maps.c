// Looks at its own memory at several moments: no page is writable and executable at once, the agent's neither.
// library: looked
// plugin: plugged -L{build} -llooked
// case: plain {build}/libplugged.so
#include "subject.h"
#include <dlfcn.h>
int look(const char *when);
#ifdef LIB_looked
EXPORT int look(const char *when) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], rights[8];
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        CHECK(sscanf(line, "%*s %7s", rights) == 1);
        if (rights[1] == 'w' && rights[2] == 'x') {
            fprintf(stderr, "%s: %s", when, line);
            _exit(98);
        }
    }
    return !fclose(maps);
}
#elif defined LIB_plugged
__attribute__((constructor)) static void begin(void) { look("in the constructor of a library that was opened"); }
EXPORT int plugged(void) { return look("in a library that was opened"); }
#else
static int count;
__attribute__((constructor)) static void early(void) { count += look("in a constructor of the program"); }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    count += look("in main");
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library);
    count += ((int (*)(void))dlsym(library, "plugged"))();
    CHECK(!dlclose(library));
    count += look("after it was closed");
    printf("looked %d times\n", count);
    return 0;
}
#endif
