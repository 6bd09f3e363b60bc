// The second library of filters.c.
#include "subject.h"
EXPORT int also_call(int value) { return value + 1; }
