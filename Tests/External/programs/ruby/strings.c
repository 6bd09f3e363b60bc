/* Strings that only a variable of C, and so often only a register, holds while other calls into libruby collect. */
#include <ruby.h>
#include <stdio.h>

static VALUE kept(VALUE self, VALUE count) {
    long good = 0, n = NUM2LONG(count);
    for (long i = 0; i < n; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "string %ld that is too long to be embedded in an object", i);
        VALUE string = rb_str_new(text, length);
        for (int other = 0; other < 5; other++) rb_str_new_cstr("another string that takes the place of one that was freed");
        rb_gc_start();
        for (int other = 0; other < 5; other++) rb_str_new_cstr("another string that takes the place of one that was freed");
        good += RB_TYPE_P(string, T_STRING) && RSTRING_LEN(string) == length && memcmp(RSTRING_PTR(string), text, length) == 0;
    }
    return rb_sprintf("%ld of %ld strings kept", good, n);
}

void Init_strings(void) { rb_define_singleton_method(rb_define_module("Strings"), "kept", kept, 1); }
