#include "tracer_api.h"
