// For startup_items.c, its parts and its twin in C++.
#include "subject.h"
#include <tracer.h>

#ifdef __cplusplus
extern "C" {
#endif
/// Writes down what has run: the names, with a blank after each.
void say(const char *text);
extern char said[512];
void check_many(void);
#ifdef __cplusplus
}
#endif
