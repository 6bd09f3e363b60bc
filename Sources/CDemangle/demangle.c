// Header only: libstdc++, libswiftCore and libiberty hold the code.
#include "demangle.h"
