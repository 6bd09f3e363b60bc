# packages: gcc libc6-dev
# records: main *gcc*
# needs: gcc
# status: 6
# version: gcc -dumpfullversion
# quick
cat >part.c <<'END'
#include <stdio.h>
int part(int x) { printf("part %d\n", x); return x * 3; }
__attribute__((constructor)) static void begin(void) { puts("part begins"); }
__attribute__((destructor)) static void end(void) { puts("part ends"); }
END
cat >plugin.c <<'END'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int part(int);
static __thread int calls;
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((constructor)) static void begin(void) { printf("plugin begins %zu\n", strlen("with a call")); }
int work(int x) {
    int values[4] = {x, 3, 1, 2};
    qsort(values, 4, sizeof *values, by_value);
    return part(values[3]) + (int)sqrt(x) + ++calls;
}
END
cat >main.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void *again(void *argument) {
    void *plugin = dlopen("./plugin.so", RTLD_LAZY);
    int (*work)(int) = (int (*)(int))dlsym(plugin, "work");
    printf("%d\n", work(16));
    dlclose(plugin);
    return argument;
}
int main(void) {
    for (int flags = RTLD_LAZY;; flags = RTLD_NOW) {
        void *plugin = dlopen("./plugin.so", flags);
        if (!plugin) { puts(dlerror()); return 1; }
        int (*work)(int) = (int (*)(int))dlsym(plugin, "work");
        for (int i = 0; i < 3; i++) printf("%d\n", work(i * 100));
        pthread_t thread;
        pthread_create(&thread, 0, again, 0);
        pthread_join(thread, 0);
        if (dlclose(plugin)) puts(dlerror());
        if (flags == RTLD_NOW) break;
    }
    void *libm = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
    double (*cosine)(double) = (double (*)(double))dlsym(libm, "cos");
    printf("%.3f %d\n", cosine(1), dlsym(RTLD_DEFAULT, "not_there") != 0);
    printf("%d\n", dlopen("./nowhere.so", RTLD_NOW) != 0);
    Dl_info info;
    printf("%d %s\n", dladdr((void *)main, &info) != 0, dlerror() ? "an error" : "none");
    return 6;
}
END
set -e
gcc -O1 -shared -fPIC part.c -o libpart.so
gcc -O1 -shared -fPIC plugin.c -o plugin.so -L. -lpart -Wl,-rpath,'$ORIGIN' -lm
gcc -O1 main.c -o main -ldl -pthread
./main
