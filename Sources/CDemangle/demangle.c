// Header only: libstdc++ and libswiftCore hold the code.
#include "demangle.h"
