// An LD_AUDIT library watches the same process; it sees every binding, by objects and by PLT calls.
// library: watched
// plugin: audit
// env: LD_AUDIT={build}/libaudit.so
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// modes: arm
#include "subject.h"
#include <link.h>
int watched(int value);
#ifdef LIB_watched
EXPORT int watched(int value) { return value + 1; }
#elif defined LIB_audit
EXPORT unsigned la_version(unsigned version) { return version; }
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie) {
    (void)lmid, (void)cookie;
    if (strstr(map->l_name, "libwatched")) write(1, "audit: opened libwatched\n", 25);
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
#else
int main(void) {
    for (int i = 0; i < 10; i++) CHECK(watched(i) == i + 1);
    puts("audited");
    return 0;
}
#endif
