// Arguments and results, written by the trampolines without the slow path: as ArgumentValues.swift and ThreadRecorder.swift do it, which
// also do what these refuse. They run on the program's stack with its signals: a handler may run traced
// code between any two instructions, so words are reserved by one addition, after the clock was read and before the base is looked at.
// No vector register is used: the trampolines do not save them.
#include "layout.h"
#include "scalar.h"
#include "string_copies.h"
#include "value_programs.h"

const struct value_program *tracer_value_programs;
const struct value_step *tracer_value_steps;
const uint8_t *tracer_value_plan;
uint32_t tracer_reads_kernel_clock;
uint64_t tracer_errno_distance;

SCALAR static inline const struct value_program *program_of(const struct frame_record *frame) {
    return &tracer_value_programs[frame->function->counter - 1];
}
SCALAR static inline const struct value_step *steps_of(const struct value_program *program) { return tracer_value_steps + program->steps; }
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
/// The word of an argument, whose value is in its low bytes.
SCALAR static inline uint64_t word_of(const struct frame_record *frame, const struct value_step *step) {
    return step->vector ? vector(step->vector - 1u) : spilled(frame, step->offset);
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

/// A DATA word of the low seven bytes.
SCALAR static inline uint64_t data(uint64_t bits) { return bits << CONTROL_PAYLOAD_SHIFT | CONTROL_DATA << CONTROL_KIND_SHIFT; }

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
        *writer->word++ = data(writer->bits);
        writer->bits = value >> (56 - writer->count);
        count -= 56;
        if (count == 56) { // 8 bytes after 48 bits fill two words
            *writer->word++ = data(writer->bits);
            count = 0;
        }
        if (count == 0) writer->bits = 0;
    }
    writer->count = count;
}
/// `kind`: CONTROL_VALUES or CONTROL_RESULT. tail: the bytes after those of the DATA words, and zeros.
SCALAR static inline uint64_t head(uint64_t kind, uint64_t program, uint64_t words, uint64_t tail) {
    uint64_t payload = program | words << CONTROL_VALUES_COUNT_SHIFT | tail << CONTROL_VALUES_TAIL_SHIFT;
    return payload << CONTROL_PAYLOAD_SHIFT | kind << CONTROL_KIND_SHIFT;
}
SCALAR static inline uint64_t *finish(struct writer *writer, uint64_t kind, uint64_t program, uint64_t words) {
    if (writer->count > VALUE_TAIL * 8) {
        *writer->word++ = data(writer->bits);
        writer->bits = 0;
    }
    *writer->word++ = head(kind, program, words, writer->bits);
    return writer->word;
}

/// A string as it is written: in the program's memory, or copied from there. TEXT_SLACK bytes behind it can be read, too.
struct text {
    const uint8_t *bytes;
    unsigned length, how;
};
/// Each DATA word takes its bytes of the string by one load, from wherever they begin: no byte is carried over to the next word.
SCALAR static inline void put_text(struct writer *writer, const struct text *text) {
    put(writer, text->length | text->how << ARGUMENTS_TEXT_SHIFT, 2);
    const uint8_t *bytes = text->bytes;
    uint64_t *word = writer->word, bits = writer->bits, some;
    unsigned count = writer->count, left = text->length, space = ARGUMENTS_DATA_BYTES - count / 8;
    for (; left >= space; left -= space, bytes += space, space = ARGUMENTS_DATA_BYTES, bits = count = 0) {
        __builtin_memcpy(&some, bytes, 8);
        // What is beyond the word is shifted out of it.
        *word++ = data(bits | some << count);
    }
    __builtin_memcpy(&some, bytes, 8);
    writer->word = word;
    writer->bits = bits | (some & ~(~0ull << left * 8)) << count;
    writer->count = count + left * 8;
}

/// The string cannot be written from where it is: the kernel copies it, or it is too near to the end of what can be read. Returns the number of
/// bytes used; 0: Swift must do it.
SCALAR __attribute__((noinline)) static unsigned copy_text(struct frame_record *frame, struct text *text, uint8_t *copy, unsigned most) {
    if (!most) return 0;
    unsigned length = tracer_copy_string(copy, (uint64_t)text->bytes, most, frame->stack_pointer);
    if (length == most && copy[length - 1] != 0) return 0;
    text->bytes = copy;
    if (!length) {
        text->length = 0;
        text->how = ARGUMENTS_TEXT_UNREAD;
        return 1;
    }
    text->how = copy[length - 1] == 0 ? ARGUMENTS_TEXT_WHOLE : ARGUMENTS_TEXT_BROKEN;
    text->length = length - (text->how == ARGUMENTS_TEXT_WHOLE);
    return length;
}

/// The number of the argument that is the calls' object; 0: they have none.
SCALAR static inline uint64_t object_of(const struct function_hook *function) { return function->argument & ~FUNCTION_HAS_VALUES; }
/// Space for the result, which says nothing before an enter: a call that makes no other becomes one word, with its result before it.
SCALAR static inline uint64_t *leave_space(const struct value_program *program, uint64_t *word) {
    if (program->space > 1) *word++ = data(0);
    if (program->space) *word++ = program->result_head;
    return word;
}
/// After the values, whose VALUES word is written: the enter. `after`: its time since the base. Always 1.
SCALAR static inline int enter(struct frame_record *frame, const struct value_program *program, uint64_t *word, uint64_t after) {
    const struct function_hook *function = frame->function;
    uint64_t object = object_of(function);
    word = leave_space(program, word);
    if (object) {
        uint64_t value = spilled(frame, object == 2 ? -SPILL_SECOND : -SPILL_FIRST);
        *word++ = value << CONTROL_PAYLOAD_SHIFT | CONTROL_ARGUMENT << CONTROL_KIND_SHIFT;
    }
    *word++ = after << EVENT_TIME_SHIFT | function->head;
    if (program->result_bytes) frame->label |= LABEL_RESULT;
    frame->event = word;
    return 1;
}
/// Bytes of the words after DATA words: VALUES, space for the result, the object if there is one, and the enter.
SCALAR static inline uint64_t bytes_after_data(const struct frame_record *frame, const struct value_program *program) {
    return (object_of(frame->function) ? 24u : 16u) + 8u * program->space;
}

/// Apart, so that calls without strings need no space for them.
SCALAR __attribute__((noinline)) static int write_strings(struct frame_record *frame, const struct value_program *program) {
    struct write_position *position = tracer_thread.position;
    if (position->cursor >= position->limit) return 0; // also in a forked child, whose memory is another process's
    const struct value_step *steps = steps_of(program), *end = steps + program->count;
    struct text texts[VALUE_TEXTS], *text = texts;
    uint8_t copies[VALUE_BYTES + TEXT_SLACK];
    unsigned count = program->fixed_bytes, used = 0;
    for (const struct value_step *step = steps; step < end; step++) {
        if (step->bytes) continue;
        uint64_t address = word_of(frame, step);
        unsigned length = tracer_string_in_place(address, VALUE_BYTES, frame->stack_pointer);
        text->bytes = (const uint8_t *)address;
        text->length = length - 1;
        text->how = ARGUMENTS_TEXT_WHOLE;
        if (!length) {
            unsigned some = copy_text(frame, text, copies + used, VALUE_BYTES - used);
            if (!some) return 0;
            frame->enter_ticks = tracer_cycles(); // the call begins after the copying
            used += some;
            if (text->how == ARGUMENTS_TEXT_UNREAD) count += sizeof address;
        }
        count += text++->length;
    }
    unsigned words = DATA_WORDS(count);
    if (words > VALUE_WORDS) return 0;
    uint64_t *word = reserve(position, 8 * words + bytes_after_data(frame, program));
    uint64_t after = frame->enter_ticks - position->base; // read once: a handler may set another, for words after its own
    if (!word || after >= 1ull << EVENT_START_BITS) return 0;
    struct writer writer = {word, 0, 0};
    text = texts;
    for (const struct value_step *step = steps; step < end; step++) {
        if (step->bytes) {
            put(&writer, word_of(frame, step), step->bytes);
            continue;
        }
        put_text(&writer, text);
        if (text++->how == ARGUMENTS_TEXT_UNREAD) put(&writer, word_of(frame, step), 8);
    }
    return enter(frame, program, finish(&writer, CONTROL_VALUES, frame->function->counter, words), after);
}

SCALAR static inline int fulfil(const struct frame_record *frame, const struct value_program *program) {
    const struct arguments_test *tests = (const struct arguments_test *)(tracer_value_plan + program->tests);
    for (unsigned n = 0; n < program->test_count; n++) {
        if (!tracer_number_fulfils(&tests[n], word_of(frame, steps_of(program) + tests[n].operation))) return 0;
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

/// The first value is the only string, and the others have at most eight bytes.
SCALAR static inline int write_text(struct frame_record *frame, const struct value_program *program, uint64_t now) {
    struct write_position *position = tracer_thread.position;
    if (position->cursor >= position->limit) return 0; // also in a forked child, whose memory is another process's
    const struct value_step *step = steps_of(program);
    uint64_t from = spilled(frame, step->offset), rest = 0;
    unsigned length = tracer_string_in_place(from, VALUE_BYTES - 2 - 8, frame->stack_pointer), rest_bytes = program->fixed_bytes - 2u;
    if (!length) return write_strings(frame, program);
    length--;
    if (rest_bytes) {
        rest = spilled(frame, step[1].offset);
        if (program->count > 2) rest = (rest & ~(~0ull << step[1].bytes * 8)) | spilled(frame, step[2].offset) << step[1].bytes * 8;
        rest &= ~0ull >> (64 - rest_bytes * 8);
    }
    unsigned words = (2 + length + rest_bytes + 2) * 9363 >> 16; // DATA_WORDS, with a multiplication for a seventh
    uint64_t *word = reserve(position, 8 * words + bytes_after_data(frame, program));
    uint64_t after = now - position->base; // read once: a handler may set another, for words after its own
    if (!word || after >= 1ull << EVENT_START_BITS) return 0;
    uint64_t bits, some;
    unsigned used = length;
    __builtin_memcpy(&some, (const void *)from, 8);
    bits = length | some << 16; // ARGUMENTS_TEXT_WHOLE is 0
    if (used < 5) {
        used += 2;
    } else {
        from += 5;
        used -= 5;
        *word++ = data(bits);
        for (;; from += 7, used -= 7) {
            __builtin_memcpy(&bits, (const void *)from, 8);
            if (used < 7) break;
            *word++ = data(bits);
            __asm__ volatile(""); // LLVM would make four loops of it
        }
    }
    bits &= ~(~0ull << used * 8);
    if (rest_bytes) {
        bits |= rest << used * 8;
        used += rest_bytes;
        if (used > 7) {
            used -= 7;
            *word++ = data(bits);
            bits = rest >> (rest_bytes - used) * 8;
        }
    }
    if (used > VALUE_TAIL) {
        *word++ = data(bits);
        bits = 0;
    }
    *word++ = head(CONTROL_VALUES, frame->function->counter, words, bits);
    return enter(frame, program, word, after);
}

SCALAR int tracer_write_arguments(struct frame_record *frame, uint64_t now) {
    const struct value_program *program = program_of(frame);
    if (program->begins_with_text) return write_text(frame, program, now);
    if (program->text_count) return write_strings(frame, program);
    struct write_position *position = tracer_thread.position;
    uint64_t *word = reserve(position, 8 * program->words + bytes_after_data(frame, program));
    uint64_t after = now - position->base; // read once: a handler may set another, for words after its own
    if (!word || after >= 1ull << EVENT_START_BITS) return 0;
    struct writer writer = {word, 0, 0};
    const struct value_step *steps = steps_of(program);
    for (unsigned n = 0; n < program->count; n++) put(&writer, word_of(frame, &steps[n]), steps[n].bytes);
    return enter(frame, program, finish(&writer, CONTROL_VALUES, frame->function->counter, program->words), after);
}

#if defined(__x86_64__)
#define RESULT_REGISTER (RETURN_SLOT - 8) /* rax */
#else
#define RESULT_REGISTER (-SPILL_X0)
#endif
SCALAR static inline uint32_t errno_of_thread(void) {
    return tracer_errno_distance ? *(const uint32_t *)(tracer_thread_pointer() + tracer_errno_distance) : 0;
}
/// The call has made no other: what was space is its result, and its enter a complete call, as COMPLETE_CALL makes it. 0: that cannot be.
SCALAR static inline int complete(const struct frame_record *frame, const struct value_program *program, uint64_t *event, uint64_t result,
                                  uint64_t duration) {
    // The end of that space, if it was not Swift that wrote the enter.
    uint64_t *end = event - (object_of(frame->function) ? 2 : 1);
    if (tracer_thread.position->cursor != event || duration >> EVENT_DURATION_BITS || (uint32_t)end[-1] != (uint32_t)program->result_head)
        return 0;
    struct writer writer = {end - program->space, 0, 0};
    put(&writer, result, program->result_bytes);
    finish(&writer, CONTROL_RESULT, frame->function->counter, DATA_WORDS(program->result_bytes));
    event[-1] += duration << EVENT_DURATION_SHIFT | (EVENT_COMPLETE - EVENT_ENTER);
    return 1;
}
/// The exit, and before it a result that is a char *. 0: Swift must do it.
SCALAR __attribute__((noinline)) static int write_text_result(struct frame_record *frame, const struct value_program *program,
                                                              uint64_t now) {
    uint8_t copy[VALUE_BYTES + TEXT_SLACK];
    uint64_t address = spilled(frame, RESULT_REGISTER);
    struct text text = {(const uint8_t *)address, tracer_string_in_place(address, VALUE_BYTES - 2, frame->stack_pointer) - 1,
                        ARGUMENTS_TEXT_WHOLE};
    if (text.length + 1 == 0 && !copy_text(frame, &text, copy, VALUE_BYTES - 2)) return 0;
    int is_unread = text.how == ARGUMENTS_TEXT_UNREAD, has_failed = program->failure == ARGUMENTS_FAILS_ZERO && address == 0;
    uint64_t words = DATA_WORDS(2 + text.length + (is_unread ? 8 : 0) + (has_failed ? 4u : 0));
    uint64_t *event = frame->event; // now: a handler may have opened another chunk meanwhile
    frame->event = (uint64_t *)((uint64_t)event | FRAME_CLOSING);
    struct write_position *position = tracer_thread.position;
    uint64_t *word = reserve(position, 8 * (words + 2));
    uint64_t after = now - position->base;
    if (!word || after >> EVENT_TIME_BITS) {
        frame->event = event; // its end is Swift's to write
        return 0;
    }
    struct writer writer = {word, 0, 0};
    put_text(&writer, &text);
    if (is_unread) put(&writer, address, 8);
    if (has_failed) put(&writer, errno_of_thread(), 4);
    word = finish(&writer, CONTROL_RESULT, frame->function->counter, words);
    *word = after << EVENT_TIME_SHIFT | (frame->function->head ^ EVENT_ENTER ^ EVENT_EXIT);
    return 1;
}
SCALAR int tracer_write_result(struct frame_record *frame, uint64_t now) {
    struct write_position *position = tracer_thread.position;
    const struct function_hook *function = frame->function;
    const struct value_program *program = program_of(frame);
    uint64_t *event = frame->event;
    if ((uint64_t)event < FRAME_ELSEWHERE || !(function->argument & FUNCTION_HAS_VALUES)) return 0;
    if (program->result_is_text) return program->result_is_text == RESULT_IS_SWIFTS ? 0 : write_text_result(frame, program, now);
    uint64_t result = spilled(frame, RESULT_REGISTER);
    if (!program->result_mask) READ_VECTOR(0, result);
    unsigned unused = 64 - 8 * program->result_bytes;
    uint64_t value = result << unused;
    int has_failed =
        program->failure == ARGUMENTS_FAILS_MINUS_ONE ? value == ~0ull << unused : program->failure == ARGUMENTS_FAILS_ZERO && value == 0;
    unsigned words = DATA_WORDS(program->result_bytes + (has_failed ? 4u : 0));
    frame->event = (uint64_t *)((uint64_t)event | FRAME_CLOSING);
    if (!has_failed && complete(frame, program, event, result, now - frame->enter_ticks)) return 1;
    uint64_t *word = reserve(position, 8 * (words + 2ull));
    uint64_t after = now - position->base;
    if (!word || after >> EVENT_TIME_BITS) {
        frame->event = event; // its end is Swift's to write
        return 0;
    }
    struct writer writer = {word, 0, 0};
    put(&writer, result, program->result_bytes);
    if (has_failed) put(&writer, errno_of_thread(), 4);
    word = finish(&writer, CONTROL_RESULT, function->counter, words);
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
    for (;;) {
        uint64_t bits = 0;
        do {
            bits |= *(const uint64_t *)(spills + piece->offset) << (piece->up & 63) >> (piece->down & 63);
        } while (!(piece++->down & PIECE_ENDS));
        // Bytes before a value that goes on in this word are in the place of the kind, or of all that is in the lower half.
        if (piece[-1].up & PIECE_ENDS) {
            *word++ = bits >> 32 << 32 | program->head;
            break;
        }
        *word++ = (bits & ~0ull << CONTROL_PAYLOAD_SHIFT) | CONTROL_DATA << CONTROL_KIND_SHIFT;
    }
    word = leave_space(program, word);
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
