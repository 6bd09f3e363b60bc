// clang-format off: this is assembly
// The end of both trampoline.S: the reserved area in the library's own image, where unwinders look for what they find on a stack. Labels,
// what belongs to them at a fixed distance, and the first stubs and hooks, which a stub reaches within 1 MB. It is in no
// writable segment, so that nobody looks for pointers in it; the agent makes pages of it writable or executable when it
// needs them. Untouched pages cost nothing.
    .section .reserved, "a", %nobits
    // More than the largest page: the linker begins a segment, and does not add this to the writable one, where a page is
    // skipped before it.
    .p2align PAGE_SHIFT + 4
    .globl tracer_labels, tracer_reserved_stubs, tracer_reserved_mappings
    .hidden tracer_labels, tracer_reserved_stubs, tracer_reserved_mappings
    .type tracer_labels, %object
tracer_labels:
    // A frame of size zero. Its CFA is its caller's, so the unwinder must learn by other means that they differ: a
    // *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the call;
    // hence the expression yields the return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    .cfi_startproc
    .cfi_signal_frame
    CFI_OF_LABELS
    .zero LABEL_COUNT * LABEL_BYTES
    .cfi_endproc
    .size tracer_labels, LABEL_COUNT * LABEL_BYTES
    .zero LABEL_COUNT * LABEL_BYTES     // LABEL_RETURN and LABEL_NEXT of each
    .type tracer_reserved_stubs, %object
tracer_reserved_stubs:
    // A return address where a call leaves it, nothing else.
    .cfi_startproc
    .zero STUB_BLOCK_BYTES
    .cfi_endproc
    .size tracer_reserved_stubs, STUB_BLOCK_BYTES
    .type tracer_reserved_mappings, %object
tracer_reserved_mappings:
    .zero MAPPING_BYTES
    .size tracer_reserved_mappings, MAPPING_BYTES
    .if LABEL_RETURN != LABEL_COUNT * LABEL_BYTES
    .error "the expressions of CFI_RETURN_… and CFI_OF_LABELS hold LABEL_RETURN"
    .endif

    .bss
    .p2align PAGE_SHIFT
    .globl tracer_process
    .hidden tracer_process
    .type tracer_process, %object
tracer_process:
    .zero 1 << PAGE_SHIFT
    .size tracer_process, 1 << PAGE_SHIFT
