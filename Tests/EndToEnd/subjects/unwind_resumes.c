// Goes on in a frame further up by nongnu libunwind: as if the calls between had returned there (unw_resume), at another address of that
// function (unw_set_reg), and after a look at each frame in turn (_Unwind_ForcedUnwind). All of them are recorded calls.
// build: -O1 -fexceptions -fno-omit-frame-pointer -fno-optimize-sibling-calls
// library: passed
// link: -Wl,-z,now -Wl,--no-as-needed -lunwind -lunwind-x86_64
// needs: file:/usr/include/x86_64-linux-gnu/libunwind.h
// architecture: x86_64 nongnu libunwind is not there for the other
// case: returns returns
// case: elsewhere elsewhere
// case: any any
// case: forced forced
// case: from_handler from_handler
// tree: none calls are left by jumps
// modes: functions counts call_sites
#include "subject.h"
#include <unwind.h>
int passed_outer(int (*leave)(void));
int passed_inner(int (*leave)(void));
#ifdef LIB_passed
EXPORT int passed_inner(int (*leave)(void)) { int r = leave(); OPAQUE(); return r + 1; }
EXPORT int passed_outer(int (*leave)(void)) { int r = passed_inner(leave); OPAQUE(); return r + 1; }
#else
#define UNW_LOCAL_ONLY
#include <libunwind.h>
extern int _Ux86_64_init_local(unw_cursor_t *, unw_context_t *), _Ux86_64_step(unw_cursor_t *), _Ux86_64_resume(unw_cursor_t *);
extern int _Ux86_64_get_reg(unw_cursor_t *, int, unw_word_t *), _Ux86_64_set_reg(unw_cursor_t *, int, unw_word_t);
static const char *how;
static int rounds;
static uintptr_t landing; // in catcher()
static jmp_buf stopped;

static int is_in(uintptr_t pc, uintptr_t function) { return pc - function < 256; }
static NOINLINE int catcher(int (*leave)(void));

/// Up to catcher(), which it goes on in.
static void resume(int is_any) {
    unw_context_t context;
    unw_cursor_t cursor;
    unw_word_t pc = 0;
    CHECK(!unw_getcontext(&context));
    CHECK(!(is_any ? _Ux86_64_init_local(&cursor, &context) : unw_init_local(&cursor, &context)));
    while (!is_in(pc, (uintptr_t)catcher)) {
        CHECK((is_any ? _Ux86_64_step(&cursor) : unw_step(&cursor)) > 0);
        CHECK(!(is_any ? _Ux86_64_get_reg(&cursor, UNW_REG_IP, &pc) : unw_get_reg(&cursor, UNW_REG_IP, &pc)));
    }
    if (!strcmp(how, "elsewhere") || is_any) CHECK(!(is_any ? _Ux86_64_set_reg(&cursor, UNW_REG_IP, landing) : unw_set_reg(&cursor, UNW_REG_IP, landing)));
    CHECK(!(is_any ? _Ux86_64_set_reg(&cursor, UNW_X86_64_RAX, 70) : unw_set_reg(&cursor, UNW_X86_64_RAX, 70)));
    if (is_any) _Ux86_64_resume(&cursor);
    else unw_resume(&cursor);
    CHECK(!"not reached");
}
static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class, struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context, void *unused) {
    (void)version, (void)class, (void)exception, (void)unused;
    CHECK(!(actions & _UA_END_OF_STACK));
    if (!is_in(_Unwind_GetIP(context), (uintptr_t)catcher)) return _URC_NO_REASON;
    int before = 1;
    CHECK(is_in(_Unwind_GetIPInfo(context, &before), (uintptr_t)catcher) && !before);
    longjmp(stopped, 1);
}
static void on_signal(int unused) { (void)unused; resume(0); }
static NOINLINE int leave(void) {
    static struct _Unwind_Exception exception;
    if (!strcmp(how, "forced")) _Unwind_ForcedUnwind(&exception, stop, NULL);
    if (!strcmp(how, "from_handler")) raise(SIGUSR1);
    resume(!strcmp(how, "any"));
    return 0;
}
static NOINLINE int catcher(int (*leave)(void)) {
    int left = 0;
    void *volatile known = &&elsewhere;
    landing = (uintptr_t)known;
    if (!leave) return 0;
    if (setjmp(stopped)) return 3000;
    left = passed_outer(leave);
    OPAQUE();
    if (known) return left + 1000;
    goto *known;
elsewhere:
    OPAQUE();
    return 2000;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    how = argv[1];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    catcher(NULL);
    for (rounds = 0; rounds < 50; rounds++) printf("%d\n", catcher(leave));
    // The frames that were left are gone: calls and returns are as before.
    printf("%d\n", passed_outer(getpagesize));
    return 0;
}
#endif
