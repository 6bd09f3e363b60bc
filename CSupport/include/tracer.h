// The public C API of libtracer.so. A program that includes this needs no library: the functions are weak, and absent
// unless the agent is preloaded. Each call goes through a macro of the same name, which costs one load and a branch then.
// All may be called from any thread and from a signal handler. (A non-PIE executable must compile these calls with -fPIC
// or -fPIE: otherwise the linker takes an absent function for absent for ever.)
#ifndef TRACER_H
#define TRACER_H

#ifdef __cplusplus
extern "C" {
#endif

/// Records from here on, in all threads. With TRACER_START=off nothing is recorded before the first call of it.
void tracer_start(void) __attribute__((weak));

/// Records no new calls from here on. Calls that are open now are still closed when they return.
void tracer_stop(void) __attribute__((weak));

/// Makes the file hold everything recorded so far, and say until when it does. Useful before something that may end the machine: a
/// process that is killed loses nothing anyway.
void tracer_flush(void) __attribute__((weak));

/// A point in time on this thread. The name may be any text that ends in NUL (of more than 1,023 bytes the rest is cut); it
/// is copied. The mark "ready" says that the program is ready: `tracer startup` measures up to it.
void tracer_mark(const char *name) __attribute__((weak));

/// A stretch of this thread's time, shown like a call. The innermost open span of the name ends; an end without a
/// beginning is passed over. A span should end in the function call in which it began.
void tracer_begin(const char *name) __attribute__((weak));
void tracer_end(const char *name) __attribute__((weak));

/// Wants a snapshot of the trace, as it is now: of the last seconds, where `tracer record --keep` records the program. The name says why, and
/// stands in the trace as a mark.
void tracer_snapshot(const char *name) __attribute__((weak));

/// What tracer_set changes.
enum tracer_setting {
    TRACER_MINIMUM = 1, // calls that take less are not kept: nanoseconds; 0: all are kept
    TRACER_DEPTH = 2 // levels of calls that are recorded: 1 or more
};
/// Changes a setting from here on, in all threads; each takes note of a depth within a millisecond of calls. Returns 1, or 0 if it cannot be changed: the
/// program is not recorded, or TRACER_MINMS or TRACER_MAXDEPTH, respectively, did not say anything of it at the start (0.000001 and
/// 1000000 are as good as nothing).
int tracer_set(enum tracer_setting setting, unsigned long long value) __attribute__((weak));

#define tracer_start() (tracer_start ? tracer_start() : (void)0)
#define tracer_stop() (tracer_stop ? tracer_stop() : (void)0)
#define tracer_flush() (tracer_flush ? tracer_flush() : (void)0)
#define tracer_mark(name) (tracer_mark ? tracer_mark(name) : (void)0)
#define tracer_begin(name) (tracer_begin ? tracer_begin(name) : (void)0)
#define tracer_end(name) (tracer_end ? tracer_end(name) : (void)0)
#define tracer_snapshot(name) (tracer_snapshot ? tracer_snapshot(name) : (void)0)
#define tracer_set(setting, value) (tracer_set ? tracer_set(setting, value) : 0)
#define tracer_ready() tracer_mark("ready")

// Start-up items: work of the start that is registered where it is defined, and run when the program says so. The runner is
// one C file, tracer_startup.c, which belongs to the program: it needs neither the agent nor the tool.
// docs/guide/startup-items.md shows how constructors become items.

/// The runner's view of an item. Made by the macros below; a program may make one at run time, and keep it for ever.
struct tracer_startup_item {
    void (*run)(void *context);
    void *context;
    /// "database, config, log": its name, then those of the items that it runs after.
    const char *names;
    /// With `line`, where it stands in the order of declaration.
    const char *file;
    unsigned line;
    int stage;
    /// TRACER_STARTUP_POOL, or 0.
    unsigned flags;
    /// These are the runner's.
    unsigned state;
    struct tracer_startup_item *next;
};
#define TRACER_STARTUP_POOL 1u

/// Runs the items of the stage, each after those that it names, else in the order in which they are declared, and returns when they
/// have ended. An item runs once. What this call means beside other calls of it is said in tracer_startup.c.
void tracer_run_startup(int stage);
/// Registers an item at run time, for languages that have no constant data in sections of their own.
void tracer_add_startup_item(struct tracer_startup_item *item);

/// Defines an item: TRACER_STARTUP_ITEM(1, database, config, log) { open_database(); }
/// "database" of stage 1 is run on the thread that calls tracer_run_startup(1), after "config" and "log".
#define TRACER_STARTUP_ITEM(stage, ...) TRACER_STARTUP_NAMED(stage, 0, #__VA_ARGS__, __VA_ARGS__, )
/// The same, on a thread of a pool: for work that may happen beside that of other items.
#define TRACER_STARTUP_POOL_ITEM(stage, ...) TRACER_STARTUP_NAMED(stage, TRACER_STARTUP_POOL, #__VA_ARGS__, __VA_ARGS__, )

// Items lie in a section of their module. A note says where that is, so that the runner finds the items of every loaded module
// without a constructor and without an exported symbol. Aligned by hand: a compiler that aligns large data better leaves gaps.
#define TRACER_STARTUP_NAMED(stage, flags, names, name, ...) \
    static void tracer_startup_##name(void *) TRACER_STARTUP_THROWS_NOTHING; \
    TRACER_STARTUP_SECTION static struct tracer_startup_item tracer_startup_item_##name = { \
        tracer_startup_##name, 0, names, __FILE__, __LINE__, stage, flags, 0, 0}; \
    TRACER_STARTUP_NOTE \
    static void tracer_startup_##name(void *tracer_context __attribute__((unused))) TRACER_STARTUP_THROWS_NOTHING

#ifdef __has_attribute
#if __has_attribute(retain)
#define TRACER_STARTUP_RETAIN , retain // --gc-sections takes no use of a section's bounds for a use of the section
#endif
#endif
#ifndef TRACER_STARTUP_RETAIN
#define TRACER_STARTUP_RETAIN
#endif
#define TRACER_STARTUP_SECTION __attribute__((section("tracer_items"), used, aligned(8) TRACER_STARTUP_RETAIN))
#define TRACER_STARTUP_NOTE \
    __asm__(".pushsection .note.tracer, \"a\", %note\n" \
            ".balign 4\n" \
            ".long 7, 8, 2\n" \
            ".asciz \"tracer\"\n" \
            ".balign 4\n" \
            ".hidden __start_tracer_items\n" \
            ".hidden __stop_tracer_items\n" \
            ".long __start_tracer_items - .\n" \
            ".long __stop_tracer_items - .\n" \
            ".popsection");
#if defined __cplusplus && __cplusplus >= 201103L
#define TRACER_STARTUP_THROWS_NOTHING noexcept
#else
#define TRACER_STARTUP_THROWS_NOTHING
#endif

#ifdef __cplusplus
}
#endif
#endif
