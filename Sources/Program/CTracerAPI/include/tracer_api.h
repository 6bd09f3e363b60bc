// The macros of tracer.h as functions, which Swift can import.
#ifndef TRACER_API_H
#define TRACER_API_H
#include "tracer.h" // a link to CSupport/include

static inline void tracer_api_start(void) { tracer_start(); }
static inline void tracer_api_stop(void) { tracer_stop(); }
static inline void tracer_api_flush(void) { tracer_flush(); }
static inline void tracer_api_mark(const char *name) { tracer_mark(name); }
static inline void tracer_api_begin(const char *name) { tracer_begin(name); }
static inline void tracer_api_snapshot(const char *name) { tracer_snapshot(name); }
static inline int tracer_api_set(enum tracer_setting setting, unsigned long long value) { return tracer_set(setting, value); }
static inline void tracer_api_end(const char *name) { tracer_end(name); }
#endif
