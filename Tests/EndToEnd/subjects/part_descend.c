#include "subject.h"
// Two that call each other: gcc binds a function's call of itself locally, without a slot.
void descend_also(int levels, void (*at_each)(void));
EXPORT void descend(int levels, void (*at_each)(void)) {
    if (!levels) return;
    at_each();
    descend_also(levels - 1, at_each);
    OPAQUE();
}
EXPORT void descend_also(int levels, void (*at_each)(void)) {
    if (!levels) return;
    at_each();
    descend(levels - 1, at_each);
    OPAQUE();
}
