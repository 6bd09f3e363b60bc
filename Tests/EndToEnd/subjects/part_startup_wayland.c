// A client of Wayland that commits a surface, as far as libwayland-client's ABI shows it: a proxy begins with the address of its interface,
// and that with the address of its name; the number of a request is the second argument (wayland-client-core.h).
#include "part_startup.h"
#include <stdint.h>

struct wl_interface {
    const char *name;
};
struct wl_proxy {
    const struct wl_interface *interface;
};
struct wl_proxy *wl_proxy_marshal_flags(struct wl_proxy *proxy, uint32_t request, const struct wl_interface *made, uint32_t version, uint32_t flags, ...);

#ifdef LIBRARY
struct wl_proxy *wl_proxy_marshal_flags(
    struct wl_proxy *proxy, uint32_t request, const struct wl_interface *made, uint32_t version, uint32_t flags, ...) {
    return request == 0 && version == 1 && flags == 0 && !made ? proxy : NULL;
}
#else
static const struct wl_interface registry = {"wl_registry"}, surface = {"wl_surface"};

int main(void) {
    enum { FRAME = 3, COMMIT = 6 };
    struct wl_proxy proxies[] = {{&registry}, {&surface}};
    wl_proxy_marshal_flags(&proxies[0], COMMIT, NULL, 1, 0); // another request there
    wl_proxy_marshal_flags(&proxies[1], FRAME, NULL, 1, 0);
    stamp("commit.before");
    wl_proxy_marshal_flags(&proxies[1], COMMIT, NULL, 1, 0);
    stamp("commit.after");
    wl_proxy_marshal_flags(&proxies[1], COMMIT, NULL, 1, 0);
    return 0;
}
#endif
