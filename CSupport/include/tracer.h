// The public C API of libtracer.so. A program that includes this needs no library: the functions are weak, and absent
// unless the agent is preloaded. All may be called from any thread and from a signal handler.
#ifndef TRACER_H
#define TRACER_H

#ifdef __cplusplus
extern "C" {
#endif

/// Records from here on, in all threads. With TRACER_START=off nothing is recorded before the first call of it.
void tracer_start(void) __attribute__((weak));

/// Records no new calls from here on. Calls that are open now are still closed when they return.
void tracer_stop(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif
