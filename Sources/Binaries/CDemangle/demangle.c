// libiberty's demanglers write what they make in parts, by a callback. They keep all that they need on the stack, so that longjmp leaves
// them at any part (libiberty cp-demangle.c, d_demangle_callback and cplus_demangle_print_callback; rust-demangle.c, which only loses
// the few bytes of an identifier in Punycode).
#include "include/demangle.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

// libiberty, demangle.h, which Debian has in a folder that other distributions have not.
enum { DMGL_PARAMS = 1, DMGL_TYPES = 16 };
typedef void (*part_callback)(const char *part, size_t count, void *opaque);
int cplus_demangle_v3_callback(const char *mangled, int options, part_callback, void *opaque);
int rust_demangle_callback(const char *mangled, int options, part_callback, void *opaque);

struct name {
    char *text;
    size_t count, most;
    jmp_buf full;
};

static void add(const char *part, size_t count, void *opaque) {
    struct name *name = opaque;
    if (count > name->most - name->count) longjmp(name->full, 1);
    memcpy(name->text + name->count, part, count);
    name->count += count;
}

static char *demangled(int (*demangle)(const char *, int, part_callback, void *), const char *mangled, int options, size_t most) {
    struct name name = {.text = malloc(most + 1), .most = most};
    if (name.text == NULL) return NULL;
    if (setjmp(name.full) != 0 || !demangle(mangled, options, add, &name)) { // `text` is as it was before setjmp
        free(name.text);
        return NULL;
    }
    name.text[name.count] = 0;
    return name.text;
}

/// Returns the length of the identifier whose number begins here, and 0 where the number may be another one: of a substitution, a
/// parameter, a literal, an array, a discriminator. What is no identifier for certain is looked into.
static size_t identifier_length(const char *at, char before, char second_before) {
    if (before != 0 && strchr("STALFabcdef.", before) != NULL) return 0;
    if (second_before == 'L' || (before == '_' && (second_before == 'E' || second_before == '_'))) return 0;
    char *end;
    unsigned long count = strtoul(at, &end, 10);
    return *end == 'E' || *end == '_' || count > strlen(end) ? 0 : (size_t)(end - at) + count;
}

/// Returns true if printing the name may take very many steps that write nothing: for each expansion of parameter packs the printer
/// looks through all of its pattern for a pack and follows each reference (d_find_pack). A pattern that is a template parameter, as
/// most are, takes one step.
static int may_search_long(const char *mangled) {
    enum { most_references = 16 };
    int references = 0, has_pattern = 0;
    const char *identifier_end = mangled;
    char before = 0, second_before = 0;
    for (const char *at = mangled; *at != 0; second_before = before, before = *at++) {
        if (*at >= '0' && *at <= '9' && !(before >= '0' && before <= '9') && at >= identifier_end)
            identifier_end = at + identifier_length(at, before, second_before);
        if (at[0] == 'S' && (at[1] == '_' || (at[1] >= '0' && at[1] <= '9') || (at[1] >= 'A' && at[1] <= 'Z'))) references++;
        int expands = (at[0] == 'D' && at[1] == 'p') || (at[0] == 's' && at[1] == 'Z');
        if (!expands && !(at[0] == 's' && at[1] == 'p' && at >= identifier_end)) continue;
        const char *pattern = at + 2;
        while (*pattern != 0 && strchr("KVROP", *pattern) != NULL) pattern++;
        if (*pattern != 'T') has_pattern = 1;
    }
    return has_pattern && references > most_references;
}

char *cxx_name(const char *mangled, size_t most) {
    return may_search_long(mangled) ? NULL : demangled(cplus_demangle_v3_callback, mangled, DMGL_PARAMS | DMGL_TYPES, most);
}

char *rust_name(const char *mangled, size_t most) { return demangled(rust_demangle_callback, mangled, 0, most); }
