# packages: gcc libc6-dev
# records: main cc1 *as *ld*
# needs: gcc
# version: gcc -dumpfullversion
cat >main.c <<'END'
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[16]; };
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
int main(int count, char **arguments) {
    struct node *list = 0;
    char *sorted[100];
    double sum = 0;
    for (int i = 0; i < 100; i++) {
        struct node *node = malloc(sizeof *node);
        snprintf(node->text, sizeof node->text, "%x", i * 7919);
        node->next = list, list = node, sorted[i] = node->text;
        sum += sqrt(i) + pow(i, 0.3);
    }
    qsort(sorted, 100, sizeof *sorted, by_text);
    printf("%s %s %.6f %s %d\n", sorted[0], sorted[99], sum, setlocale(LC_ALL, ""), count);
    return count > 1 ? atoi(arguments[1]) : 0;
}
END
echo 'int main( { return 0; }' >broken.c
for options in "-O0 -g" "-O2 -flto" "-O3 -static" "-Os -fPIE -pie -Wl,-z,now"; do
    gcc $options main.c -o main -lm && ./main 3 || echo "status $?"
done
gcc -O2 -S main.c -o - | sha256sum
gcc -c broken.c || echo "status $?"
