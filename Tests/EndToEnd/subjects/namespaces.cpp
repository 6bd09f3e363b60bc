// A namespace of its own (dlmopen): what is listed there is what is there, and exceptions find their way.
// plugin: thrower
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// link: -ldl
// case: listed listed libthrower.so
// case: caught caught libthrower.so
// case: nested nested libthrower.so
// env: BUILD={build}
// tree: none what is compared is the output
// modes: functions counts
#include "subject.h"
#include <link.h>
#ifdef LIB_thrower
#include <stdexcept>
#include <string>
static int print(dl_phdr_info *info, size_t, void *text) {
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libtracer", 9)) *(std::string *)text += std::string(name) + " ";
    return 0;
}
EXPORT void listed(void) {
    std::string text;
    dl_iterate_phdr(print, &text);
    dprintf(1, "%s\n", text.c_str()); // this namespace has a stdout of its own
}
NOINLINE static int outer(int (*call)(int)) {
    try {
        return call(1);
    } catch (const std::exception &error) {
        return (int)strlen(error.what());
    }
}
EXPORT int throws(int value) {
    if (value) throw std::runtime_error("seven.."); // out of a call through a slot
    return 0;
}
EXPORT int passes(int value) {
    int result = throws(value);
    OPAQUE();
    return result + 1;
}
EXPORT void caught(void) { dprintf(1, "%d\n", outer(throws)); }
EXPORT void nested(void) {
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        try {
            sum += passes(i & 1);
        } catch (const std::runtime_error &) {
            sum += 100;
        }
    }
    dprintf(1, "%d\n", sum);
}
#else
int main(int count, char **arguments) {
    CHECK(count == 3);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("BUILD"), arguments[2]);
    void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    auto body = (void (*)(void))dlsym(library, arguments[1]);
    CHECK(body);
    body();
    fflush(nullptr);
    puts("done");
    return 0;
}
#endif
