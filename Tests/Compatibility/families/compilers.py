"""Compilers, builders and debuggers."""
import normal
from program import Program

CPP = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct fib { static constexpr long value = fib<N - 1>::value + fib<N - 2>::value; };
template <> struct fib<1> { static constexpr long value = 1; };
template <> struct fib<0> { static constexpr long value = 0; };
int main() {
    std::map<std::string, int> m; std::vector<int> v;
    for (int i = 0; i < 100; i++) { m[std::to_string(i % 7)]++; v.push_back((i * 37) % 101); }
    std::sort(v.begin(), v.end());
    try { throw std::runtime_error("thrown"); } catch (std::exception &e) { std::cout << e.what() << m.size() << v[3] << fib<60>::value; }
    std::cout << std::regex_replace(std::string("a1b22"), std::regex("[0-9]+"), "#") << "\n";
}
"""
C = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
struct node { struct node *next; int value; };
int twice(int x) { return 2 * x; }
int main(void) {
    int values[64]; struct node *list = 0; double sum = 0;
    for (int i = 0; i < 64; i++) { values[i] = (i * 37) % 64; struct node *n = malloc(sizeof *n); n->next = list; n->value = twice(i); list = n; sum += sqrt(i); }
    qsort(values, 64, sizeof *values, compare);
    char text[64]; snprintf(text, sizeof text, "%d %d %.6f", values[10], list->value, sum);
    printf("%s %zu\n", text, strlen(text));
    return 0;
}
"""
SWIFT = r"""
protocol Shape { func area() -> Double }
struct Square: Shape { let side: Double; func area() -> Double { side * side } }
final class Node<T: Comparable> { var value: T; var next: Node?; init(_ value: T) { self.value = value } }
enum Failure: Error { case odd(Int) }
func half(_ n: Int) throws -> Int { if n % 2 == 1 { throw Failure.odd(n) }; return n / 2 }
var counts: [String: Int] = [:]
for word in "a b c a b a".split(separator: " ") { counts[String(word), default: 0] += 1 }
print(counts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ","))
let shapes: [any Shape] = (1...10).map { Square(side: Double($0)) }
print(shapes.reduce(0) { $0 + $1.area() })
do { print(try half(4)); print(try half(3)) } catch { print(error) }
"""
RUST = r"""
use std::collections::HashMap;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
fn main() {
    let total = Arc::new(Mutex::new(0u64)); let (tx, rx) = mpsc::channel();
    let threads: Vec<_> = (0..4).map(|n| { let (total, tx) = (total.clone(), tx.clone()); thread::spawn(move || { *total.lock().unwrap() += n; tx.send(n * n).unwrap(); }) }).collect();
    for t in threads { t.join().unwrap(); } drop(tx);
    let mut got: Vec<u64> = rx.iter().collect(); got.sort();
    let mut map: HashMap<String, usize> = HashMap::new(); for w in "a b c a b a".split(' ') { *map.entry(w.to_string()).or_default() += 1; }
    let shapes: Vec<Box<dyn Shape>> = (1..10).map(|n| Box::new(Square(n as f64)) as Box<dyn Shape>).collect();
    let caught = std::panic::catch_unwind(|| { let v: Vec<i32> = vec![]; v[3] });
    println!("{} {:?} {} {} {}", total.lock().unwrap(), got, map["a"], shapes.iter().map(|s| s.area()).sum::<f64>(), caught.is_err());
}
"""
MAKE = "OBJECTS := $(patsubst %,f%.o,$(shell seq 1 24))\nall: program\n\t./program\nprogram: main.o $(OBJECTS)\n\t$(CC) -o $@ $^\nf%.o: f%.c\n\t$(CC) -O1 -c -o $@ $<\nmain.o: main.c\n\t$(CC) -c -o $@ $<\n"
GENERATE = r"""
for i in $(seq 1 24); do echo "#include <stdio.h>
int f$i(int x) { char t[20]; snprintf(t, 20, \"%d\", x); return t[0] + $i; }"; done | awk '/^#/ { n++ } { print > "f" n ".c" }'
{ for i in $(seq 1 24); do echo "int f$i(int);"; done; echo '#include <stdio.h>'; echo 'int main(void) { int s = 0;'; for i in $(seq 1 24); do echo "s += f$i($i);"; done; echo 'printf("%d\n", s); return 0; }'; } > main.c
"""
CMAKE = "cmake_minimum_required(VERSION 3.10)\nproject(p C CXX)\nfind_package(Threads REQUIRED)\nadd_library(l SHARED lib.c)\nadd_executable(e main.cpp)\ntarget_link_libraries(e l Threads::Threads)\nenable_testing()\nadd_test(NAME runs COMMAND e)\nadd_test(NAME fails COMMAND e x)\n"
GDB = r"""set pagination off
break twice if x == 10
run
bt
info locals
finish
watch sum
continue
continue
delete
tbreak qsort
continue
bt
info sharedlibrary libm
frame function main
print values[3]
call twice(21)
stepi
info threads
continue
"""


def programs():
    return [
        Program("gcc", "gcc -O2 -g -Wall main.c -o program -lm && ./program; gcc -O3 -S main.c -o main.s; gcc -c broken.c || echo $?", files={"main.c": C, "broken.c": "int main( { return 0; }\n"}, outputs=("program", "main.s"), needs="gcc:gcc", version="gcc --version",
                traced="x86_64-linux-gnu-gcc-12 cc1 ld", quick=True, normalise=(normal.replace(r"/tmp/\w+|FOLDER/cwd/tmp/\w+", "TEMP"),)),
        Program("g++", "g++ -O2 -std=c++20 main.cpp -o program && ./program", files={"main.cpp": CPP}, outputs=("program",), needs="g++:g++", version="g++ --version", traced="cc1plus", timeout=300, runs=2),
        Program("clang", "clang -O2 -g -c main.c -o main.o; clang -O2 main.c -o program -lm && ./program; clang -fsyntax-only broken.c 2>&1 || echo $?; clang -S -emit-llvm -O1 main.c -o main.ll", files={"main.c": C, "broken.c": "int main( { return 0; }\n"},
                outputs=("main.o", "program", "main.ll"), needs="clang:clang", version="clang --version", timeout=300, runs=2, traced="clang-21|clang"),
        Program("swiftc", "swiftc -O main.swift -o program && ./program; swiftc -typecheck broken.swift 2>&1 || echo $?", files={"main.swift": SWIFT, "broken.swift": "let x: Int = \"text\"\n"}, needs="swiftc", version="swiftc --version 2>&1", timeout=400, runs=2,
                traced="swift-frontend program"),
        Program("rustc", "rustc -O --edition 2021 main.rs -o program && ./program; rustc broken.rs 2>&1 || echo $?", files={"main.rs": RUST, "broken.rs": "fn main() { let x: i32 = \"text\"; }\n"}, needs="rustc", version="rustc --version", timeout=400, runs=2,
                traced="rustc program", normalise=(normal.replace(r"\(\d+\) panicked", "panicked"),)),
        Program("make -j", "make -j4 -s; touch f3.c; make -j2 -s; make -q && echo nothing to do; make nothing_like_this || echo $?", prepare=GENERATE, files={"Makefile": MAKE}, outputs=("program", "*.o"), needs="make:make gcc:gcc", version="make --version", timeout=300,
                runs=2, traced="make"),
        Program("cmake", "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release > log; tail -1 log; cmake --build build -j2 2>&1 | grep -v '%' || true; ctest --test-dir build 2>&1 || echo $?; build/e", files={"CMakeLists.txt": CMAKE, "lib.c": "int f(int x) { return x + 1; }\n",
                "main.cpp": "#include <thread>\n#include <iostream>\nextern \"C\" int f(int);\nint main(int n, char **) { int r = 0; std::thread t([&] { r = f(1); }); t.join(); std::cout << r << \"\\n\"; return n > 1 ? 3 : 0; }\n"}, timeout=400, runs=2,
                needs="cmake:cmake g++:g++ make:make", version="cmake --version", traced="cmake make", normalise=(normal.times, normal.replace(r"N+ sec|TIME", "T"), normal.replace(r" +", " "))),
        Program("bison flex gas", "bison -d calc.y -o calc.c 2>&1; wc -l < calc.h; as -o x.o x.s; ld -o x x.o; ./x || echo $?", files={"calc.y": "%{\nint yylex(void); void yyerror(const char *);\n%}\n%token NUM\n%left '+' '-'\n%left '*' '/'\n%%\ninput: | input e '\\n';\ne: NUM | e '+' e | e '*' e | '(' e ')' ;\n%%\n",
                "x.s": ".globl _start\n_start: mov $60, %eax\n mov $7, %edi\n syscall\n"}, outputs=("calc.c", "x"), needs="bison:bison as:binutils", version="bison --version", traced="bison"),
        Program("gdb", "gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set startup-with-shell off' -x commands ./program 2>&1", prepare="gcc -g -O0 main.c -o program -lm", files={"main.c": C, "commands": GDB}, needs="gdb:gdb gcc:gcc", version="gdb --version", timeout=200,
                runs=2, traced="gdb program", known="each traced call on a stack shows as a frame `<signal handler called>` (docs/internals/unwinding.md, Unwinding); these frames are not compared", normalise=(normal.pids, normal.without("warning: Error disabling|^\\[New|^\\[Switching|libtracer|<signal handler called>"), normal.replace(r"^#\d+ +", "# "),
                           normal.replace(r"Target Id +", "Target Id "))), # as wide as the process's id
        Program("valgrind", "valgrind --leak-check=full ./program 2>&1; valgrind --tool=cachegrind --cachegrind-out-file=/dev/null ./program 2>&1 | grep -v refs | grep -v miss", prepare="gcc -g -O0 main.c -o program -lm", files={"main.c": C.replace("free", "")}, needs="valgrind:valgrind gcc:gcc",
                version="valgrind --version", timeout=300, runs=2, traced="valgrind", compare="stdout status", normalise=(normal.without(r"^--\d+--", r"^==PID==    (at|by) |^==\d+==    (at|by) "),),
                known="Memcheck's unwinder follows only ip, sp and bp: stacks in its reports lack the caller of a traced call and name the trampoline; they are not compared"),
        Program("perf-less tools", "nm -C --size-sort program | tail -3; size program; gcov --version | head -1; objcopy -O binary -j .text program text; md5sum text; addr2line -e program -f 0 ; c++filt _ZNSt6vectorIiSaIiEE9push_backEOi; readelf -wi program | md5sum", prepare="gcc -g main.c -o program -lm",
                files={"main.c": C}, needs="gcc:gcc nm:binutils", version="nm --version", traced="x86_64-linux-gnu-nm"),
    ]
