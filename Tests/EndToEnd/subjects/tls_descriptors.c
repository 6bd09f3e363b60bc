// Thread-local variables by TLS descriptors (whose relocations sit among the PLT's) and by __tls_get_addr.
// library: local
// compilers: gcc clang
// variant: descriptors -mtls-dialect=gnu2
// variant: descriptors_now -mtls-dialect=gnu2 -Wl,-z,now
// variant: traditional -mtls-dialect=gnu
// modes: functions arm
#include "subject.h"
long local_add(long value);
long local_leaf(long value);
#ifdef LIB_local
__thread long total = 5;
static __thread char large[5000];
EXPORT long local_leaf(long value) { large[value % 5000]++; return value; }
EXPORT long local_add(long value) {
    double kept = (double)value * 1.5; // lives in a register across the descriptor's call
    total += local_leaf(value);
    OPAQUE();
    return total + (long)(kept * 0);
}
#else
static void *body(void *unused) {
    long sum = 5;
    for (long i = 0; i < 100; i++) CHECK(local_add(i) == (sum += i));
    return unused;
}
int main(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, body, NULL) && !pthread_join(thread, NULL));
    }
    body(NULL);
    puts("local");
    return 0;
}
#endif
