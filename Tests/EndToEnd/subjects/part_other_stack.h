// A context on a stack of its own, to which a subject switches; it ends in `own`.
static void on_other_stack(ucontext_t *other, ucontext_t *own, void (*body)(void)) {
    static char stack[262144];
    context_on(other, stack, sizeof stack, own);
    makecontext(other, body, 0);
}
