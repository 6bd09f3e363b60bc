// clang-format off: this is assembly
// The beginning of both trampoline.S: lists of the sites that the agent patches before the first call (Processor/Trampolines.swift).
// END_OF_PATCH_SITES stands after the last one.
    .section .tls_sites, "a"
    .p2align 2
    .globl tracer_tls_sites_begin, tracer_tls_sites_end
    .hidden tracer_tls_sites_begin, tracer_tls_sites_end
tracer_tls_sites_begin:
    .section .clock_sites, "a"
    .p2align 2
    .globl tracer_clock_sites_begin, tracer_clock_sites_end
    .hidden tracer_clock_sites_begin, tracer_clock_sites_end
tracer_clock_sites_begin:
    .section .site_words, "a"
    .p2align 2
    .globl tracer_site_words_begin, tracer_site_words_end
    .hidden tracer_site_words_begin, tracer_site_words_end
tracer_site_words_begin:
    .section .data.rel.ro, "aw"
    .p2align 3
    .globl tracer_trampoline_sets
    .hidden tracer_trampoline_sets
tracer_trampoline_sets:

// The thread's state is at a distance from the thread pointer that is fixed once the process runs and unknown when
// the library is linked. The agent writes it into these instructions: one load less in each.
.macro TLS instruction:vararg
    \instruction
.Lsite\@:
    .pushsection .tls_sites
    .long .Lsite\@ - 4 - .
    .popsection
.endm

// Marks the next instruction, which the agent replaces by a jump to \sited if call sites are recorded.
.macro SITED sited
.Lplain\@:
    .pushsection .site_words
    .long .Lplain\@ - .
    .long \sited - .
    .popsection
.endm

.macro END_OF_PATCH_SITES
    .section .site_words
tracer_site_words_end:
    .section .tls_sites
tracer_tls_sites_end:
    .section .clock_sites
tracer_clock_sites_end:
    .text
.endm
