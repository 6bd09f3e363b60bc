// Another source file of the program, with a function of a name that start.cc has, too.
extern "C" {
static void note(const char *) {}
}

extern "C" int unused_here(void) {
    note("nothing");
    return 0;
}
