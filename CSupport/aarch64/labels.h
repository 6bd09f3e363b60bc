// clang-format off: this is assembly
// How unwinders find what a label stands for. x30 is the value that an unwinder has read where the function keeps it. A function that
// signs return addresses keeps a signed one, whose signature libgcc strips only for itself: so the expression masks the bits above an
// address. The return address of a signal handler is given unchanged, not less 1: the kernel's code there has no description, and
// libgcc recognizes it by its first instruction, mov x8, #__NR_rt_sigreturn (libgcc/config/aarch64/linux-unwind.h).
// DW_CFA_val_expression x30: breg30 0, const8u 0x0000fffffffffff0, and, plus_uconst LABEL_RETURN, deref, dup, deref_size 4,
// const4u 0xd2801168, ne, minus
.macro CFI_OF_LABELS
    .cfi_def_cfa sp, 0
    .cfi_escape 0x16, 30, 27, 0x8e, 0, 0x0e, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x1a, \
        0x23, 0x80, 0x80, 0x40, 0x06, 0x12, 0x94, 4, 0x0c, 0x68, 0x11, 0x80, 0xd2, 0x2e, 0x1c
.endm
