// Arguments and results, written by the trampolines without the slow path: as ArgumentValues.swift and ThreadRecorder.swift do it, which
// also do what these refuse. They run on the program's stack with its signals: a handler may run traced
// code between any two instructions, so words are reserved by one addition, after the clock was read and before the base is looked at.
// No vector register is used: the trampolines do not save them.
#include "layout.h"
#include "scalar.h"
#include "string_copies.h"
#include "value_programs.h"

const struct value_program *tracer_value_programs;
const uint8_t *tracer_value_plan;
uint32_t tracer_reads_kernel_clock;
uint64_t tracer_errno_distance;

SCALAR static inline const struct value_program *program_of(const struct frame_record *frame) {
    return &tracer_value_programs[frame->function->counter - 1];
}
SCALAR static inline const struct arguments_operation *operations_of(const struct value_program *program) {
    return (const struct arguments_operation *)(tracer_value_plan + program->operations);
}
/// Word at a distance from the stack pointer that a frame is known by, where the trampoline has spilled the caller's registers.
SCALAR static inline uint64_t spilled(const struct frame_record *frame, long offset) {
    return *(const uint64_t *)(frame->stack_pointer + (uint64_t)offset);
}
/// The low half of a vector register that carries arguments or a result: nothing between the call and here has changed it.
#if defined(__x86_64__)
#define READ_VECTOR(n, value) __asm__ volatile("movq %%xmm" #n ", %0" : "=r"(value))
#else
#define READ_VECTOR(n, value) __asm__ volatile(".arch_extension fp\n fmov %0, d" #n : "=r"(value))
#endif
SCALAR __attribute__((noinline)) static uint64_t vector(unsigned number) {
    uint64_t value = 0;
    switch (number) {
#define VECTOR(n) \
    case n: READ_VECTOR(n, value); break;
        VECTOR(0)
        VECTOR(1)
        VECTOR(2)
        VECTOR(3)
        VECTOR(4)
        VECTOR(5)
        VECTOR(6)
        VECTOR(7)
#undef VECTOR
    default: break;
    }
    return value;
}
/// As Spills.argument.
SCALAR static inline uint64_t argument(const struct frame_record *frame, unsigned number) {
    if (number >= ARGUMENTS_FROM_STACK) return spilled(frame, RETURN_SLOT + 8 + 8 * (long)(number - ARGUMENTS_FROM_STACK));
    if (number >= ARGUMENTS_FROM_VECTOR) return vector(number - ARGUMENTS_FROM_VECTOR);
    switch (number) {
    case 0: return spilled(frame, -SPILL_FIRST);
    case 1: return spilled(frame, -SPILL_SECOND);
    case 2: return spilled(frame, -SPILL_THIRD);
    case 3: return spilled(frame, -SPILL_FOURTH);
    default: break;
    }
    if (number >= ARGUMENT_REGISTERS) return spilled(frame, RETURN_SLOT + 8 + 8 * (long)(number - ARGUMENT_REGISTERS));
#if defined(__x86_64__)
    return spilled(frame, -SPILL_FIFTH - 8 * ((long)number - 4));
#else
    return spilled(frame, -(number < 6 ? SPILL_X4 : SPILL_X6) + 8 * (long)(number & 1));
#endif
}

/// Reserves words by one step, which a signal handler of this thread cannot divide. 0: the chunk is full, or was left at a fork.
SCALAR static inline uint64_t *reserve(struct write_position *position, uint64_t bytes) {
    uint64_t *word;
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "=r"(word), "+m"(position->cursor) : "0"(bytes) : "memory", "cc");
#else
    uint64_t next;
    uint32_t failed;
    __asm__ volatile("1: ldxr %0, %3\n add %1, %0, %4\n stxr %w2, %1, %3\n cbnz %w2, 1b"
                     : "=&r"(word), "=&r"(next), "=&r"(failed), "+Q"(position->cursor)
                     : "r"(bytes)
                     : "memory");
#endif
    // The slack after the limit has space for the other words, if the first one is before it.
    return word < position->limit ? word : 0;
}

/// DATA words: bytes one after the other, seven a word.
struct writer {
    uint64_t *word, bits;
    unsigned count; // bits in use, below 56
};
SCALAR static inline void put(struct writer *writer, uint64_t value, unsigned bytes) {
    if (bytes < 8) value &= (1ull << bytes * 8) - 1;
    writer->bits |= value << writer->count;
    unsigned count = writer->count + bytes * 8;
    if (count >= 56) {
        *writer->word++ = writer->bits << CONTROL_PAYLOAD_SHIFT | CONTROL_DATA << CONTROL_KIND_SHIFT;
        writer->bits = value >> (56 - writer->count);
        count -= 56;
        if (count == 56) { // 8 bytes after 48 bits fill two words
            *writer->word++ = writer->bits << CONTROL_PAYLOAD_SHIFT | CONTROL_DATA << CONTROL_KIND_SHIFT;
            count = 0;
        }
        if (count == 0) writer->bits = 0;
    }
    writer->count = count;
}
SCALAR static inline uint64_t *finish(struct writer *writer, uint64_t program, uint64_t words, uint64_t result) {
    if (writer->count) *writer->word++ = writer->bits << CONTROL_PAYLOAD_SHIFT | CONTROL_DATA << CONTROL_KIND_SHIFT;
    uint64_t payload = program | words << CONTROL_ARGUMENTS_COUNT_SHIFT | result << CONTROL_ARGUMENTS_RESULT_SHIFT;
    *writer->word++ = payload << CONTROL_PAYLOAD_SHIFT | CONTROL_ARGUMENTS << CONTROL_KIND_SHIFT;
    return writer->word;
}

/// A string as it is written: in the program's memory, or copied from there.
struct text {
    const uint8_t *bytes;
    unsigned length, how;
};
SCALAR static inline void put_text(struct writer *writer, const struct text *text) {
    put(writer, text->length | text->how << ARGUMENTS_TEXT_SHIFT, 2);
    const uint8_t *bytes = text->bytes, *end = bytes + text->length;
    uint64_t word = 0;
    for (; end - bytes >= 8; bytes += 8) {
        __builtin_memcpy(&word, bytes, 8);
        put(writer, word, 8);
    }
    unsigned rest = (unsigned)(end - bytes);
    if (rest == 0) return;
    if (text->length >= 8) { // the last eight bytes, without those that are written
        __builtin_memcpy(&word, end - 8, 8);
        word >>= 64 - 8 * rest;
    } else {
        word = 0;
        for (unsigned n = 0; n < rest; n++) word |= (uint64_t)bytes[n] << 8 * n;
    }
    put(writer, word, rest);
}

/// The values of a program with strings. Apart, so that calls without strings need no space for them. `after`: the time of the call, since
/// the base. Returns the word after those written; 0: Swift must do it.
SCALAR __attribute__((noinline)) static uint64_t *write_strings(struct frame_record *frame, const struct value_program *program,
                                                                uint64_t more, uint64_t *after) {
    struct write_position *position = tracer_thread.position;
    if (position->cursor >= position->limit) return 0; // also in a forked child, whose memory is another process's
    struct text texts[VALUE_TEXTS];
    uint8_t copies[VALUE_BYTES];
    unsigned count = 0, text_count = 0, used = 0;
    for (unsigned n = 0; n < program->count; n++) {
        const struct arguments_operation *operation = &operations_of(program)[n];
        if (operation->kind != ARGUMENTS_STRING) {
            count += operation->bytes;
            continue;
        }
        struct text *text = &texts[text_count++];
        uint64_t address = argument(frame, operation->source);
        unsigned length = tracer_string_in_place(address, VALUE_BYTES, frame->stack_pointer);
        text->bytes = (const uint8_t *)address;
        text->how = ARGUMENTS_TEXT_WHOLE;
        if (!length) {
            unsigned most = VALUE_BYTES - used;
            if (!most) return 0;
            uint8_t *copy = copies + used;
            length = tracer_copy_string(copy, address, most, frame->stack_pointer);
            if (length == most && copy[length - 1] != 0) return 0;
            text->bytes = copy;
            if (!length) {
                text->how = ARGUMENTS_TEXT_UNREAD;
            } else if (copy[length - 1] != 0) {
                text->how = ARGUMENTS_TEXT_BROKEN;
                length++;
            }
            used += length;
            frame->enter_ticks = tracer_cycles(); // the call begins after the copying
        }
        text->length = text->how == ARGUMENTS_TEXT_UNREAD ? 0 : length - 1;
        count += 2 + (text->how == ARGUMENTS_TEXT_UNREAD ? (unsigned)sizeof address : text->length);
    }
    unsigned words = (count + ARGUMENTS_DATA_BYTES - 1) / ARGUMENTS_DATA_BYTES;
    if (words > VALUE_WORDS) return 0;
    uint64_t *word = reserve(position, 8 * (words + more));
    *after = frame->enter_ticks - position->base; // read once: a handler may set another, for words after its own
    if (!word || *after >= 1ull << EVENT_START_BITS) return 0;
    struct writer writer = {word, 0, 0};
    const struct text *text = texts;
    for (unsigned n = 0; n < program->count; n++) {
        const struct arguments_operation *operation = &operations_of(program)[n];
        if (operation->kind != ARGUMENTS_STRING) {
            put(&writer, argument(frame, operation->source), operation->bytes);
            continue;
        }
        put_text(&writer, text);
        if (text->how == ARGUMENTS_TEXT_UNREAD) put(&writer, argument(frame, operation->source), 8);
        text++;
    }
    return finish(&writer, frame->function->counter, words, 0);
}

SCALAR static inline int fulfil(const struct frame_record *frame, const struct value_program *program) {
    const struct arguments_test *tests = (const struct arguments_test *)(tracer_value_plan + program->tests);
    for (unsigned n = 0; n < program->test_count; n++) {
        if (!tracer_number_fulfils(&tests[n], argument(frame, operations_of(program)[tests[n].operation].source))) return 0;
    }
    return 1;
}
SCALAR int tracer_fulfils(const struct frame_record *frame) {
    if (fulfil(frame, program_of(frame))) return 1;
    struct write_position *position = tracer_thread.position;
    if (frame != tracer_thread.top || !position->chunk) return 0;
    position->chunk->filtered_by_condition++;
    return -1;
}

SCALAR int tracer_write_arguments(struct frame_record *frame, uint64_t now) {
    struct write_position *position = tracer_thread.position;
    const struct function_hook *function = frame->function;
    const struct value_program *program = program_of(frame);
    uint64_t object = function->argument & ~FUNCTION_HAS_VALUES, more = 2ull + (object != 0);
    uint64_t *word, after;
    if (program->text_count) {
        word = write_strings(frame, program, more, &after);
        if (!word) return 0;
    } else {
        word = reserve(position, 8 * (program->words + more));
        after = now - position->base; // read once: a handler may set another, for words after its own
        if (!word || after >= 1ull << EVENT_START_BITS) return 0;
        struct writer writer = {word, 0, 0};
        for (unsigned n = 0; n < program->count; n++)
            put(&writer, argument(frame, operations_of(program)[n].source), operations_of(program)[n].bytes);
        word = finish(&writer, function->counter, program->words, 0);
    }
    if (object) *word++ = argument(frame, object == 2) << CONTROL_PAYLOAD_SHIFT | CONTROL_ARGUMENT << CONTROL_KIND_SHIFT;
    *word++ = after << EVENT_TIME_SHIFT | function->head;
    if (program->result_bytes) frame->label |= LABEL_RESULT;
    frame->event = word;
    return 1;
}

SCALAR int tracer_write_result(struct frame_record *frame, uint64_t now) {
    struct write_position *position = tracer_thread.position;
    const struct function_hook *function = frame->function;
    const struct value_program *program = program_of(frame);
    uint64_t *event = frame->event;
    if ((uint64_t)event < FRAME_ELSEWHERE || !(function->argument & FUNCTION_HAS_VALUES)) return 0;
#if defined(__x86_64__)
    uint64_t result = spilled(frame, RETURN_SLOT - 8); // rax
#else
    uint64_t result = spilled(frame, -SPILL_X0);
#endif
    if (!program->result_mask) READ_VECTOR(0, result);
    unsigned unused = 64 - 8 * program->result_bytes;
    uint64_t value = result << unused;
    int has_failed =
        program->failure == ARGUMENTS_FAILS_MINUS_ONE ? value == ~0ull << unused : program->failure == ARGUMENTS_FAILS_ZERO && value == 0;
    unsigned bytes = program->result_bytes + (has_failed ? 4 : 0), words = bytes > ARGUMENTS_DATA_BYTES ? 2 : 1;
    uint32_t error = has_failed && tracer_errno_distance ? *(const uint32_t *)(tracer_thread_pointer() + tracer_errno_distance) : 0;
    frame->event = (uint64_t *)((uint64_t)event | FRAME_CLOSING);
    uint64_t *word = reserve(position, 8 * (words + 2ull));
    uint64_t after = now - position->base;
    if (!word || after >> EVENT_TIME_BITS) {
        frame->event = event; // its end is Swift's to write
        return 0;
    }
    struct writer writer = {word, 0, 0};
    put(&writer, result, program->result_bytes);
    if (has_failed) put(&writer, error, 4);
    word = finish(&writer, function->counter, words, 1);
    *word = after << EVENT_TIME_SHIFT | (function->head ^ EVENT_ENTER ^ EVENT_EXIT);
    return 1;
}

#if !defined(__x86_64__)
/// As values_enter of x86_64/trampoline.S.
SCALAR static inline int write_pieces(struct frame_record *frame, uint64_t now, const struct value_program *program) {
    struct write_position *position = tracer_thread.position;
    uint64_t *word = reserve(position, program->reserved);
    uint64_t after = now - position->base; // read once: a handler may set another, for words after its own
    if (!word || after >= 1ull << EVENT_START_BITS) return 0;
    const uint8_t *spills = (const uint8_t *)frame->stack_pointer;
    const struct value_piece *piece = program->pieces;
    do {
        uint64_t bits = 0;
        do {
            bits |= *(const uint64_t *)(spills + piece->offset) << (piece->up & 63) >> (piece->down & 63);
        } while (!(piece++->down & PIECE_ENDS));
        // The byte before a value that goes on in this word is in the place of the kind.
        *word++ = (bits & ~0ull << CONTROL_PAYLOAD_SHIFT) | CONTROL_DATA << CONTROL_KIND_SHIFT;
    } while (!(piece[-1].up & PIECE_ENDS));
    *word++ = program->head;
    *word++ = after << EVENT_TIME_SHIFT | frame->function->head;
    if (program->result_bytes) frame->label |= LABEL_RESULT;
    frame->event = word;
    return 1;
}
SCALAR int tracer_write_enter(struct frame_record *frame, uint64_t now) {
    const struct value_program *program = program_of(frame);
    if (program->pieces && frame->function->argument == FUNCTION_HAS_VALUES) return write_pieces(frame, now, program);
    if (program->test_count) {
        int fulfils = tracer_fulfils(frame);
        if (fulfils <= 0) return fulfils;
    }
    return tracer_write_arguments(frame, now);
}
#endif
