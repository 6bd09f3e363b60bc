// Claims of docs/reference/format.md, checked by the compiler.
//
// All headers are named here: SwiftPM compiles a Swift target again when an object file that it depends on has changed, and this one
// is the only object that there is.
#include "arguments_layout.h"
#include "loader_notes.h"
#include "plan_layout.h"
#include "trace_layout.h"
#include "version.h"
#include <stddef.h>

_Static_assert(EVENT_KIND_BITS + EVENT_FUNCTION_BITS == EVENT_TIME_SHIFT, "event bits");
_Static_assert(EVENT_TIME_SHIFT + EVENT_TIME_BITS == 64, "event bits");
_Static_assert(EVENT_START_BITS + EVENT_DURATION_BITS == EVENT_TIME_BITS, "complete bits");
_Static_assert(EVENT_TIME_SHIFT + EVENT_START_BITS == EVENT_DURATION_SHIFT, "complete bits");
_Static_assert(offsetof(struct trace_file_header, first) == 56, "file header");
_Static_assert(offsetof(struct trace_file_header, next_offset) == 96, "file header");
_Static_assert(offsetof(struct trace_file_header, ended_ns) == 240 && sizeof(struct trace_file_header) == 376, "file header");
_Static_assert(offsetof(struct trace_file_header, requests) == 272 && offsetof(struct trace_file_header, control) == 328, "file header");
_Static_assert(sizeof(struct trace_spare) == 24, "spare chunk");
_Static_assert(sizeof(struct trace_request) == 32, "request");
_Static_assert(sizeof(struct trace_file_header) <= TRACE_REQUESTS_OFFSET &&
                   TRACE_REQUESTS_OFFSET + TRACE_REQUESTS * sizeof(struct trace_request) <= TRACE_SPARES_OFFSET,
               "requests follow the header, and spare chunks these");
_Static_assert(TRACE_SPARES_OFFSET + TRACE_SPARES * sizeof(struct trace_spare) <= TRACE_HEADER_BYTES, "spare chunks fit into the page");
_Static_assert(offsetof(struct trace_chunk_header, opened) == 32, "chunk header");
_Static_assert(offsetof(struct trace_chunk_header, filtered_by_time) == 56, "chunk header");
_Static_assert(offsetof(struct trace_chunk_header, thread_name) == 88, "chunk header");
_Static_assert(sizeof(struct trace_chunk_header) == 128, "chunk header");
_Static_assert(sizeof(struct trace_open_frame) == 16, "open frame");
_Static_assert(sizeof(struct trace_module_record) == 72, "module record");
_Static_assert(sizeof(struct trace_module_file_record) == 40, "module file record");
_Static_assert(sizeof(struct trace_function_record) == 32, "function record");
_Static_assert(sizeof(struct trace_functions_record) == 24, "functions record");
_Static_assert(sizeof(struct trace_prototype_record) == 16, "prototype record");
_Static_assert(sizeof(struct arguments_file) == 32 && sizeof(struct arguments_function) == 56 && sizeof(struct arguments_operation) == 16,
               "argument plan");
_Static_assert(ARGUMENTS_MOST_SOURCES <= ARGUMENTS_FROM_VECTOR && ARGUMENTS_FROM_VECTOR + ARGUMENTS_VECTORS <= ARGUMENTS_FROM_STACK,
               "sources");
_Static_assert(ARGUMENTS_STRING_BYTES < 1 << ARGUMENTS_TEXT_SHIFT, "length of a recorded string");
_Static_assert(sizeof(struct trace_thread_record) == 24, "thread record");
_Static_assert(sizeof(struct trace_thread_begin_record) == 32, "thread's first record of older agents");
_Static_assert(sizeof(struct trace_thread_pointer_record) == 40, "thread's first record");
_Static_assert(sizeof(struct trace_clock_record) == 24, "clock record");
_Static_assert(sizeof(struct trace_switched_record) == 16, "switched record");
_Static_assert(sizeof(struct trace_choice_record) == 32, "choice record");
_Static_assert(sizeof(struct trace_usage) == 32, "usage");
_Static_assert(sizeof(struct trace_phase_record) == 64, "phase record");
_Static_assert(sizeof(struct trace_initializer_record) == 72, "initializer record");
_Static_assert(sizeof(struct trace_initializer_end_record) == 48, "initializer end record");
_Static_assert(sizeof(struct trace_ready_record) == 24, "ready record");
_Static_assert(sizeof(struct trace_load_record) == 80, "load record");
_Static_assert(sizeof(struct trace_load_end_record) == 48, "load end record");
_Static_assert(sizeof(struct trace_once_record) == 40, "once record");
_Static_assert(sizeof(struct trace_module_detail_record) == 56, "module detail record");
_Static_assert(sizeof(struct trace_binding_record) == 24, "binding record");
_Static_assert(sizeof(struct trace_patched_record) == 24, "patched record");
_Static_assert(sizeof(struct trace_suppressed_record) == 24, "suppressed record");
_Static_assert(sizeof(struct trace_chunk_header) + sizeof(struct trace_passed_record) + 8 * TRACE_PASSED_COUNTERS == TRACE_PASSED_BYTES &&
                   TRACE_PASSED_BYTES % TRACE_CHUNK_ALIGNMENT == 0,
               "passed record");
_Static_assert(sizeof(struct trace_kernel_record) == 56, "kernel record");
_Static_assert(sizeof(struct trace_switch) == 16, "switch");
_Static_assert(sizeof(struct trace_switches_record) == 16, "switches record");
_Static_assert(sizeof(struct trace_task_record) == 40, "task record");
_Static_assert(sizeof(struct trace_page_fault_record) == 48, "page fault record");
_Static_assert(sizeof(struct trace_wait_record) == 48, "wait record");
_Static_assert(sizeof(struct trace_descriptor_record) == 32, "descriptor record");
_Static_assert(sizeof(struct trace_priority_record) == 32, "priority record");
_Static_assert(sizeof(struct trace_polled_record) == 32, "polled record");
_Static_assert(sizeof(struct trace_sample) == 16, "sample");
_Static_assert(sizeof(struct trace_samples_record) == 16, "samples record");
_Static_assert(sizeof(struct trace_code_name_record) == 32, "code name record");
_Static_assert(sizeof(struct trace_unrecorded_record) == 32, "unrecorded record");
