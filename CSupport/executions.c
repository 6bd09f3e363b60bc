// Functions that execute a program: their slots lead here. A program whose address space is limited (RLIMIT_AS) gets an environment without the
// agent, or without its second library, unless there is room for them. And where the user wants the agent in all that a run starts
// (--keep-agent), the environment that the new program gets has the agent's variables again if somebody has removed or replaced them. What else
// is there stays. Everything is made on the stack: a child of vfork may be calling, or a signal handler.
#include "layout.h"
#include <stdarg.h>
#include <stddef.h>

#if defined(__clang__)
#define SMALL __attribute__((minsize, noinline, target("general-regs-only"))) // they are called seldom, and lie in each process
#else
#define SMALL __attribute__((noinline))
#endif

#if defined(__x86_64__)
enum { SYS_prlimit64 = 302 };
#else
enum { SYS_prlimit64 = 261 };
#endif
enum { LIMIT_AS = 9 }; // asm-generic/resource.h

enum execution { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLP, EXECLE, FEXECVE, EXECVEAT, SPAWN, SPAWNP, EXECUTIONS };
static const char names[] = // in this order
    "execve\0execv\0execvp\0execvpe\0execl\0execlp\0execle\0fexecve\0execveat\0posix_spawn\0posix_spawnp\0";

typedef char *const *list;

static uint64_t real[EXECUTIONS];
static char **kept; // NAME=VALUE of the agent's settings, null after the last; the one before them is for LD_PRELOAD
static list first_environment;
static const list *environment = &first_environment; // &environ

/// Returns what follows `start` in a text; null: it begins otherwise.
SMALL static const char *after(const char *text, const char *start) {
    while (*start)
        if (*text++ != *start++) return 0;
    return text;
}
SMALL static char *append(char *end, const char *text) {
    while ((*end = *text++)) end++;
    return end;
}
SMALL static size_t size_of(const char *text) {
    size_t count = 1;
    while (*text++) count++;
    return count;
}

static const char preload[] = "LD_PRELOAD=", prefix[] = "TRACER_", exec_time[] = "TRACER_EXEC=";

/// Copies those elements of LD_PRELOAD that are the agent's (ld.so(8): separated by colons or spaces). 1: libtracer.so is among them.
SMALL static int own_elements(const char *value, char *end) {
    int has_agent = 0;
    while (*value) {
        const char *element = value, *base = value;
        while (*value && *value != ':' && *value != ' ')
            if (*value++ == '/') base = value;
        if (after(base, "libtracer")) {
            if (end && has_agent) *end++ = ':';
            has_agent |= after(base, "libtracer.so") != 0;
            while (end && element < value) *end++ = *element++;
        }
        while (*value == ':' || *value == ' ') value++;
    }
    if (end) *end = 0;
    return has_agent;
}

/// What of the agent's there is room for.
enum room { FOR_NOTHING, FOR_THE_AGENT, FOR_ALL };
/// A sixteenth of the limit: the agent takes 4 MB and some for its threads, the second library 34.
SMALL static enum room room(void) {
    uint64_t limit[2] = {UINT64_MAX, 0}; // struct rlimit64
    tracer_system_call(SYS_prlimit64, 0, LIMIT_AS, 0, (long)limit, 0, 0);
    return limit[0] >= 640 << 20 ? FOR_ALL : limit[0] >= 96 << 20 ? FOR_THE_AGENT : FOR_NOTHING;
}

/// Appends those elements of LD_PRELOAD that there is room for.
SMALL static char *append_elements(const char *value, const char *begin, char *end, enum room room) {
    while (*value) {
        const char *element = value, *base = value;
        while (*value && *value != ':' && *value != ' ')
            if (*value++ == '/') base = value;
        int is_too_large = room < FOR_ALL && after(base, "libtracer") && (room == FOR_NOTHING || after(base, "libtracer-labels."));
        if (!is_too_large) {
            if (end != begin) *end++ = ':';
            while (element < value) *end++ = *element++;
        }
        while (*value == ':' || *value == ' ') value++;
    }
    *end = 0;
    return end;
}

/// The value of LD_PRELOAD: the loader goes by the last one of several. Null: there is none.
SMALL static const char *preload_of(list given) {
    const char *found = 0, *value;
    for (; given && *given; given++)
        if ((value = after(*given, preload))) found = value;
    return found;
}

SMALL static int is_same_name(const char *one, const char *other) {
    while (*one == *other && *one && *one != '=') one++, other++;
    return *one == '=' && *other == '=';
}

/// Bytes that `whole` needs, at most.
SMALL static size_t space_for(list given) {
    const char *value = preload_of(given);
    size_t bytes = sizeof preload + (kept ? size_of(kept[0]) : 0) + (value ? size_of(value) : 0) + 3 * sizeof *given;
    for (list entry = given; entry && *entry; entry++) bytes += sizeof *entry;
    for (list entry = kept; entry && *entry; entry++) bytes += sizeof *entry;
    return bytes;
}

/// `given` with what it is to have of the agent's, in `space`.
SMALL static list whole(list given, void *space) {
    char **entries = space;
    size_t count = 0;
    enum room place = room();
    const char *value = preload_of(given);
    int is_added = kept && !(value && own_elements(value, 0)), is_same = place == FOR_ALL && !is_added;
    for (list entry = given; entry && *entry; entry++)
        if (is_same || !after(*entry, preload)) entries[count++] = *entry;
    size_t own = count;
    for (list variable = kept ? kept + 1 : 0; variable && *variable; variable++) {
        size_t n = 0;
        while (n < own && !is_same_name(entries[n], *variable)) n++;
        if (n == own) entries[count++] = *variable;
    }
    if (!is_same) {
        char *text = (char *)(entries + count + 2), *begin = append(text, preload), *end = begin;
        if (is_added) end = append_elements(kept[0] + sizeof preload - 1, begin, end, place);
        if (value) end = append_elements(value, begin, end, place);
        if (end != begin) entries[count++] = text;
    }
    entries[count] = 0;
    return entries;
}

// On the caller's stack.
#define WHOLE(given) (kept || room() < FOR_ALL ? whole(given, __builtin_alloca(space_for(given))) : (given))

SMALL static int with(enum execution function, const char *path, list arguments, list given) {
    return ((int (*)(const char *, list, list))real[function])(path, arguments, WHOLE(given));
}
static int execute_e(const char *path, list arguments, list given) { return with(EXECVE, path, arguments, given); }
static int execute_pe(const char *path, list arguments, list given) { return with(EXECVPE, path, arguments, given); }
// As libc has them: with the variable `environ` (glibc posix/execv.c, posix/execvp.c).
static int execute(const char *path, list arguments) { return with(EXECVE, path, arguments, *environment); }
static int execute_p(const char *path, list arguments) { return with(EXECVPE, path, arguments, *environment); }
SMALL static int execute_f(int descriptor, list arguments, list given) {
    return ((int (*)(int, list, list))real[FEXECVE])(descriptor, arguments, WHOLE(given));
}
SMALL static int execute_a(int directory, const char *path, list arguments, list given, int flags) {
    return ((int (*)(int, const char *, list, list, int))real[EXECVEAT])(directory, path, arguments, WHOLE(given), flags);
}

/// The arguments of a variadic function as an array.
SMALL static int with_list(enum execution function, const char *path, const char *first, va_list *rest, int has_environment) {
    va_list again;
    va_copy(again, *rest);
    size_t count = 1;
    while (va_arg(again, char *)) count++;
    va_end(again);
    char *arguments[count + 1];
    arguments[0] = (char *)first;
    for (size_t n = 1; n <= count; n++) arguments[n] = va_arg(*rest, char *);
    return with(function, path, arguments, has_environment ? va_arg(*rest, list) : *environment);
}
#define FORWARD(function, has_environment) \
    va_list rest; \
    va_start(rest, first); \
    int result = with_list(function, path, first, &rest, has_environment); \
    va_end(rest); \
    return result
SMALL static int execute_l(const char *path, const char *first, ...) { FORWARD(EXECVE, 0); }
SMALL static int execute_lp(const char *path, const char *first, ...) { FORWARD(EXECVPE, 0); }
SMALL static int execute_le(const char *path, const char *first, ...) { FORWARD(EXECVE, 1); }

typedef int (*spawn)(int *, const char *, const void *, const void *, list, list);
SMALL static int spawn_path(int *pid, const char *path, const void *actions, const void *attributes, list arguments, list given) {
    return ((spawn)real[SPAWN])(pid, path, actions, attributes, arguments, WHOLE(given));
}
SMALL static int spawn_p(int *pid, const char *path, const void *actions, const void *attributes, list arguments, list given) {
    return ((spawn)real[SPAWNP])(pid, path, actions, attributes, arguments, WHOLE(given));
}

/// What this process's environment has of the agent's: into pages of our own, since a program may write over its environment.
SMALL int tracer_keep_environment(list given, void *(*pages)(long)) {
    first_environment = given;
    const char *value = pages ? preload_of(given) : 0;
    if (!value || !own_elements(value, 0)) return 0;
    size_t bytes = sizeof preload + size_of(value), count = 2;
    for (list entry = given; *entry; entry++) bytes += size_of(*entry), count++;
    char **entries = pages((long)(count * sizeof *entries + bytes));
    if (!entries) return 0;
    char *text = (char *)(entries + count);
    entries[0] = text;
    own_elements(value, append(text, preload));
    text += size_of(text);
    size_t used = 1;
    for (list entry = given; *entry; entry++) {
        if (!after(*entry, prefix) || after(*entry, exec_time)) continue; // the moment of an exec is that of one image alone
        entries[used++] = text;
        text = append(text, *entry) + 1;
    }
    kept = entries;
    return 1;
}

void tracer_set_environment(uint64_t address) { environment = (const list *)address; }

SMALL int tracer_execution(const char *name) {
    const char *known = names;
    for (int n = 0; *known; n++, known += size_of(known)) {
        const char *rest = after(name, known);
        if (rest && !*rest) return n;
    }
    return -1;
}

SMALL uint64_t tracer_replace_execution(int function, uint64_t target, uint64_t execve, uint64_t execvpe) {
    // A second definition keeps its own way: there is one original.
    if (real[function] && real[function] != target) return target;
    real[EXECVE] = execve;
    real[EXECVPE] = execvpe;
    real[function] = target;
    switch ((enum execution)function) { // not a table, which the loader would relocate in each process
    case EXECVE: return (uint64_t)execute_e;
    case EXECV: return (uint64_t)execute;
    case EXECVP: return (uint64_t)execute_p;
    case EXECVPE: return (uint64_t)execute_pe;
    case EXECL: return (uint64_t)execute_l;
    case EXECLP: return (uint64_t)execute_lp;
    case EXECLE: return (uint64_t)execute_le;
    case FEXECVE: return (uint64_t)execute_f;
    case EXECVEAT: return (uint64_t)execute_a;
    case SPAWN: return (uint64_t)spawn_path;
    case SPAWNP: return (uint64_t)spawn_p;
    default: return target;
    }
}
