// Finds the instruction of a function that an instruction of its stub, a relocated one, or its landing stands for. Unwinders ask, also in signal
// handlers: no lock, no allocation, no system call.
#include "layout.h"
#include "plan_layout.h"

_Static_assert(RELOCATED_MOST_INSTRUCTIONS == PLAN_MOST_INSTRUCTIONS, "instructions");

static struct relocated_area *areas;

void tracer_add_relocated(struct relocated_area *area) {
    area->next = areas;
    __atomic_store_n(&areas, area, __ATOMIC_RELEASE);
}

static struct relocated_area *area_of(uint64_t address) {
    for (struct relocated_area *area = __atomic_load_n(&areas, __ATOMIC_ACQUIRE); area; area = area->next)
        if (address - area->code < area->code_end - area->code) return area;
    return 0;
}
int tracer_is_relocated(uint64_t address) { return area_of(address) != 0; }

/// Returns the landing at the address, and its area; null: none is there.
static const struct relocated_landing *landing(uint64_t address, struct relocated_area **found) {
    for (struct relocated_area *area = __atomic_load_n(&areas, __ATOMIC_ACQUIRE); area; area = area->next) {
        uint64_t low = 0, high = area->landing_count, offset = address - area->base;
        if (high == 0 || offset > area->landings[high - 1].address) continue; // nearly all: unwinders ask for each frame
        while (low < high) {
            uint64_t middle = (low + high) / 2;
            if (area->landings[middle].address < offset) low = middle + 1;
            else high = middle;
        }
        *found = area;
        if (area->landings[low].address == offset) return area->landings + low;
    }
    return 0;
}
int tracer_is_landing(uint64_t address) {
    struct relocated_area *area;
    return landing(address, &area) != 0;
}

/// How many functions' relocated instructions begin at the address or before.
static uint64_t begun(const struct relocated_area *area, uint64_t address) {
    uint64_t low = 0, high = area->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if ((uint64_t)area->functions[middle].target <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}
static uint64_t stub(const struct relocated_area *area, uint64_t n) {
    return (uint64_t)area->functions[n].target - tracer_patch_stub_bytes((int)(area->sites[n] & SITE_SIGNED));
}

static const struct relocated_shape *shape(const struct relocated_area *area, uint64_t function) {
    uint64_t low = 0, high = area->shape_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (area->shapes[middle].function < function) low = middle + 1;
        else high = middle;
    }
    return low < area->shape_count && area->shapes[low].function == function ? area->shapes + low : 0;
}

struct original tracer_original(uint64_t address) {
    const struct original none = {0};
    struct relocated_area *area = area_of(address);
    if (!area) {
        const struct relocated_landing *known = landing(address, &area);
        return known ? (struct original){.area = area, .address = area->base + area->sites[known->function]} : none;
    }
    if (area->count == 0) return none;
    uint64_t n = begun(area, address);
    int is_stub = n < area->count && address >= stub(area, n);
    if (!is_stub && n == 0) return none;
    if (!is_stub) n--;
    struct original found = {.area = area, .address = area->base + (area->sites[n] & ~(uint32_t)SITE_SIGNED)};
    int is_signed = (area->sites[n] & SITE_SIGNED) != 0;
    if (is_stub) {
        uint64_t offset = address - stub(area, n);
#if defined(__x86_64__)
        found.holds_scratch = offset > 0; // push %r11
        found.pushed = found.holds_scratch ? 8 : 0;
#else
        if (is_signed && offset > 0) found.address -= 4; // autiasp has been: as if paciasp had not yet
#endif
        return found;
    }
    uint64_t offset = address - (uint64_t)area->functions[n].target;
    if (is_signed) { // paciasp is after the stub
        if (offset < 4) {
            found.address -= 4;
            return found;
        }
        offset -= 4;
    }
    const struct relocated_shape *exception = shape(area, n);
    if (!exception) {
        found.address += offset;
        return found;
    }
    int index = 0;
    while (index + 1 < exception->instruction_count && exception->instructions[index + 1].relocated <= offset) index++;
    found.address += exception->instructions[index].original;
    if (exception->linked && offset >= exception->linked) {
#if defined(__x86_64__)
        found.pushed = 8;
#else
        return none; // x30 is the callee's already, and a function that begins with a call has its own nowhere else
#endif
    }
    return found;
}
