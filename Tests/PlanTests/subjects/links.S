// Uses of x30 by functions of aarch64. "expect" lines are read by test_plan.py: NAME TACTIC [words of the reason].
    .arch armv8.5-a+memtag
    .text
    .macro function name
    .p2align 4
    .globl \name
    .type \name, %function
\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm
    .macro frame
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    .endm
    .macro leave
    ldp x29, x30, [sp], #32
    .cfi_restore 29
    .cfi_restore 30
    .cfi_def_cfa_offset 0
    ret
    .endm

// expect ordinary word
function ordinary
    frame
    bl ordinary
    leave
end ordinary

// expect compares none uses its return address
function compares
    cmp x0, x30
    cset w0, eq
    ret
end compares

// expect stores none uses its return address
function stores
    str x30, [x0]
    ret
end stores

// expect stores_a_pair none uses its return address
function stores_a_pair
    stp x1, x30, [x0]
    ret
end stores_a_pair

// expect reads_data_behind_the_call none uses its return address
function reads_data_behind_the_call
    ldr w0, [x30], #4
    ret
end reads_data_behind_the_call

// expect loads_it_from_the_frame none uses its return address
function loads_it_from_the_frame
    frame
    bl ordinary
    ldr x0, [sp, #8]
    leave
end loads_it_from_the_frame

// expect loads_the_frame none uses its return address
function loads_the_frame
    frame
    bl ordinary
    ldp x0, x1, [x29]
    leave
end loads_the_frame

// expect keeps_a_second_copy none uses its return address
function keeps_a_second_copy
    frame
    str x30, [sp, #16]
    bl ordinary
    leave
end keeps_a_second_copy

// expect reads_behind_a_return none uses its return address
function reads_behind_a_return
    cbz x0, 1f
    ret
1:  csel x0, x1, x30, eq
    ret
end reads_behind_a_return

// expect to_a_vector none uses its return address
function to_a_vector
    fmov d0, x30
    ret
end to_a_vector

// And who uses the register for something else.
// expect has_no_other_register word
function has_no_other_register
    frame
    mov x30, x2
    ldr x7, [x30, #32]
    cbz x7, 1f
    str x30, [sp, #16]
    .cfi_remember_state
    leave
1:  .cfi_restore_state
    add x0, x30, #1
    leave
end has_no_other_register

// expect sets_tags word
function sets_tags
    add x3, x0, x1
    st2g x0, [x3, #-32]
    stg x0, [x3, #-32]
    ret
end sets_tags

// expect has_thirty_in_an_immediate word
function has_thirty_in_an_immediate
    ccmp x0, #30, #0, eq
    lsl x0, x0, #30
    ldr q0, [x0, #480]
    ret
end has_thirty_in_an_immediate

    .section .note.GNU-stack, "", %progbits
