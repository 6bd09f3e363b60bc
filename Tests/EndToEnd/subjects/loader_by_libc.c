// Libraries that libc loads by itself: NSS for users, hosts and services, gconv for iconv, libgcc_s for backtrace and
// pthread_cancel; locales.
// library: asker
// case: nss nss
// case: iconv iconv
// case: libgcc libgcc
#include "subject.h"
#include <execinfo.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
void ask(int what);
void asked(void);
#ifdef LIB_asker
EXPORT void asked(void) { OPAQUE(); }
static void *sleeper(void *unused) { pause(); return unused; }
EXPORT void ask(int what) {
    if (what == 'n') {
        struct passwd *user = getpwnam("root");
        CHECK(user && user->pw_uid == 0);
        CHECK(getpwnam("nobody-of-this-name") == NULL);
        struct addrinfo *list, hints = {.ai_family = AF_INET};
        CHECK(!getaddrinfo("127.0.0.1", "80", &hints, &list));
        freeaddrinfo(list);
        struct hostent *host = gethostbyname("localhost");
        printf("localhost: %s\n", host ? host->h_name : "not found"); // a bare system may have no nsswitch.conf
        getservbyname("http", "tcp");
    } else if (what == 'i') {
        iconv_t converter = iconv_open("UTF-16LE", "ISO-8859-15");
        CHECK(converter != (iconv_t)-1);
        char in[] = "gr\xfc\xdf", out[64], *from = in, *to = out;
        size_t in_left = 4, out_left = sizeof out;
        CHECK(iconv(converter, &from, &in_left, &to, &out_left) == 0 && out_left == sizeof out - 8);
        iconv_close(converter);
    } else {
        pthread_t thread;
        void *result, *frames[8];
        CHECK(!pthread_create(&thread, NULL, sleeper, NULL) && !pthread_cancel(thread) && !pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED && backtrace(frames, 8) > 1);
    }
    asked();
}
#else
int main(int argc, char **argv) {
    CHECK(argc == 2);
    setlocale(LC_ALL, "C.UTF-8");
    for (int i = 0; i < 3; i++) ask(argv[1][0]);
    puts("answered");
    return 0;
}
#endif
