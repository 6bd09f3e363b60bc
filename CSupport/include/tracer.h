// The public C API of libtracer.so. A program that includes this needs no library: the functions are weak, and absent
// unless the agent is preloaded. Each call goes through a macro of the same name, which costs one load and a branch then.
// All may be called from any thread and from a signal handler. (A non-PIE executable must compile these calls with -fPIC
// or -fPIE: otherwise the linker takes an absent function for absent for ever.)
#ifndef TRACER_H
#define TRACER_H

#ifdef __cplusplus
extern "C" {
#endif

/// Records from here on, in all threads. With TRACER_START=off nothing is recorded before the first call of it.
void tracer_start(void) __attribute__((weak));

/// Records no new calls from here on. Calls that are open now are still closed when they return.
void tracer_stop(void) __attribute__((weak));

/// What has been recorded so far is in the file, and the file says until when. Of use before something that may end the
/// machine: nothing of a process that is killed is lost anyway.
void tracer_flush(void) __attribute__((weak));

/// A point in time on this thread. The name may be any text that ends in NUL (of more than 1,023 bytes the rest is cut); it
/// is copied. The mark "ready" says that the program is ready: `tracer startup` measures up to it.
void tracer_mark(const char *name) __attribute__((weak));

/// A stretch of this thread's time, shown like a call. The innermost open span of the name ends; an end without a
/// beginning is passed over. A span should end in the function call in which it began.
void tracer_begin(const char *name) __attribute__((weak));
void tracer_end(const char *name) __attribute__((weak));

#define tracer_start() (tracer_start ? tracer_start() : (void)0)
#define tracer_stop() (tracer_stop ? tracer_stop() : (void)0)
#define tracer_flush() (tracer_flush ? tracer_flush() : (void)0)
#define tracer_mark(name) (tracer_mark ? tracer_mark(name) : (void)0)
#define tracer_begin(name) (tracer_begin ? tracer_begin(name) : (void)0)
#define tracer_end(name) (tracer_end ? tracer_end(name) : (void)0)
#define tracer_ready() tracer_mark("ready")

#ifdef __cplusplus
}
#endif
#endif
