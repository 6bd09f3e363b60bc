// Replacements for the functions by which unwinders ask the loader (unwinder_questions.c), and the kinds of unwinders.
#ifndef TRACER_UNWINDER_QUESTIONS_H
#define TRACER_UNWINDER_QUESTIONS_H
#include "frame_description.h"

/// libgcc; nongnu libunwind or LLVM's; one that a program has brought along, which shows which one it is when it asks.
enum unwinder { UNWINDER_GCC, UNWINDER_LIBUNWIND, UNWINDER_UNKNOWN };
/// Returns the function for an unwinder's slot of _dl_find_object or of dl_iterate_phdr, the original being at `target`.
uint64_t tracer_replace_find_object(uint64_t target, enum unwinder) __attribute__((visibility("hidden")));
uint64_t tracer_replace_iterate(uint64_t target, enum unwinder) __attribute__((visibility("hidden")));

int tracer_is_label(uint64_t address) __attribute__((visibility("hidden")));
/// An .eh_frame_hdr of one entry, which libunwind can use for this address in a label; null: it is none, or there is no space.
const void *tracer_describe_label(uint64_t address) __attribute__((visibility("hidden")));
/// It stands for another address from now on, which is in LABEL_RETURN.
void tracer_changed_label(uint64_t label) __attribute__((visibility("hidden")));
#endif
