// A context on a stack of its own, to which a subject switches; it ends in `own`.
static void on_other_stack(ucontext_t *other, ucontext_t *own, void (*body)(void)) {
    static char stack[262144];
    CHECK(!getcontext(other));
    other->uc_stack.ss_sp = stack;
    other->uc_stack.ss_size = sizeof stack;
    other->uc_link = own;
    makecontext(other, body, 0);
}
