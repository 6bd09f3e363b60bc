// Code that defeats entry patches, one function for each kind. "expect" lines are read by test_plan.py: NAME TACTIC [words of the reason].
    .text
    .macro function name
    .p2align 4, 0xcc
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm
    // Without padding after it, and none in reach; no bytes to lend, since a jump leads behind the fifth.
    .macro crowd
    .rept 2
    lea 1(%rax), %eax
    .endr
.Lcrowd\@:
    .rept 40
    lea 1(%rax), %eax
    .endr
    jz .Lcrowd\@
    .endm
    .macro function_tight name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm

// expect ordinary jump5
function ordinary
    push %rbp
    mov %rsp, %rbp
    lea 1(%rdi), %eax
    pop %rbp
    ret
end ordinary

// expect jump_into_byte_2 jump2
function jump_into_byte_2
    xor %eax, %eax
1:  inc %eax
    dec %edi
    jg 1b
    ret
end jump_into_byte_2

// expect loop_to_byte_0 whole
function loop_to_byte_0
    inc %eax
    dec %edi
    jg loop_to_byte_0
    ret
end loop_to_byte_0

// expect recursion jump5
function recursion
    lea -1(%rdi), %rdi
    test %edi, %edi
    jle 1f
    call recursion
1:  mov %edi, %eax
    ret
end recursion

// expect table_into_bytes none jump table
function table_into_bytes
    nop
12: lea table(%rip), %rdx
    movslq (%rdx,%rdi,4), %rax
    add %rdx, %rax
    jmp *%rax
2:  mov $2, %eax
    ret
end table_into_bytes
    .section .rodata
    .p2align 2
table: .long 2b - table, 12b - table, 3f - table
    .text
// expect reached_by_table jump2
function reached_by_table
    xor %eax, %eax
3:  inc %eax
    add $40, %eax
    ret
end reached_by_table

// expect short_with_padding jump5
function short_with_padding
    mov %edi, %eax
    ret
end short_with_padding

// expect lone_return jump5
function lone_return
    ret
end lone_return

// expect rip_relative jump5
function rip_relative
    mov value(%rip), %eax
    add %edi, %eax
    ret
end rip_relative

// expect call_first jump5
function call_first
    call ordinary@PLT
    add $1, %eax
    ret
end call_first

// expect indirect_call_first jump5
function indirect_call_first
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    call *pointer(%rip)
    add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
end indirect_call_first

// expect call_through_stack none cannot be relocated
function call_through_stack
    push %rdi
    .cfi_def_cfa_offset 16
    call *(%rsp)
    pop %rdi
    .cfi_def_cfa_offset 8
    ret
end call_through_stack

// expect returns_into jump2
function returns_into
    push %rcx
    .cfi_def_cfa_offset 16
    call *0x18(%rdi)
    test %rax, %rax
    jne 1f
    pop %rdx
    ret
1:  mov 0x18(%rax), %rax
    pop %rdx
    .cfi_def_cfa_offset 8
    ret
end returns_into

// expect branch_first jump5
function branch_first
    test %edi, %edi
    je 1f
    mov $1, %eax
    ret
1:  mov $7, %eax
    ret
end branch_first

// expect counted_loop jump2
function counted_loop
    mov %edi, %ecx
    jrcxz 1f
    mov $1, %eax
    ret
1:  xor %eax, %eax
    ret
end counted_loop

// expect guarded jump5
function guarded
    endbr64
    mov $3, %eax
    ret
end guarded

// expect guarded_short jump5
function guarded_short
    endbr64
    ret
end guarded_short

// expect guarded_loop whole
function guarded_loop
    endbr64
1:  dec %edi
    jg 1b
    mov %edi, %eax
    ret
end guarded_loop

// expect patchable nops
function patchable
    .nops 5, 1
    mov $5, %eax
    ret
end patchable

// expect mcount_nop nops
function mcount_nop
    endbr64
    nopl 8(%rax,%rax)
    mov $6, %eax
    ret
end mcount_nop

// expect sled nops
function sled
    .byte 0xeb, 0x09
    nopw 512(%rax,%rax)
    mov $8, %eax
    ret
end sled

// expect data_in_text none not instructions
function data_in_text
    mov $9, %eax
    ret
    .byte 0x06, 0x07, 0x0e, 0x16
end data_in_text

// expect between_instructions none not instructions
function between_instructions
    mov $9, %eax
    test %edi, %edi
    je 1f
    .byte 0xb9
1:  .byte 0xc3, 0x90, 0x90, 0x90
    ret
end between_instructions

// expect jumps_elsewhere jump5
function jumps_elsewhere
    test %edi, %edi
    jle ordinary
    mov $10, %eax
    jmp entered_with_frame
end jumps_elsewhere

// expect entered_with_frame none more on the stack
function entered_with_frame
    mov $11, %eax
    ret
end entered_with_frame
// expect enters_with_frame jump5
function enters_with_frame
    push %rbx
    .cfi_def_cfa_offset 16
    xor %ebx, %ebx
    test %edi, %edi
    je entered_with_frame
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
end enters_with_frame

// expect entered_beside_a_value none more on the stack
function entered_beside_a_value
    mov $11, %eax
    ret
end entered_beside_a_value
// expect enters_beside_a_value jump5
function enters_beside_a_value
    push %rbx
    .cfi_def_cfa_offset 16
    // DW_CFA_val_offset r12, after which the stack pointer's distance still holds.
    .cfi_escape 0x14, 12, 2
    xor %ebx, %ebx
    test %edi, %edi
    je entered_beside_a_value
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
end enters_beside_a_value

// expect runs_into jump5
function runs_into
    push %rbx
    .cfi_def_cfa_offset 16
    mov %edi, %ebx
    xor %eax, %eax
end runs_into
// expect run_into none falls through into it
function_tight run_into
    mov $12, %eax
    pop %rbx
    ret
end run_into

// expect outer jump5
function outer
    mov $13, %eax
    .globl inner
    .type inner, @function
// expect inner none inside another
inner:
    add $1, %eax
    ret
    .size inner, . - inner
end outer

// expect handler_in_bytes none exception handler
    .p2align 4, 0xcc
    .globl handler_in_bytes
    .type handler_in_bytes, @function
handler_in_bytes:
    .cfi_startproc
    .cfi_lsda 0x1b, lsda
    nop
4:  inc %eax
5:  call ordinary@PLT
6:  ret
    .cfi_endproc
    .size handler_in_bytes, . - handler_in_bytes
    .section .gcc_except_table, "a"
lsda:
    .byte 0xff, 0xff, 0x01
    .uleb128 8f - 7f
7:  .uleb128 5b - handler_in_bytes
    .uleb128 6b - 5b
    .uleb128 4b - handler_in_bytes
    .uleb128 0
8:
    .text

// expect setjmp none twice
function setjmp
    mov $14, %eax
    ret
end setjmp

// expect computed jump5
function computed
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    lea 9f(%rip), %rax
    lea distances(%rip), %rdx
    movslq (%rdx,%rdi,4), %rdx
    add %rdx, %rax
    jmp *%rax
9:  add $8, %rsp
    .cfi_def_cfa_offset 8
    mov $15, %eax
    ret
10: mov $16, %eax
    add $8, %rsp
    ret
end computed
    .section .rodata
    .p2align 2
distances: .long 9b - 9b, 10b - 9b, 10b - 9b
    .text

// expect hidden none computed
function hidden
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    lea 11f(%rip), %rax
    add %rdi, %rax
    jmp *%rax
11: add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
end hidden

// expect chosen.resolver jump5
    .p2align 4, 0xcc
    .globl chosen
    .type chosen, @gnu_indirect_function
chosen:
    lea ordinary(%rip), %rax
    ret
    .size chosen, . - chosen

// As glibc describes what signal handlers return to.
// expect restorer none Signal
    .p2align 4, 0xcc
    .cfi_startproc
    .cfi_signal_frame
    nop
    .globl restorer
    .type restorer, @function
restorer:
    mov $15, %rax
    syscall
    .size restorer, . - restorer
    .cfi_endproc

// expect looks_up_its_callers_caller jump5
function looks_up_its_callers_caller
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    mov (%rbp), %rax
    mov 8(%rax), %rax
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
end looks_up_its_callers_caller

// expect is_looked_up none frame pointers
function is_looked_up
    push %rbp
    mov %rsp, %rbp
    call looks_up_its_callers_caller
    pop %rbp
    ret
end is_looked_up

// expect leaves_its_caller_to_it jump5
function leaves_its_caller_to_it
    mov %rdi, %rsi
    mov %rdx, %rcx
    jmp looks_up_its_callers_caller
end leaves_its_caller_to_it

// expect is_looked_up_through_it none frame pointers
function is_looked_up_through_it
    push %rbp
    mov %rsp, %rbp
    call leaves_its_caller_to_it
    pop %rbp
    ret
end is_looked_up_through_it

// Who reads the word that the call has pushed, by whichever instruction.
// expect compares_return none uses its return address
function compares_return
    xor %eax, %eax
    cmp %rdi, (%rsp)
    sete %al
    ret
end compares_return

// expect subtracts_return none uses its return address
function subtracts_return
    mov %rdi, %rax
    sub (%rsp), %rax
    ret
end subtracts_return

// expect reads_half_of_return none uses its return address
function reads_half_of_return
    push %rbx
    .cfi_adjust_cfa_offset 8
    movzwl 10(%rsp), %eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end reads_half_of_return

// expect pushes_return none uses its return address
function pushes_return
    push (%rsp)
    .cfi_adjust_cfa_offset 8
    pop %rax
    .cfi_adjust_cfa_offset -8
    ret
end pushes_return

// expect pops_return none uses its return address
function pops_return
    pop %rax
    .cfi_adjust_cfa_offset -8
    jmp *%rax
end pops_return

// expect pops_return_into_memory none uses its return address
function pops_return_into_memory
    pop 16(%rdi)
    .cfi_adjust_cfa_offset -8
    jmp *16(%rdi)
end pops_return_into_memory

// expect pops_return_as_flags none uses its return address
function pops_return_as_flags
    popf
    .cfi_adjust_cfa_offset -8
    jmp *%rdi
end pops_return_as_flags

// expect returns_as_from_an_interrupt none uses its return address
function returns_as_from_an_interrupt
    iretq
end returns_as_from_an_interrupt

// expect loads_return_as_a_string none uses its return address
function loads_return_as_a_string
    mov %rsp, %rsi
    lodsq
    ret
end loads_return_as_a_string

// expect stores_its_stack_pointer none uses its return address
function stores_its_stack_pointer
    mov %rsp, (%rdi)
    mov (%rdi), %rdx
    mov (%rdx), %rax
    ret
end stores_its_stack_pointer

// expect exchanges_return none uses its return address
function exchanges_return
    xchg %rdi, (%rsp)
    xchg %rdi, (%rsp)
    ret
end exchanges_return

// expect replaces_return none uses its return address
function replaces_return
    mov %rdi, (%rsp)
    ret
end replaces_return

// expect reads_by_a_copy none uses its return address
function reads_by_a_copy
    mov %rsp, %rdx
    lea 1(%rdi), %eax
    add (%rdx), %rax
    ret
end reads_by_a_copy

// expect reads_by_a_relocated_copy none uses its return address
function reads_by_a_relocated_copy
    push %rbx
    .cfi_adjust_cfa_offset 8
    lea 16(%rsp), %r10
    mov -8(%r10), %r11
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end reads_by_a_relocated_copy

// expect hands_its_stack_over none uses its return address
function hands_its_stack_over
    mov %rsp, %rdi
    call ordinary
    ret
end hands_its_stack_over

// expect reads_behind_a_jump none uses its return address
function reads_behind_a_jump
    sub $24, %rsp
    .cfi_adjust_cfa_offset 24
    test %edi, %edi
    jg 1f
    xor %edi, %edi
1:  cmp %rdi, 24(%rsp)
    lea 24(%rsp), %rsp
    .cfi_adjust_cfa_offset -24
    ret
end reads_behind_a_jump

// And who does not.
// expect orders_memory jump5
function orders_memory
    lock orq $0, (%rsp)
    mov %rdi, %rax
    ret
end orders_memory

// expect has_arguments_on_the_stack jump5
function has_arguments_on_the_stack
    mov 8(%rsp), %rax
    add 16(%rsp), %rax
    ret
end has_arguments_on_the_stack

// expect aligns_its_frame jump5
function aligns_its_frame
    lea 8(%rsp), %r10
    .cfi_def_cfa r10, 0
    and $-32, %rsp
    push -8(%r10)
    push %rbp
    mov %rsp, %rbp
    .cfi_escape 0x10, 0x6, 0x2, 0x76, 0
    push %r10
    .cfi_escape 0xf, 0x3, 0x76, 0x78, 0x6
    pop %r10
    .cfi_def_cfa r10, 0
    pop %rbp
    lea -8(%r10), %rsp
    .cfi_def_cfa rsp, 8
    ret
end aligns_its_frame

// expect keeps_values_on_the_stack jump5
function keeps_values_on_the_stack
    push %rbx
    .cfi_adjust_cfa_offset 8
    sub $16, %rsp
    .cfi_adjust_cfa_offset 16
    mov %rdi, 8(%rsp)
    mov %rsp, %rdx
    add (%rsp), %rdi
    mov 8(%rdx), %rax
    add $16, %rsp
    .cfi_adjust_cfa_offset -16
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end keeps_values_on_the_stack

// expect tight none shorter
    .p2align 4, 0xcc
    .globl fill
    .type fill, @function
fill:
    crowd
    ret
    .size fill, . - fill
function_tight tight
    ret
end tight
function_tight fill2
    crowd
    ret
end fill2

// Short functions beside others that can lend bytes, or cannot.
// expect lends jump5
function_tight lends
    lea 1(%rdi), %rax
    add $2, %rax
    lea -3(%rax), %rax
    ret
end lends
// expect lent neighbour
function_tight lent
    mov %edi, %eax
    ret
end lent
// expect lent_by_nobody none shorter
function_tight lent_by_nobody
    mov %edi, %eax
    ret
end lent_by_nobody
function_tight fill9
    crowd
    ret
end fill9
// expect beside_a_frame neighbour
function_tight beside_a_frame
    mov %edi, %eax
    ret
end beside_a_frame
// expect lends_in_a_frame jump5
function_tight lends_in_a_frame
    push %rbx
    .cfi_adjust_cfa_offset 8
    lea 1(%rdi), %rbx
    lea -1(%rbx), %rax
    lea (%rax), %rax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
end lends_in_a_frame
function_tight fill10
    crowd
    ret
end fill10
// expect beside_a_call none shorter
function_tight beside_a_call
    mov %edi, %eax
    ret
end beside_a_call
// expect lends_no_return_address jump5
function_tight lends_no_return_address
    lea 1(%rdi), %rdi
    call ordinary@PLT
    add $1, %eax
    ret
end lends_no_return_address
function_tight fill11
    crowd
    ret
end fill11
// expect beside_a_loop neighbour
function_tight beside_a_loop
    mov %edi, %eax
    ret
end beside_a_loop
// expect lends_as_a_whole whole
function_tight lends_as_a_whole
    dec %rdi
    jg lends_as_a_whole
    lea 5(%rdi), %rax
    ret
end lends_as_a_whole
function_tight fill12
    crowd
    ret
end fill12

// Short functions, and loops that call: recorded where they are called.
// expect tight_called calls
function_tight tight_called
    mov %edi, %eax
    ret
end tight_called
function_tight fill3
    crowd
    ret
end fill3
// expect calls_tight jump5
function calls_tight
    call tight_called
    add $1, %eax
    ret
end calls_tight
// expect branches_to_tight jump5
function branches_to_tight
    test %edi, %edi
    jz tight_called
    mov $3, %eax
    ret
end branches_to_tight
    .section .text.unlikely
    .type calls_tight.cold, @function
calls_tight.cold:
    call tight_called
    ret
    .size calls_tight.cold, . - calls_tight.cold
    .text

// expect calls_and_loops calls
function calls_and_loops
    dec %edi
    js 1f
    jz calls_and_loops
    push %rdi
    .cfi_adjust_cfa_offset 8
    call calls_and_loops
    pop %rdi
    .cfi_adjust_cfa_offset -8
1:  mov %edi, %eax
    ret
end calls_and_loops

// Nobody knows of all calls: a table of addresses, an instruction that takes the address, bytes that no symbol covers.
function_tight fill8
    crowd
    ret
end fill8
// expect held_by_data calls
function_tight held_by_data
    mov %edi, %eax
    ret
end held_by_data
function_tight fill4
    crowd
    ret
end fill4
// expect held_by_code calls
function_tight held_by_code
    mov %edi, %eax
    ret
end held_by_code
function_tight fill5
    crowd
    ret
end fill5
// expect called_by_unknown calls
function_tight called_by_unknown
    mov %edi, %eax
    ret
end called_by_unknown
function_tight fill6
    crowd
    call called_by_unknown
    call held_by_code
    call held_by_data
    lea held_by_code(%rip), %rax
    ret
end fill6
    call called_by_unknown
    ret

// expect short_jump_to none too short
function_tight short_jump_to
.Lshort_jump_to:
    mov %edi, %eax
    ret
end short_jump_to
function_tight fill7
    test %edi, %edi
    je .Lshort_jump_to
    call short_jump_to
    crowd
    ret
end fill7

// expect loops_around_another none first byte
function loops_around_another
    dec %edi
    jg loops_around_another
    call *%rsi
    ret
end loops_around_another
// expect entered_in_the_middle none first byte
function entered_in_the_middle
    dec %edi
    jg entered_in_the_middle
    .rept 8
    lea 1(%rax), %eax
    .endr
1:  add %edi, %eax
    jmp entered_in_the_middle
end entered_in_the_middle
// expect enters_the_middle jump5
function enters_the_middle
    mov $17, %eax
    jmp entered_in_the_middle + 30
end enters_the_middle

    .globl alias
    .type alias, @function
    .set alias, ordinary
    .size alias, 9

    .section .text.unlikely
    .type ordinary.cold, @function
ordinary.cold:
    mov $1, %eax
    ret
    .size ordinary.cold, . - ordinary.cold

    .section .data.rel.local, "aw"
    .p2align 3
pointer: .quad ordinary
.quad held_by_data
value: .long 77
    .section .note.GNU-stack, "", @progbits
