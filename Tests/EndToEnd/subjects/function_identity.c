// The address of a function is the same in the program, in its library and in another one, and from dlsym; a library that
// compares a pointer with its own function (as libcrypto does with CRYPTO_malloc) sees it equal; copy relocations;
// canonical PLT entries of a program that is not position-independent.
// compilers: gcc clang
// library: owner
// library: other -L{build} -lowner
// link: -ldl
// variant: pie
// variant: pie_now -Wl,-z,now
// variant: nopie exe:-no-pie exe:-fno-pie
// variant: nopie_now exe:-no-pie exe:-fno-pie -Wl,-z,now
// variant: noplt@gcc -fno-plt
// variant: lld exe:-no-pie exe:-fno-pie -fuse-ld=lld
// variant: mold -fuse-ld=mold
// modes: arm
#include "subject.h"
typedef long (*function)(long);
long owned(long value);
function owner_gets(void);
int owner_is(function pointer);
long owner_calls(function pointer, long value);
function other_gets(void);
long plain(long value);
extern int shared_variable;
extern function shared_table[3];
int owner_variable(void);
#ifdef LIB_owner
int shared_variable = 41;
function shared_table[3] = {owned, plain, owned};
EXPORT long owned(long value) { return value + 100; }
EXPORT long plain(long value) { return value + 200; }
EXPORT function owner_gets(void) { return owned; }
EXPORT int owner_is(function pointer) { return pointer == owned; }
EXPORT long owner_calls(function pointer, long value) {
    // The classic: a fast path for the default implementation; a pointer that is not equal to itself recurses for ever.
    if (pointer != owned) return pointer(value) + 1;
    return value + 300;
}
EXPORT int owner_variable(void) { return shared_variable; }
#elif defined LIB_other
EXPORT function other_gets(void) { return owned; }
#else
static function volatile taken = owned;
int main(void) {
    function by_address = taken;
    CHECK(by_address == owner_gets());
    CHECK(by_address == other_gets());
    CHECK(by_address == (function)dlsym(RTLD_DEFAULT, "owned"));
    CHECK(owner_is(by_address) && owner_is(other_gets()));
    CHECK(owner_calls(by_address, 1) == 301 && owner_calls(plain, 1) == 202);
    CHECK(shared_table[0] == by_address && shared_table[2] == by_address && shared_table[1] == plain);
    for (int i = 0; i < 3; i++) CHECK(plain(i) == i + 200);
    CHECK(by_address(1) == 101); // through a pointer
    shared_variable++; // a copy relocation in a program that is not position-independent
    CHECK(owner_variable() == 42);
    FILE *out = stdout; // another
    fputs("the same everywhere\n", out);
    return 0;
}
#endif
