// Ten thousand functions, and one that calls each through a slot.
#include "subject.h"
#define TEN(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define HUNDRED(DO, n) TEN(DO, n##0) TEN(DO, n##1) TEN(DO, n##2) TEN(DO, n##3) TEN(DO, n##4) TEN(DO, n##5) TEN(DO, n##6) \
    TEN(DO, n##7) TEN(DO, n##8) TEN(DO, n##9)
#define THOUSAND(DO, n) HUNDRED(DO, n##0) HUNDRED(DO, n##1) HUNDRED(DO, n##2) HUNDRED(DO, n##3) HUNDRED(DO, n##4) \
    HUNDRED(DO, n##5) HUNDRED(DO, n##6) HUNDRED(DO, n##7) HUNDRED(DO, n##8) HUNDRED(DO, n##9)
#define ALL(DO) THOUSAND(DO, 0) THOUSAND(DO, 1) THOUSAND(DO, 2) THOUSAND(DO, 3) THOUSAND(DO, 4) THOUSAND(DO, 5) THOUSAND(DO, 6) \
    THOUSAND(DO, 7) THOUSAND(DO, 8) THOUSAND(DO, 9)
#define DEFINE(n) EXPORT int many_##n(int value) { OPAQUE(); return value; }
#define CALL(n) sum += many_##n(value);
ALL(DEFINE)
EXPORT int many_calls(int value) {
    int sum = 0;
    ALL(CALL)
    return sum;
}
