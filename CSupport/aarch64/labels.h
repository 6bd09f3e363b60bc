// clang-format off: this is assembly
// How unwinders find what a label stands for. x30 is what an unwinder has read where the function keeps it. A function that signs return
// addresses keeps a signed one, of which libgcc strips the signature only for itself: so the expression leaves out the bits
// above an address.
// DW_CFA_val_expression x30: breg30 0, const8u 0x0000fffffffffff0, and, plus_uconst LABEL_RETURN, deref, const1s -1, plus
.macro CFI_OF_LABELS
    .cfi_def_cfa sp, 0
    .cfi_escape 0x16, 30, 20, 0x8e, 0, 0x0e, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x1a, \
        0x23, 0x80, 0x80, 0x40, 0x06, 0x09, 0xff, 0x22
.endm
