// Signs that a program is ready: a function that TRACER_READY names, a mark, sd_notify, output. And some that are none.
// compilers: gcc
// build: -O2 -I{source}/../../../CSupport/include
// library: served
// library: systemd
// case: named TRACER_READY=no_such:serve_* named
// case: filtered TRACER_READY=serve_one TRACER_INCLUDE=nothing named
// case: mark mark
// case: notify notify
// case: output output
// case: never never
#include "subject.h"
#include <tracer.h>
int serve_one(int value);
int sd_notify(int unset, const char *state);
#if defined LIB_served
EXPORT int serve_one(int value) { return value + 1; }
#elif defined LIB_systemd
EXPORT int sd_notify(int unset, const char *state) { return unset + (state != NULL); }
#else
int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    int other = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 5; i++) CHECK(write(other, "x", 1) == 1); // no terminal
    CHECK(sd_notify(0, "STATUS=beginning\nNOTREADY=1") == 1);
    if (!strcmp(what, "named")) for (int i = 0; i < 3; i++) serve_one(i);
    if (!strcmp(what, "mark")) tracer_ready();
    if (!strcmp(what, "notify")) for (int i = 0; i < 3; i++) CHECK(sd_notify(0, "STATUS=up\nREADY=1\n") == 1);
    if (!strcmp(what, "output")) for (int i = 0; i < 3; i++) CHECK(write(1, "served\n", 7) == 7);
    return 0;
}
#endif
