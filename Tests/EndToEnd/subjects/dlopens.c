// dlopen and its relatives: what they find depends on who asks, and every module is traced from its constructors on.
// library: finder -ldl -L{build} -Wl,-rpath,$ORIGIN/inner
// plugin: plug=part_plug.c
// plugin: deep=part_plug.c -DDEEP -Wl,-Bsymbolic-functions
// plugin: nested=part_plug.c -DNESTED -ldl
// plugin: waiting=part_plug.c -DWAITING
// plugin: chain=part_plug.c -DCHAIN
// after: mkdir -p inner && gcc -shared -fPIC -O2 -I{source} -DINNER {source}/part_plug.c -o inner/libonly_inner.so
// link: -ldl
// env: BUILD={build}
// case: runpath runpath
// case: origin origin
// case: local local
// case: deepbind deepbind
// case: next next
// case: dlmopen dlmopen
// case: reload reload
// case: constructor constructor
// case: two_threads two_threads
// case: waiting waiting
// case: lazy lazy
// case: nodelete nodelete
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// modes: functions counts instrumented call_sites arm
// modes: arm_old for lazy.*
// modes: arm_large_pages for now.reload now.lazy
#include "subject.h"
int find_inner(void);
void *find_open(const char *name, int flags);
int find_value(void *library, const char *name, int value);
int find_next(int value);
int resolved(int value);
#ifdef LIB_finder
EXPORT int find_value(void *library, const char *name, int value) {
    int (*function)(int) = (int (*)(int))dlsym(library, name);
    CHECK(function);
    return function(value);
}
EXPORT void *find_open(const char *name, int flags) { void *result = dlopen(name, flags); OPAQUE(); return result; }
EXPORT int find_inner(void) { // only this library's RUNPATH has it
    void *library = dlopen("libonly_inner.so", RTLD_NOW);
    CHECK(library);
    int result = find_value(library, "plug_call", 20);
    dlclose(library);
    return result;
}
EXPORT int resolved(int value) { return value + 5000; } // RTLD_NEXT finds it after the program's own
EXPORT int find_next(int value) { return resolved(value); }
#else
EXPORT int resolved(int value) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "resolved");
    CHECK(next && next != resolved);
    return next(value) + 1;
}
static const char *folder(const char *name) {
    static _Thread_local char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("BUILD"), name);
    return path;
}
static void *opened(const char *name, int flags) {
    void *library = find_open(folder(name), flags);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    return library;
}
static pthread_barrier_t barrier;
static void *opener(void *name) {
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&barrier);
        void *library = opened(name, RTLD_NOW);
        CHECK(find_value(library, "plug_call", i) > i);
        CHECK(!dlclose(library));
    }
    return NULL;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *mode = argv[1];
    if (!strcmp(mode, "runpath")) {
        CHECK(find_inner() == 7021); // value + 1 by plug_leaf, + 7000
        CHECK(dlopen("libonly_inner.so", RTLD_NOW) == NULL); // the program has no such RUNPATH
        puts("found by the library alone");
    } else if (!strcmp(mode, "origin")) {
        void *library = dlopen("$ORIGIN/libplug.so", RTLD_NOW);
        CHECK(library && find_value(library, "plug_call", 1) == 1002);
    } else if (!strcmp(mode, "local")) {
        void *library = opened("libplug.so", RTLD_NOW | RTLD_LOCAL);
        CHECK(!dlsym(RTLD_DEFAULT, "plug_call") && find_value(library, "plug_call", 1) == 1002);
        CHECK(opened("libplug.so", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) == library);
        CHECK(dlsym(RTLD_DEFAULT, "plug_call"));
        CHECK(find_open(folder("libnowhere.so"), RTLD_NOW) == NULL);
        CHECK(strstr(dlerror(), "libnowhere.so"));
    } else if (!strcmp(mode, "deepbind")) {
        void *library = opened("libdeep.so", RTLD_NOW | RTLD_DEEPBIND);
        CHECK(find_value(library, "plug_resolved", 1) == 9001); // its own `resolved`, not the program's
        CHECK(find_next(1) == 5002); // the program's, and after it the library's
    } else if (!strcmp(mode, "next")) {
        for (int i = 0; i < 10; i++) CHECK(find_next(i) == i + 5001);
    } else if (!strcmp(mode, "dlmopen")) {
        void *here = opened("libplug.so", RTLD_NOW);
        void *library = dlmopen(LM_ID_NEWLM, folder("libplug.so"), RTLD_NOW);
        CHECK(library && library != here);
        int (*there)(int) = (int (*)(int))dlsym(library, "plug_call");
        for (int i = 0; i < 10; i++) CHECK(there(i) == i + 1001);
        CHECK(find_value(here, "plug_call", 5) == 1006);
        CHECK(!dlclose(library));
    } else if (!strcmp(mode, "reload")) {
        for (int i = 0; i < 1000; i++) {
            void *library = opened("libplug.so", i & 1 ? RTLD_NOW : RTLD_LAZY);
            CHECK(find_value(library, "plug_call", i) == i + 1001);
            CHECK(!dlclose(library));
        }
    } else if (!strcmp(mode, "constructor")) {
        void *library = opened("libnested.so", RTLD_NOW); // its constructor opens another, whose constructor calls back
        CHECK(find_value(library, "plug_nested", 1) == 1002);
        CHECK(!dlclose(library));
    } else if (!strcmp(mode, "two_threads")) {
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_t threads[2];
        CHECK(!pthread_create(&threads[0], NULL, opener, "libplug.so") && !pthread_create(&threads[1], NULL, opener, "libdeep.so"));
        CHECK(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
    } else if (!strcmp(mode, "waiting")) {
        void *library = opened("libwaiting.so", RTLD_NOW);
        CHECK(find_value(library, "plug_waited", 0) == 55);
    } else if (!strcmp(mode, "lazy")) {
        void *library = opened("libplug.so", RTLD_LAZY);
        for (int i = 0; i < 100; i++) CHECK(find_value(library, "plug_call", i) == i + 1001);
    } else if (!strcmp(mode, "nodelete")) {
        void *library = opened("libplug.so", RTLD_NOW | RTLD_NODELETE);
        int (*call)(int) = (int (*)(int))dlsym(library, "plug_call");
        CHECK(!dlclose(library) && call(1) == 1002);
    }
    printf("%s over\n", mode);
    return 0;
}
#endif
