// More call sites than the agent has labels for: calls from the later ones have no length, and the agent says so.
// build: -O1 -fno-toplevel-reorder
// library: sites
// case: more 3 0
// says: 1 more call sites than there are labels for
// tree: none the subject counts its calls
#include "call_sites.c"
