// Looks at its own mappings at several moments: no page is writable and executable at once, not even the agent's, and the
// program and its libraries have as much read-only memory as without the agent.
// library: looked
// plugin: plugged -L{build} -llooked
// link: -ldl
// case: plain {build}/libplugged.so
// modes: functions counts call_sites
#include "subject.h"
int look(const char *when);
#ifdef LIB_looked
EXPORT int look(const char *when) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], rights[8];
    long program[8] = {0}, looked[8] = {0}, plugged[8] = {0};
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long low, high;
        CHECK(sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3);
        long *bytes = strstr(line, "liblooked.so") ? looked : strstr(line, "libplugged.so") ? plugged : strstr(line, "/own_maps\n") ? program : 0;
        if (bytes) bytes[(rights[0] == 'r') | (rights[1] == 'w') << 1 | (rights[2] == 'x') << 2] += high - low;
        if (rights[1] == 'w' && rights[2] == 'x') {
            fprintf(stderr, "%s: %s", when, line);
            _exit(98);
        }
    }
    printf("%s:", when);
    for (int n = 0; n < 8; n++) printf(" %ld+%ld+%ld", program[n], looked[n], plugged[n]);
    putchar('\n');
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
