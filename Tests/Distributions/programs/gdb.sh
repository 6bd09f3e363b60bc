# packages: gdb gcc libc6-dev
# records: gdb main
# version: gdb --version
# timeout: 300
cat >main.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int twice(int x) { return 2 * x; }
static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int values[32], sum = 0;
    for (int i = 0; i < 32; i++) values[i] = i * 37 % 32, sum += twice(i);
    qsort(values, 32, sizeof *values, by_value);
    printf("%d %d\n", values[10], sum);
    return 3;
}
END
cat >commands <<'END'
set pagination off
set startup-with-shell off
break twice if x == 10
run
backtrace
info locals
finish
delete
next
print sum
python print(gdb.selected_frame().name(), gdb.parse_and_eval("values[3]"))
call twice(21)
stepi
continue
END
gcc -g -O0 main.c -o main
# Process ids, addresses and the libraries that are there differ between runs: sed replaces them.
gdb -batch -nx -x commands ./main >out 2>gdb.log || {
    cat gdb.log
    ! grep -q "Couldn't write extended state" gdb.log || exit 77 # the CPU's state is larger than this gdb knows
    exit 1
}
sed -E 's/process [0-9]+/process N/; s/0x[0-9a-f]+/ADDRESS/g; /^\[|Using host libthread_db/d' out
