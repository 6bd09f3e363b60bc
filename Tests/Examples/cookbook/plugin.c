// A plugin. The one that is built with -DSLOW reads a table before anybody needs it.
#include <math.h>
#include <stdlib.h>

static double *table;

__attribute__((constructor)) static void prepare(void) {
#ifdef SLOW
    table = malloc(sizeof *table * 400000);
    for (int i = 0; i < 400000; i++) table[i] = sin(i);
#endif
}

const char *name(void) { return table ? "slow" : "quick"; }
