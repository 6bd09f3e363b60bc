// More places of the code than the agent has labels for: the calls from those that come later have no length, and that is said.
// build: -O1 -fno-toplevel-reorder
// library: sites
// case: more 3 0
// says: 1 more places than there are labels for
// tree: none the subject counts its calls
#include "call_sites.c"
