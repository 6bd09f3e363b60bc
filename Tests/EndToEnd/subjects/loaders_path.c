// dlopen of a bare name by a library without a run path: the loader searches the DT_RPATH of the module that loaded it, and of the
// module that loaded that one (glibc elf/dl-load.c, _dl_map_object).
// plugin: hidden
// plugin: caller -ldl
// plugin: between -Wl,--disable-new-dtags -Wl,-rpath,{build}/hidden:{build} -Wl,--no-as-needed -L{build} -lcaller
// after: mkdir -p {build}/hidden
// after: mv {build}/libhidden.so {build}/hidden/libhidden.so
// link: -ldl
// env: BUILD={build}
// tree: none what is compared is the output
#include "subject.h"
int opens(void);
int asks(void);
#if defined(LIB_hidden)
EXPORT int hidden(void) { return 7; }
#elif defined(LIB_caller)
EXPORT int opens(void) {
    void *library = dlopen("libhidden.so", RTLD_NOW);
    if (!library) return 0;
    return ((int (*)(void))dlsym(library, "hidden"))();
}
#elif defined(LIB_between)
EXPORT int asks(void) { return opens(); }
#else
int main(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libbetween.so", getenv("BUILD"));
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library);
    printf("%d\n", ((int (*)(void))dlsym(library, "asks"))());
    return 0;
}
#endif
