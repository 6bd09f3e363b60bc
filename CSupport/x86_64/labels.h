// clang-format off: this is assembly
// How unwinders find what a label stands for. As CFI_RETURN_OF_LABEL of trampoline.S, then const1s -1, plus.
.macro CFI_OF_LABELS
    .cfi_def_cfa %rsp, 0
    .cfi_escape 0x16, 16, 14, 0x38, 0x1c, 0x06, 0x09, 0xf0, 0x1a, 0x23, 0x80, 0x80, 0x40, 0x06, 0x09, 0xff, 0x22
.endm
