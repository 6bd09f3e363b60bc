// clang-format off: this is assembly
// libtracer-labels.so: space for labels (docs/internals/trampoline.md), and nothing else. Unwinders need a loaded module that describes
// the return addresses on a stack. libtracer.so itself has space for 65,534 labels, since more would count for every process that locks
// its memory.
// Functions that are recorded by an entry patch are called from more call sites than that: `tracer record --functions` preloads this
// library, too.
#include "../../../CSupport/frames.h"
#if defined(__x86_64__)
#include "../../../CSupport/x86_64/labels.h"
#elif defined(__aarch64__)
#include "../../../CSupport/aarch64/labels.h"
#endif

    .section .reserved, "a", %nobits
    .p2align 16                         // the largest page
.Lreserved:
    .rept LABEL_LIBRARY_BLOCKS
    .cfi_startproc
    .cfi_signal_frame                   // reserved.h says why
    CFI_OF_LABELS
    .zero LABEL_BLOCK_CODE
    .cfi_endproc
    .zero LABEL_BLOCK_CODE
    .endr

    // Among code, though it is none: where a library is mapped, whoever samples the process learns from mappings of code.
    .text
    .p2align 3
    .globl tracer_more_labels
    .type tracer_more_labels, %object
tracer_more_labels:                     // struct label_library
    .long LABEL_LIBRARY_VERSION, LABEL_LIBRARY_BLOCKS
    .quad .Lreserved - tracer_more_labels
    .size tracer_more_labels, . - tracer_more_labels
    .section .note.GNU-stack, "", %progbits
