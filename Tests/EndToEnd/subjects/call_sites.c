// A call from each of very many call sites: every one has a label of its own in the agent. `most`: nearly as many as the
// agent has labels. `again`: more, in a library that is loaded and unloaded, at another address each time; labels of call
// sites that are gone are used again, so nothing is said.
// build: -O1 -fno-toplevel-reorder
// library: sites
// plugin: sites_plugin -L{build} -lsites
// case: most 2 0
// case: again 0 12
// tree: none the subject counts its calls
#include "subject.h"
void site_called(unsigned long *count);
#define TEN(x) x x x x x x x x x x
#define THOUSAND(x) TEN(TEN(TEN(x)))
#ifdef LIB_sites
EXPORT void site_called(unsigned long *count) { ++*count; }
#elif defined LIB_sites_plugin
EXPORT void plugin_calls(unsigned long *count) { TEN(THOUSAND(site_called(count);)) }
#else
static __attribute__((noinline)) void first(unsigned long *count) { TEN(THOUSAND(site_called(count);)) TEN(THOUSAND(site_called(count);)) }
static __attribute__((noinline)) void second(unsigned long *count) { TEN(THOUSAND(site_called(count);)) TEN(THOUSAND(site_called(count);)) }
static __attribute__((noinline)) void third(unsigned long *count) {
    TEN(THOUSAND(site_called(count);)) TEN(THOUSAND(site_called(count);)) TEN(THOUSAND(site_called(count);))
}
int main(int argc, char **argv) {
    CHECK(argc == 3);
    unsigned long count = 0;
    for (int round = 0; round < 2; round++) {
        if (atoi(argv[1]) > 0) first(&count);
        if (atoi(argv[1]) > 1) second(&count);
        if (atoi(argv[1]) > 2) third(&count);
    }
    for (int n = 0; n < atoi(argv[2]); n++) {
        void *plugin = dlopen("libsites_plugin.so", RTLD_NOW);
        CHECK(plugin);
        void (*calls)(unsigned long *) = (void (*)(unsigned long *))dlsym(plugin, "plugin_calls");
        CHECK(calls);
        calls(&count);
        void *base = *(void **)plugin; // l_addr of struct link_map, <link.h>
        CHECK(!dlclose(plugin));
        CHECK(mmap(base, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == base);
    }
    counted("site_called", count);
    printf("%lu calls\n", count);
    return 0;
}
#endif
