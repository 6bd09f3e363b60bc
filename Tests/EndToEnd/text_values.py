"""Strings that are no `char *`, as arguments: of C++, Rust and Swift, and bytes that another argument counts. What the functions print themselves,
at every optimisation, against `replay --json`; objects that lead nowhere, or say what is not so; conditions on them."""
import json
import re
import subprocess

import argument_values
import build
import debug_prototypes
import harness
import suite
from harness import Skipped, expect

# As `replay --json` has a string: up to 512 bytes of it.
TEXTS = debug_prototypes.COMMON + r"""
#define STRING(name, data, size) KEY(name), string(data, size)
#define END_TEXT(data, size) printf("}\t"), string(data, size), printf("\n"), fflush(stdout)
static void string(const char *data, size_t size) {
    printf(size > 512 ? "{\"cut\": \"" : "\"");
    for (size_t n = 0; n < size && n < 512; n++) {
        unsigned char byte = (unsigned char)data[n];
        if (byte < 32 || byte == '"' || byte == '\\') printf("\\u%04x", byte); else putchar(byte);
    }
    printf(size > 512 ? "\"}" : "\"");
}
"""
CPP_SOURCE = TEXTS + r"""
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#define TEXT_OF(name) STRING(name, name.data(), name.size())
using own = std::string;
struct request {
    std::string url;
    APART int take_method(const std::string &a, int b) const { BEGIN("request::take_method") ADDRESS(this), TEXT_OF(a), NUMBER(b), END("%d", b); return b; }
};
APART int take_reference(const std::string &a, int b, std::string &&c, std::string &d, const own &e, const volatile int f) {
    BEGIN("take_reference") TEXT_OF(a), NUMBER(b), TEXT_OF(c), TEXT_OF(d), TEXT_OF(e), NUMBER(f), END("%d", b);
    return b;
}
APART long take_value(std::string a, long b, own c, double d) { BEGIN("take_value") TEXT_OF(a), NUMBER(b), TEXT_OF(c), REAL(d), END("%ld", b); return b; }
APART int take_pointer(const std::string *a, std::string *b, const std::string_view *const c) {
    BEGIN("take_pointer") STRING(a, a->data(), a->size()), KEY(b), b ? string(b->data(), b->size()) : (void)printf("null"), STRING(c, c->data(), c->size()), END("%d", b != nullptr);
    return b != nullptr;
}
APART int take_view(int a, std::string_view b, const std::string_view c, std::string_view d, int e, std::string_view f) {
    BEGIN("take_view") NUMBER(a), TEXT_OF(b), TEXT_OF(c), TEXT_OF(d), NUMBER(e), TEXT_OF(f), END("%d", a);
    return a;
}
APART int take_view_reference(const std::string_view &a, std::string_view &&b) { BEGIN("take_view_reference") TEXT_OF(a), TEXT_OF(b), END("%d", 7); return 7; }
APART int take_mixed(double a, std::string_view b, float c, const std::string &d, const char *e) {
    BEGIN("take_mixed") REAL(a), TEXT_OF(b), REAL(c), TEXT_OF(d), TEXT(e), END("%d", 8);
    return 8;
}
APART std::string take_returned(std::string_view a, const std::string &b) {
    std::string all = std::string(a) + b;
    BEGIN("take_returned") TEXT_OF(a), TEXT_OF(b);
#if defined(__x86_64__)
    END_TEXT(all.data(), all.size());
#else // nothing says at the return where the object is
    END("-");
#endif
    return all;
}
APART std::string_view take_returned_view(std::string_view a, size_t b) { BEGIN("take_returned_view") TEXT_OF(a), NUMBER(b), END_TEXT(a.data(), a.size() - b); return a.substr(0, a.size() - b); }
APART const std::string &take_returned_reference(const std::string &a) { BEGIN("take_returned_reference") TEXT_OF(a), END_TEXT(a.data(), a.size()); return a; }
APART const char *take_returned_characters(const char *a, int b) {
    BEGIN("take_returned_characters") STRING(a, a, strlen(a)), NUMBER(b);
    if (b) END_TEXT(a, strlen(a)); else END("-");
    return b ? a : nullptr;
}
// Strings of other characters, and what only holds strings, are none.
APART int take_others(const std::wstring &a, const std::u16string &b, std::u32string_view c, const std::vector<std::string> &d, const std::unique_ptr<std::string> &e, std::string *&f) {
    BEGIN("take_others") AT(a), AT(b), STRUCTURE(c, "{\"_M_len\": %zu, \"_M_str\": \"%p\"}", c.size(), (const void *)c.data()), AT(d), AT(e), AT(f), END("%d", (int)c.size());
    return c.size();
}
static __attribute__((noinline)) int take_local(const std::string &a, std::string_view b, std::string c, int d) {
    BEGIN("take_local") TEXT_OF(a), TEXT_OF(b), TEXT_OF(c), NUMBER(d), END("%d", d);
    return d;
}
int main() {
    std::vector<std::string> texts = {"", "a", "exactly 15 byte", "exactly 16 bytes", "tab\tquote\"back\\slash", "gr\303\274n", std::string("a\0zero", 6)};
    for (int n : {100, 511, 512, 513, 5000}) texts.push_back(std::string(n, 'a' + n % 26));
    int n = 0;
    for (const std::string &text : texts) {
        std::string other = text, *none = nullptr;
        const std::string_view view = text;
        n++;
        request{text}.take_method(text, n);
        take_reference(text, n, std::move(other), *std::make_unique<std::string>("on the heap, of more than sixteen bytes"), text, -n);
        take_value(text, -n, text + text, n / 4.0);
        take_pointer(&text, n & 1 ? none : &texts[1], &view);
        take_view(n, text, "a literal", view.substr(0, view.size() / 2), -n, std::string_view());
        take_view_reference(view, std::string_view("temporary"));
        take_mixed(n / 2.0, view, n / 4.0f, text, "characters");
        take_returned(text, texts[3]);
        take_returned_view(view, n % 2 && n < 7 ? text.size() : 0);
        take_returned_reference(text);
        take_returned_characters(text.c_str(), n % 3);
        take_others(L"wide", u"sixteen", U"thirty-two", texts, std::make_unique<std::string>(text), none);
        take_local(text, view, text, n);
    }
    return 0;
}
"""
# libc++ is seldom there: this is its layout, by the names of its members (include/string, include/string_view).
LIBCXX_SOURCE = TEXTS + r"""
#include <initializer_list>
namespace like {
template <class T> struct basic_string {
    struct __long { struct { size_t __is_long_ : 1; size_t __cap_ : 63; }; size_t __size_; T *__data_; };
    struct __short { struct { unsigned char __is_long_ : 1; unsigned char __size_ : 7; }; T __data_[23]; };
    union __rep { __short __s; __long __l; };
    __rep __rep_;
    basic_string(const char *text) {
        size_t size = strlen(text);
        if (size < 23) __rep_.__s.__is_long_ = 0, __rep_.__s.__size_ = size, memcpy(__rep_.__s.__data_, text, size + 1);
        else __rep_.__l.__is_long_ = 1, __rep_.__l.__cap_ = size, __rep_.__l.__size_ = size, __rep_.__l.__data_ = strdup(text);
    }
    basic_string(const basic_string &other) : basic_string(other.data()) {}
    ~basic_string() {}
    const char *data() const { return __rep_.__s.__is_long_ ? __rep_.__l.__data_ : __rep_.__s.__data_; }
    size_t size() const { return __rep_.__s.__is_long_ ? __rep_.__l.__size_ : __rep_.__s.__size_; }
};
template <class T> struct basic_string_view { const T *__data_; size_t __size_; };
}
namespace older {
struct __rep { union { like::basic_string<char>::__long __l; like::basic_string<char>::__short __s; }; };
struct element { __rep __value_; };
struct pair : element {};
template <class T> struct basic_string { pair __r_; };
template <class T> struct basic_string_view { const T *__data; size_t __size; };
}
// Members of these names at other places are another layout.
namespace alternate {
template <class T> struct basic_string {
    struct __long { T *__data_; size_t __size_; size_t __cap_ : 63; size_t __is_long_ : 1; };
    struct __short { T __data_[23]; unsigned char __size_ : 7; unsigned char __is_long_ : 1; };
    union __rep { __short __s; __long __l; };
    __rep __rep_;
};
}
namespace declared { template <class T> struct basic_string; }
struct basic_string_of_others { const char *data; size_t size; };
APART int take_like(const like::basic_string<char> &a, int b, like::basic_string<char> c, like::basic_string_view<char> d) {
    BEGIN("take_like") STRING(a, a.data(), a.size()), NUMBER(b), STRING(c, c.data(), c.size()), STRING(d, d.__data_, d.__size_), END("%d", b);
    return b;
}
APART int take_older(const older::basic_string<char> &a, older::basic_string_view<char> b, const like::basic_string<char> &same) {
    BEGIN("take_older") STRING(a, same.data(), same.size()), STRING(b, b.__data, b.__size), STRING(same, same.data(), same.size()), END("%d", 9);
    return 9;
}
APART int take_unknown(const alternate::basic_string<char> &a, const basic_string_of_others &b, const declared::basic_string<char> &c) { BEGIN("take_unknown") AT(a), AT(b), AT(c), END("%d", 1); return 1; }
int main() {
    static alternate::basic_string<char> unknown;
    static basic_string_of_others others = {"text", 4};
    for (const char *text : {"", "a", "of twenty-two bytes...", "of twenty-three bytes..", "of more than twenty-three bytes, somewhere else"}) {
        like::basic_string<char> own = text;
        older::basic_string<char> old;
        memcpy((void *)&old, (void *)&own, sizeof old);
        take_like(own, strlen(text), own, {text, strlen(text) / 2});
        take_older(old, {text, strlen(text)}, own);
        take_unknown(unknown, others, (const declared::basic_string<char> &)others);
    }
    return 0;
}
"""
RUST = r"""
fn shown(text: &str) -> String { format!("{text:?}") }
#[inline(never)]
pub fn take_slices(a: &str, b: i32, c: &str, d: u64, e: &str) -> i64 {
    let (a, b, c, d, e) = (a, b, c, d, e); // what is shown is in memory, and these are copies
    println!("take_slices\t{{\"a\": {}, \"b\": {b}, \"c\": {}, \"d\": {d}, \"e\": {}}}\t{b}", shown(a), shown(c), shown(e));
    b as i64
}
#[inline(never)]
pub fn take_strings(a: String, b: i32, c: &String, d: &&str, e: Box<str>) -> i64 {
    let (b, c, d) = (b, c, d);
    println!("take_strings\t{{\"a\": {}, \"b\": {b}, \"c\": {}, \"d\": {}, \"e\": {}}}\t{b}", shown(&a), shown(c), shown(d), shown(&e));
    b as i64
}
#[inline(never)]
pub fn take_others(a: &[u8], b: &Option<String>, c: &Vec<u8>, d: u32) -> usize {
    let (a, b, c, d) = (a, b, c, d);
    println!("take_others\t{{\"a\": {{\"data_ptr\": \"{:p}\", \"length\": {}}}, \"b\": \"{b:p}\", \"c\": \"{c:p}\", \"d\": {d}}}\t{}", a.as_ptr(), a.len(), a.len());
    a.len()
}
#[inline(never)]
pub fn take_slice(a: &str, b: usize) -> &str {
    let (a, b) = (a, b);
    println!("take_slice\t{{\"a\": {}, \"b\": {b}}}\t{}", shown(a), shown(&a[b..]));
    &a[b..]
}
#[inline(never)]
pub fn take_string(a: &str, b: u32) -> String {
    let (a, b) = (a, b);
    let all = format!("{a} {b}");
    println!("take_string\t{{\"a\": {}, \"b\": {b}}}\t{}", shown(a), shown(&all));
    all
}
fn main() {
    let count = std::env::args().count() as i32;
    for text in ["", "a", "grün", "a text of some length, somewhere else than the others"] {
        let own = text.to_string();
        take_slices(text, count, &own[..own.len() / 2], own.len() as u64, "a literal");
        take_strings(own.clone(), count + 1, &own, &text, text.into());
        take_slice(text, text.len() / 5);
        take_string(text, 8);
        take_others(text.as_bytes(), &Some(own.clone()), &own.into_bytes(), 7);
    }
}
"""
SWIFT = r"""
func show(_ text: String) -> String { "\"" + text.replacingNewlines + "\"" }
extension String { var replacingNewlines: String { self } }
@_silgen_name("take_swift") @inline(never) public func takeSwift(_ a: String, _ b: Int, _ c: String) -> Int {
    print("take_swift\t{\"a\": \(show(a)), \"b\": \(b), \"c\": \(show(c))}\t-")
    return b
}
@_silgen_name("take_given") @inline(never) public func takeGiven(_ a: String, _ b: Int) -> String {
    print("take_given\t{\"a\": \(show(a)), \"b\": \(b)}\t\(show(a + " and more"))")
    return a + " and more"
}
var long = "", texts = ["", "a", "fifteen bytes..", "sixteen bytes...", "gr\u{fc}n", "\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}\u{fc}", "a literal of more than fifteen bytes, \u{fc}"]
for n in 0..<40 { long += "\(n) "; texts.append(long) }
for (n, text) in texts.enumerated() {
    _ = takeSwift(text, n, "literal " + text)
    _ = takeGiven(text, n)
}
"""
# What users say of functions that have no debug information.
PLAIN = TEXTS + r"""
struct standard { const char *data; size_t size; char own[16]; };
struct view { size_t size; const char *data; };
struct slice { const char *data; size_t size; };
APART int take_bytes(const char *a, size_t n) { BEGIN("take_bytes") STRING(a, a, n), NUMBER(n), END("-"); return 0; }
APART int take_counted(int n, double x, const char *a, unsigned char m, const char *b) { BEGIN("take_counted") NUMBER(n), REAL(x), STRING(a, a, n), NUMBER(m), STRING(b, b, m), END("-"); return 0; }
APART int take_standard(const struct standard *a, int b) { BEGIN("take_standard") STRING(a, a->data, a->size), NUMBER(b), END("-"); return 0; }
APART int take_views(int a, struct view b, struct view c, struct view d, int e) {
    BEGIN("take_views") NUMBER(a), STRING(b, b.data, b.size), STRING(c, c.data, c.size), STRING(d, d.data, d.size), NUMBER(e), END("-");
    return 0;
}
APART int take_slices(int a, const char *b, size_t b_size, const char *c, size_t c_size, const char *d, size_t d_size, const char *e, size_t e_size) {
    BEGIN("take_slices") NUMBER(a), STRING(b, b, b_size), STRING(c, c, c_size), STRING(d, d, d_size), STRING(e, e, e_size), END("-");
    return 0;
}
int main(void) {
    const char *const texts[] = {"", "a", "tab\tquote\"back\\slash", "gr\303\274n", "a text that is longer than any word"};
    char many[900];
    memset(many, 'm', sizeof many);
    for (unsigned n = 0; n < sizeof texts / sizeof *texts; n++) {
        size_t size = strlen(texts[n]);
        struct standard own = {texts[n], size, {0}};
        struct view all = {size, texts[n]}, half = {size / 2, texts[n]};
        take_bytes(texts[n], size), take_bytes("\0\0\1", n < 3 ? n : 3), take_bytes(many, 511 + n);
        take_counted(size, n / 4.0, texts[n], size / 2, texts[n]);
        take_standard(&own, n);
        take_views(n, all, half, all, -(int)n);
        take_slices(n, texts[n], size, texts[n], size / 2, texts[n], size, texts[n], size / 3);
    }
    return 0;
}
"""
SAID = ("take_bytes(a: bytes[n], n: size_t)", "take_counted(n: int, x: double, a: bytes[n], m: uchar, b: bytes[m])", "take_standard(a: std_string, b: int)",
        "take_views(a, b: string_view, c: string_view, d: string_view, e)", "take_slices(a, b: str, c: str, d: str, e: str)", "take_swift(a: swift_string, b: long, c: swift_string)", "take_given(a: swift_string, b: long) -> swift_string")


class Texts(debug_prototypes.Prototypes, argument_values.Arguments):
    def compare_said(self, program, names, *more):
        harness.plan(self.settings, program, self.made)
        said = [text for text in SAID if text.startswith(names)]
        # The plan is for the machine of the program that functions are looked for in.
        path, errors = self.plan(program, *(word for text in (*said, *more) for word in ("--arguments", text)))
        expect(path, f"there is no plan: {errors}")
        run = self.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*")
        return self.judge_calls(run.stdout, self.calls(self.checked_trace().path, "^take_"), 1)


def swift(optimization):
    def values_are_what_the_program_says(test):
        suite.need("swiftc")
        test.write("program.swift", SWIFT)
        done = subprocess.run(["swiftc", optimization, "program.swift", "-o", "program"], cwd=test.made, capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"swiftc: {done.stderr[-200:]}")
        return test.compare_said(test.path("program"), ("take_swift", "take_given"))
    return values_are_what_the_program_says


def said(compiler, optimization):
    def values_are_what_the_program_says(test):
        words = build.DRIVERS[compiler][".c"].split()
        program = test.compile("program", *words[1:], "-g", optimization, "-lm", source=PLAIN, compiler=words[0])
        return test.compare_said(program, ("take_bytes", "take_counted", "take_standard", "take_views", "take_slices"), "main")
    return values_are_what_the_program_says


HOSTILE = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#define APART __attribute__((noinline, noclone, visibility("default")))
struct standard { uint64_t data, size, own[2]; };
APART void take_standard(const void *a, int b) { __asm__ volatile("" ::"r"(a), "r"(b) : "memory"); }
APART void take_bytes(const void *a, long n) { __asm__ volatile("" ::"r"(a), "r"(n) : "memory"); }
APART void take_swift(uint64_t a, uint64_t b, long c) { __asm__ volatile("" ::"r"(a), "r"(b), "r"(c)); }
int main(void) {
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(page, 'x', 4096);
    struct standard *own = (struct standard *)page, *end = (struct standard *)(page + 4096 - 8);
    take_standard(0, 0), take_standard((void *)16, 1), take_standard((void *)-8, 2), take_standard(page + 4096, 3);
    end->data = (uint64_t)page, take_standard(end, 4);                   // the length is not there
    memset(end, 'x', 8);
    own->data = 24, own->size = 3, take_standard(own, 5);                // the bytes are not there
    own->data = 0, own->size = 0, take_standard(own, 6);
    own->data = 0, own->size = 5, take_standard(own, 7);
    own->data = 24, own->size = 0, take_standard(own, 8);                // none are needed
    own->data = (uint64_t)page + 4090, own->size = 7, take_standard(own, 9);
    own->size = ~0ull, take_standard(own, 10);                           // more than there can be
    own->data = (uint64_t)page + 1000, take_standard(own, 11);
    take_bytes(page + 64, 4), take_bytes(page + 64, -1), take_bytes((void *)32, 4), take_bytes(0, 4), take_bytes(0, 0);
    take_swift(1ull << 60 | 5, 1ull << 63 | ((uint64_t)page + 64 - 32), 1); // an immortal literal
    take_swift(5, 1ull << 63 | ((uint64_t)page + 64), 2);                   // shared: its bytes are elsewhere
    take_swift(1ull << 60 | 5, 1ull << 62 | 64, 3);                         // bridged
    take_swift(1ull << 60 | 5, 1ull << 60 | 64, 4);                         // foreign
    take_swift(1ull << 60 | 5, 64, 5);                                      // nothing is there
    take_swift(0x6867666564636261, 0xe96900000000006a >> 0, 6);             // in the words
    return 0;
}
"""


def objects_that_lead_nowhere_hurt_nobody(test):
    program = test.compile("program", "-O1", "-g0", source=HOSTILE)
    harness.plan(test.settings, program, test.made)
    path, errors = test.plan(program, *(word for text in ("take_standard(a: std_string, b)", "take_bytes(a: bytes[n], n: long)", "take_swift(a: swift_string, b: long)") for word in ("--arguments", text)))
    expect(path, errors)
    test.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*")
    found = [re.sub(r"0x[0-9a-f]{3,}", "ADDRESS", line) for line in test.lines(test.checked_trace().path)]
    xs = "x" * 512
    wanted = ["take_standard(NULL, 0)", "take_standard(0x10?, 1)", "take_standard(ADDRESS?, 2)", "take_standard(ADDRESS?, 3)", "take_standard(ADDRESS?, 4)", "take_standard(0x18?, 5)",
              'take_standard("", 6)', "take_standard(NULL, 7)", 'take_standard("", 8)', 'take_standard("xxxxxx"?, 9)', 'take_standard("xxxxxx"?, 10)', f'take_standard("{xs}"..., 11)',
              'take_bytes("xxxx", 4)', "take_bytes(ADDRESS?, -1)", "take_bytes(0x20?, 4)", "take_bytes(NULL, 4)", 'take_bytes("", 0)',
              'take_swift("xxxxx", 1)', "take_swift(ADDRESS?, 2)", "take_swift(0x40?, 3)", "take_swift(0x40?, 4)", "take_swift(0x60?, 5)", 'take_swift("abcdefghj", 6)']
    if build.ARCHITECTURE == "aarch64":  # the emulator has no process_vm_readv
        return
    expect(found == wanted, f"{[pair for pair in zip(wanted, found) if pair[0] != pair[1]][:4]}, {len(found)} calls")


RESULTS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define APART __attribute__((noinline, noclone, visibility("default")))
struct view { size_t size; const char *data; };
struct slice { const char *data; size_t size; };
struct standard { const char *data; size_t size; char own[16]; };
static char *page, many[700];
APART const char *give_text(int n) {
    __asm__ volatile("" : "+r"(n)::"memory");
    switch (n) {
    case 0: return "a literal";
    case 1: return strdup("of the heap, and longer than a word or two");
    case 2: return strcpy(page + 4096 - 4, "end");
    case 3: return memset(page + 4096 - 4, 'x', 4);
    case 4: return many;
    case 5: return (char *)16;
    case 6: return "";
    default: errno = ENOENT; return 0;
    }
}
APART struct view give_view(int n) { __asm__ volatile("" : "+r"(n)::"memory"); return n < 5 ? (struct view){n, "of a view"} : (struct view){9, n == 5 ? 0 : (char *)32}; }
APART struct slice give_slice(int n) { __asm__ volatile("" : "+r"(n)::"memory"); return (struct slice){"of a slice", n}; }
APART struct standard give_standard(int n) { __asm__ volatile("" : "+r"(n)::"memory"); return (struct standard){"of an object", n, {0}}; }
int main(void) {
    page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(many, 'm', sizeof many - 1);
    for (int n = 0; n < 9; n++) give_text(n), give_view(n), give_slice(n), give_standard(n);
    return 0;
}
"""
GIVEN = ("give_text(n: int) -> string errno", "give_view(n: int) -> string_view", "give_slice(n: int) -> str", "give_standard(n: int) -> std_string")


def results(**variables):
    def strings_that_functions_return_have_their_text(test):
        program = test.compile("program", "-O1", "-g0", source=RESULTS, compiler=argument_values.driver("gcc"))
        harness.plan(test.settings, program, test.made)

        def lines(*conditions):
            test.forget_traces()
            words = [*(word for text in GIVEN for word in ("--arguments", text)), *(word for text in conditions for word in ("--when", text))]
            path, errors = test.plan(program, *words)
            expect(path, errors)
            test.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="give_*", **variables)
            return [re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", line) for line in test.lines(test.checked_trace().path, ("give_text", "give_view", "give_slice", "give_standard"))]
        is_arm = build.ARCHITECTURE == "aarch64"
        texts = ['"a literal"', '"of the heap, and longer than a word or two"', '"end"', '"xxxx"?', f'"{"m" * 512}"...', "0x10?", '""', "NULL ENOENT", "NULL ENOENT"]
        wanted = []
        for n, text in enumerate(texts):
            view = f'"{"of a view"[:n]}"' if n < 5 else "NULL" if n == 5 else "0x20?"
            of_object = f' = "{"of an object"[:n]}"' if not is_arm else ""
            wanted += [f"give_text({n}) = {text}", f"give_view({n}) = {view}", f'give_slice({n}) = "{"of a slice"[:n]}"', f"give_standard({n}){of_object}"]
        found = lines()
        if is_arm:  # the emulator has no process_vm_readv
            expect(len(found) == len(wanted) and all(a == b or re.search(r" = (ADDRESS|0x[0-9a-f]+)\?$", a) for a, b in zip(found, wanted)), f"{found}")
            return
        expect(found == wanted, f"{[pair for pair in zip(wanted, found) if pair[0] != pair[1]][:4]}, {len(found)} calls")
        for conditions, name, chosen in ((["give_text() == NULL"], "give_text", [7, 8]), (["give_text(result ~ \"heap\")"], "give_text", [1]), (["give_text(errno == ENOENT)"], "give_text", [7, 8]),
                                         (["give_text() != NULL", "give_text(n > 4)"], "give_text", [5, 6]), (["give_slice() == \"of a\""], "give_slice", [4])):
            found = [line for line in lines(*conditions) if line.startswith(name)]
            expect(found == [line for line in wanted if line.startswith(name) and int(re.search(r"\((\d)", line)[1]) in chosen], f"{conditions}: {found}")
    return strings_that_functions_return_have_their_text


CONDITIONS = [("take_standard(a == \"a\")",), ("take_standard(a != \"a\")",), ("take_standard(a ~ \"text\")",), ("take_standard(a ~ \"*word\")",), ("take_bytes(a ~ \"mmm\")",),
              ("take_bytes(a == NULL)",), ("take_bytes(a != NULL)",), ("take_views(b ~ \"quote\")", "take_views(a > 1)"), ("take_slices(e == \"\")",), ("take_counted(b == \"\")",)]


def conditions_hold_for_them_as_for_strings(test):
    """What --when records is what --where chooses, and --by has each value."""
    program = test.compile("program", "-O1", "-g0", "-lm", source=PLAIN)
    harness.plan(test.settings, program, test.made)
    words = [word for text in SAID[:-2] for word in ("--arguments", text)]
    whole = test.path("whole.trace")
    subprocess.run(["cp", test.recorded(program, *words), whole], check=True)
    texts = test.json("report", whole, "--by", "argument:a", "--function", "take_standard")
    expect("a text that is longer than any word" in json.dumps(texts), str(texts)[:300])
    kinds = set()
    for group in CONDITIONS:
        name = group[0].split("(")[0]
        options = [word for condition in group for word in ("--where", condition)]
        shown = [json.loads(line) for line in test.tool("replay", "--json", whole, *options).stdout.splitlines()]
        wanted = [call["arguments"] for call in shown if call["name"] == name]
        found = [arguments for called, arguments, _ in test.calls(test.recorded(program, *words, *(word for condition in group for word in ("--when", condition))), f"^{name}$")]
        expect(found == wanted, f"{group}: {found}, not {wanted}")
        kinds.add(0 if not wanted else 1)
    expect(kinds == {0, 1}, "the conditions tell nothing apart")


def hidden_ones_are_not_read(test):
    program = test.compile("program", "-O1", "-g", source=r"""
#include <string>
__attribute__((noinline)) int take_both(const std::string &password, const std::string &user) { __asm__ volatile("" ::"r"(&password), "r"(&user)); return 1; }
int main() { return take_both("a secret of more than fifteen bytes", "somebody else whom we know") - 1; }
""", compiler=build.DRIVERS["gcc"][".cpp"].split()[0])
    harness.plan(test.settings, program, test.made)
    path, errors = test.plan(program, "--arguments", "*take_both*")
    test.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*")
    trace = test.checked_trace().path
    calls = test.calls(trace, "^take_both")
    expect([call[1] for call in calls] == [{"password": {"hidden": True}, "user": "somebody else whom we know"}], f"{calls} {errors}")
    expect(b"a secret of" not in suite.read_bytes(trace), "the trace has it")


def results_are_hidden_by_their_name_or_the_functions(test):
    program = test.compile("program", "-O1", "-g", source=r"""
#include <string.h>
#define APART __attribute__((noinline, noclone))
APART const char *give_name(void) { __asm__ volatile(""); return "somebody-kept"; }
APART const char *give_password(void) { __asm__ volatile(""); return "hunter-kept"; }
APART const char *next_token(void) { __asm__ volatile(""); return "word-kept"; }
int main(void) { return strlen(give_name()) + strlen(give_password()) + strlen(next_token()) == 0; }
""")
    for hidden, wanted in (([], {"give_name": '"somebody-kept"', "give_password": "ADDRESS", "next_token": '"word-kept"'}),
                           (["--hide", "result"], {"give_name": "ADDRESS", "give_password": "ADDRESS", "next_token": "ADDRESS"})):
        test.forget_traces()
        harness.plan(test.settings, program, test.made)
        path, errors = test.plan(program, "--arguments", "give_*,next_*", *hidden)
        expect(path, errors)
        test.execute([program], TRACER_ARGUMENTS=path, TRACER_FUNCTIONS="*")
        trace = test.checked_trace().path
        found = dict(re.sub(r"0x[0-9a-f]+", "ADDRESS", line).split("() = ") for line in test.lines(trace, tuple(wanted)))
        expect(found == wanted, f"{hidden}: {found}")
        words = [int.from_bytes(suite.read_bytes(trace)[at:at + 8], "little") for at in range(0, len(suite.read_bytes(trace)) & ~7, 8)]
        values = b"".join((word >> 8).to_bytes(7, "little") if word & 0xff == 0x1c else (word >> 32).to_bytes(4, "little") for word in words if word & 0xff in (0x1c, 0x28))
        expect(b"hunter" not in values and (b"somebody" in values) == (not hidden), "the trace has it")


def what_is_said_wrongly_is_refused(test):
    for text, wanted in (("f(a: bytes)", "bytes[n]"), ("f(a: bytes[n])", "n is no parameter with a number"), ("f(a: bytes[a])", "a is no parameter with a number"),
                         ("f(n: double, a: bytes[n])", "n is no parameter with a number"), ("f(a: text)", "text is a string that debug information describes"),
                         ("f() -> text", "text is a string that debug information describes"), ("f(n: int) -> bytes[n]", "nothing counts the bytes of a result"),
                         ("f() -> str errno", "does not say failure")):
        done = test.tool("record", "--force", "-o", test.path("a.trace"), "--arguments", text, "--", "true", status=2)
        expect(wanted in done.stderr, f"{text}: {done.stderr}")


MODES = {"slots": "*", "arm": "*gcc*"}


def tests():
    cases = {}
    for compiler in ("gcc", "clang"):
        for optimization in ("-O0", "-O2"):
            name = f"{compiler}{optimization}"
            options = ["-g", "-std=c++17", optimization] + (["-fstandalone-debug"] if compiler == "clang" else [])
            cases[f"cpp.{name}"] = debug_prototypes.source(CPP_SOURCE, compiler, ".cpp", *options, names="take_", choose="*take_*", least=1 if optimization == "-O0" else 0.8)
            cases[f"libcxx.{name}"] = debug_prototypes.source(LIBCXX_SOURCE, compiler, ".cpp", *options, names="take_", choose="*take_*", least=1 if optimization == "-O0" else 0.9)
            cases[f"said.{name}"] = said(compiler, optimization)
    more = ["-g", "-std=c++17", "-O2"]
    cases["cpp.gcc-untracked"] = debug_prototypes.source(CPP_SOURCE, "gcc", ".cpp", *more, "-fno-var-tracking", names="take_", choose="*take_*", least=0.65)
    cases["cpp.gcc-dwarf4"] = debug_prototypes.source(CPP_SOURCE, "gcc", ".cpp", *more, "-gdwarf-4", "-fdebug-types-section", names="take_", choose="*take_*", least=0.8)
    cases["results.gcc"], cases["results.gcc-slow"] = results(), results(TRACER_CALLSITES="1")
    cases["cpp.gcc-slow"] = debug_prototypes.source(CPP_SOURCE, "gcc", ".cpp", *more, names="take_", choose="*take_*", least=0.8, TRACER_CALLSITES="1")
    if build.ARCHITECTURE == "aarch64":
        return [Texts(f"text_values.{name}", check) for name, check in cases.items() if "gcc" in name]
    cases["cpp.clang-declared"] = debug_prototypes.source(CPP_SOURCE, "clang", ".cpp", *more, names="take_", choose="*take_*", least=0)
    cases["rust.0"], cases["rust.3"] = debug_prototypes.rust(0, 1, RUST), debug_prototypes.rust(3, 0.5, RUST)
    cases["swift.-Onone"], cases["swift.-O"] = swift("-Onone"), swift("-O")
    return [Texts(f"text_values.{name}", check) for name, check in cases.items()] + suite.tests_of(__name__, Texts)
