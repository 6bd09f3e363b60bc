// A program with its own malloc, one whose library has it, and ones linked to jemalloc and tcmalloc.
// library: arena
// variant: in_program -DIN_PROGRAM
// variant: in_library -DIN_LIBRARY
// variant: jemalloc exe:-l:libjemalloc.so.2
// variant: tcmalloc exe:-l:libtcmalloc_minimal.so.4
// link: -Wl,--no-as-needed
// modes: functions counts call_sites
#include "subject.h"
char *arena_copy(const char *text);
void arena_free(char *text);
#if defined IN_PROGRAM && !defined LIB_arena || defined IN_LIBRARY && defined LIB_arena
static char heap[64 << 20] __attribute__((aligned(16)));
static _Atomic size_t next;
EXPORT void *malloc(size_t size) {
    size = (size + 31) & ~15ul;
    size_t at = next;
    while (!__atomic_compare_exchange_n((size_t *)&next, &at, at + size, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
    if (at + size > sizeof heap) { errno = ENOMEM; return NULL; }
    *(size_t *)(heap + at) = size - 16;
    return heap + at + 16;
}
EXPORT void free(void *pointer) { (void)pointer; }
EXPORT void *calloc(size_t n, size_t size) {
    char *p = malloc(n * size);
    for (size_t i = 0; p && i < n * size; i++) ((volatile char *)p)[i] = 0;
    return p;
}
EXPORT void *realloc(void *old, size_t size) {
    char *p = malloc(size);
    if (old && p) {
        size_t had = ((size_t *)old)[-2];
        for (size_t i = 0; i < had && i < size; i++) ((volatile char *)p)[i] = ((char *)old)[i];
    }
    return p;
}
#endif
#ifdef LIB_arena
EXPORT char *arena_copy(const char *text) { return strdup(text); }
EXPORT void arena_free(char *text) { free(text); }
#else
static void *body(void *unused) {
    for (int i = 0; i < 500; i++) {
        char *copy = arena_copy("a text to copy");
        CHECK(!strcmp(copy, "a text to copy"));
        char *large = realloc(calloc(1, 100), 2000);
        CHECK(large && large[0] == 0 && large[99] == 0);
        free(large);
        arena_free(copy);
    }
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, body, NULL));
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
    body(NULL);
    puts("allocated");
    return 0;
}
#endif
