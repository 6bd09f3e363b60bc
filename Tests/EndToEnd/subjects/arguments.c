// Arguments and results of every class of the psABI (section 3.2.3), on the first calls of two threads.
// compilers: gcc clang
// library: values
// link: -lm
// variant: plt
// variant: noplt@gcc exe:-fno-plt
// modes: functions arm arm_old
#include "subject.h"
#include <complex.h>
typedef struct { long a, b; } two_words;              // rax:rdx
typedef struct { double a, b; } two_doubles;          // xmm0:xmm1
typedef struct { long a; double b; } word_double;     // rax, xmm0
typedef struct { double a; long b; } double_word;     // xmm0, rax
typedef struct { long double a; } one_long_double;    // st0
typedef struct { char text[24]; } in_memory;          // hidden pointer, returned in rax
typedef struct { unsigned char bytes[4096]; } page;   // passed by value, on the stack
double eight_doubles(double, double, double, double, double, double, double, double);
double ten_doubles(double, double, double, double, double, double, double, double, double, double);
long ten_words(long, long, long, long, long, long, long, long, long, long);
two_words return_two_words(long);
two_doubles return_two_doubles(double);
word_double return_word_double(long);
double_word return_double_word(double);
one_long_double return_struct_long_double(long double);
long double return_long_double(long double, long double);
_Complex long double return_complex_long_double(_Complex long double);
_Complex double return_complex_double(_Complex double);
_Complex float return_complex_float(_Complex float);
__int128 return_int128(__int128);
in_memory return_in_memory(const char *);
unsigned long take_page(page);
page return_page(unsigned);
double variadic_sum(int count, ...);
double variadic_mixed(const char *kinds, ...);

#ifdef LIB_values
double EXPORT eight_doubles(double a, double b, double c, double d, double e, double f, double g, double h) {
    return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h;
}
double EXPORT ten_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j) {
    return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h + 256 * i + 512 * j;
}
long EXPORT ten_words(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
    return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h + 256 * i + 512 * j;
}
EXPORT two_words return_two_words(long x) { return (two_words){x, ~x}; }
EXPORT two_doubles return_two_doubles(double x) { return (two_doubles){x, -x}; }
EXPORT word_double return_word_double(long x) { return (word_double){x, x + 0.5}; }
EXPORT double_word return_double_word(double x) { return (double_word){x, (long)x + 1}; }
EXPORT one_long_double return_struct_long_double(long double x) { return (one_long_double){x / 3}; }
EXPORT long double return_long_double(long double a, long double b) { return a / b; }
EXPORT _Complex long double return_complex_long_double(_Complex long double z) { return z * 2 + 1; }
EXPORT _Complex double return_complex_double(_Complex double z) { return z * 2 + 1; }
EXPORT _Complex float return_complex_float(_Complex float z) { return z * 2 + 1; }
EXPORT __int128 return_int128(__int128 x) { return -x; }
EXPORT in_memory return_in_memory(const char *text) {
    in_memory result = {{0}};
    for (int i = 0; i < 23 && text[i]; i++) result.text[i] = text[i];
    return result;
}
EXPORT unsigned long take_page(page p) {
    unsigned long sum = 0;
    for (int i = 0; i < 4096; i++) sum = sum * 31 + p.bytes[i];
    return sum;
}
EXPORT page return_page(unsigned seed) {
    page p;
    for (int i = 0; i < 4096; i++) p.bytes[i] = (unsigned char)(seed = seed * 1103515245 + 12345);
    return p;
}
EXPORT double variadic_sum(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    while (count--) sum = sum * 2 + va_arg(list, double);
    va_end(list);
    return sum;
}
EXPORT double variadic_mixed(const char *kinds, ...) {
    va_list list;
    va_start(list, kinds);
    double sum = 0;
    for (; *kinds; kinds++) {
        if (*kinds == 'i') sum += va_arg(list, int);
        else if (*kinds == 'd') sum += va_arg(list, double);
        else if (*kinds == 'L') sum += (double)va_arg(list, long double);
        else sum += (double)va_arg(list, two_doubles).b;
    }
    va_end(list);
    return sum;
}
#else
static volatile double one = 1; // keeps the compiler from knowing the arguments
static unsigned long sum_of(const page *p) {
    unsigned long sum = 0;
    for (int i = 0; i < 4096; i++) sum = sum * 31 + p->bytes[i];
    return sum;
}
static void *all(void *unused) {
    double x = one;
    // The very first call of this thread has eight doubles.
    CHECK(eight_doubles(x, 2 * x, 3 * x, 4 * x, 5 * x, 6 * x, 7 * x, 8 * x) == 1793);
    CHECK(ten_doubles(x, 2 * x, 3 * x, 4 * x, 5 * x, 6 * x, 7 * x, 8 * x, 9 * x, 10 * x) == 9217);
    long i = (long)x;
    CHECK(ten_words(i, 2 * i, 3 * i, 4 * i, 5 * i, 6 * i, 7 * i, 8 * i, 9 * i, 10 * i) == 9217);
    two_words w = return_two_words(i + 41);
    CHECK(w.a == 42 && w.b == ~42L);
    two_doubles d = return_two_doubles(2.5 * x);
    CHECK(d.a == 2.5 && d.b == -2.5);
    word_double wd = return_word_double(7 * i);
    CHECK(wd.a == 7 && wd.b == 7.5);
    double_word dw = return_double_word(9 * x);
    CHECK(dw.a == 9 && dw.b == 10);
    one_long_double l = return_struct_long_double(x);
    CHECK(l.a == (long double)x / 3);
    CHECK(return_long_double(x, 7 * x) == (long double)x / 7);
    _Complex long double zl = return_complex_long_double(3 * x + 4 * x * I);
    CHECK(creall(zl) == 7 && cimagl(zl) == 8);
    _Complex double zd = return_complex_double(3 * x + 4 * x * I);
    CHECK(creal(zd) == 7 && cimag(zd) == 8);
    _Complex float zf = return_complex_float((float)(3 * x) + (float)(4 * x) * I);
    CHECK(crealf(zf) == 7 && cimagf(zf) == 8);
    CHECK(return_int128(((__int128)i << 100) + 5) == -(((__int128)1 << 100) + 5));
    in_memory m = return_in_memory("through a pointer");
    CHECK(!memcmp(m.text, "through a pointer", 18));
    page p = return_page(17);
    CHECK(take_page(p) == sum_of(&p));
    CHECK(variadic_sum(10, x, x, x, x, x, x, x, x, x, x) == 1023);
    CHECK(variadic_mixed("iididLsd", 1, 2, 3 * x, 4, 5 * x, (long double)(6 * x), d, 8 * x) == 26.5);
    return unused;
}
int main(void) {
    all(NULL);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, all, NULL) && !pthread_join(thread, NULL));
    printf("%d %s %f %ld %g %c %x %e %d %s %f %ld %g %c %x %e %d %s %f %Lg\n", 1, "two", 3.0 * one, 4L, 5.5 * one, '6', 7,
           8e8 * one, 9, "ten", 11.0 * one, 12L, 13.5 * one, 'n', 15, 16e16 * one, 17, "eighteen", 19.0 * one, 20.25L * one);
    return 0;
}
#endif
