// Makes a known number of calls, some on a second thread, and prints what it computed. bad_input.py and durability.py
// run it in a bad environment: half-way, MIDWAY says what happens to the files in TRACES (`unlink`, `truncate`, `replace` by a link to VICTIM, `exchange` for VICTIM).
// library: steady
// case: plain 5000
// status: 7
// modes: functions call_sites arm_large_pages
#include "subject.h"
#include <dirent.h>
long steady_step(long value);
long steady_both(long value);
#ifdef LIB_steady
EXPORT long steady_step(long value) { return value * 3 + 1; }
EXPORT long steady_both(long value) { long r = steady_step(value); OPAQUE(); return steady_step(r); }
#else
static void *work(void *count) {
    long value = 1;
    for (long i = 0; i < *(long *)count; i++) value = steady_both(value) & 0xffffff;
    return (void *)value;
}
static void midway(void) {
    const char *how = getenv("MIDWAY"), *where = getenv("TRACES");
    if (!how || !where) return;
    DIR *directory = opendir(where);
    CHECK(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", where, entry->d_name);
        if (entry->d_name[0] == '.') continue;
        if (!strcmp(how, "unlink")) CHECK(!unlink(path));
        else if (!strcmp(how, "replace")) CHECK(!unlink(path) && !symlink(getenv("VICTIM"), path));
        else if (!strcmp(how, "exchange")) CHECK(!rename(getenv("VICTIM"), path));
        else CHECK(!truncate(path, 4096));
    }
    closedir(directory);
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    long count = atol(argv[1]);
    pthread_t thread;
    void *second;
    long first = (long)work(&count);
    midway();
    CHECK(!pthread_create(&thread, NULL, work, &count));
    CHECK((long)work(&count) == first);
    CHECK(!pthread_join(thread, &second) && (long)second == first);
    fputs("a line of the program's own\n", stderr);
    printf("%ld\n", first);
    return 7;
}
#endif
