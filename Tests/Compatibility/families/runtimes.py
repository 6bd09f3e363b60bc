"""Programs whose language or library does something to stacks, allocators, threads or unwinding."""
import normal
from program import Program

NODE = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs'), child = require('child_process'), http = require('http');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e6; i++) s += i % workerData; parentPort.postMessage(s); }
else (async () => {
  console.log(crypto.createHash('sha256').update('x'.repeat(1e5)).digest('hex'), zlib.gunzipSync(zlib.gzipSync(Buffer.from('text'.repeat(1000)))).length, child.execSync('echo child').toString());
  try { JSON.parse('{'); } catch (e) { console.log(e.name); }
  console.log(await Promise.all([2, 3, 5, 7].map(n => new Promise((ok, no) => { const w = new Worker(__filename, { workerData: n }); w.on('message', ok); w.on('error', no); }))));
  const server = http.createServer((q, r) => r.end('served ' + q.url)); await new Promise(ok => server.listen(0, '127.0.0.1', ok));
  console.log((await Promise.all([...Array(20).keys()].map(n => fetch(`http://127.0.0.1:${server.address().port}/${n}`).then(r => r.text())))).join()); server.close();
  await fs.promises.writeFile('f', 'abc'); console.log((await fs.promises.readFile('f')).toString(), await new Promise(ok => crypto.pbkdf2('p', 's', 1000, 16, 'sha512', (e, k) => ok(k.toString('hex')))));
  const wasm = new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11])); console.log(new WebAssembly.Instance(wasm).exports.add(2, 3));
  try { console.log(require('./addon.node').twice(21)); } catch (e) { console.log('addon: ' + e.message); }
  process.exitCode = 6;
})();
"""
ADDON = r"""
#include <stddef.h>
#include <stdint.h>
typedef struct napi_env__ *napi_env; typedef struct napi_value__ *napi_value; typedef struct napi_callback_info__ *napi_callback_info; typedef napi_value (*napi_callback)(napi_env, napi_callback_info);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **); int napi_get_value_int32(napi_env, napi_value, int32_t *); int napi_create_int32(napi_env, int32_t, napi_value *);
int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *); int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
static napi_value twice(napi_env env, napi_callback_info info) { size_t n = 1; napi_value a, r; int32_t x; napi_get_cb_info(env, info, &n, &a, 0, 0); napi_get_value_int32(env, a, &x); napi_create_int32(env, 2 * x, &r); return r; }
napi_value napi_register_module_v1(napi_env env, napi_value exports) { napi_value f; napi_create_function(env, "twice", 5, twice, 0, &f); napi_set_named_property(env, exports, "twice", f); return exports; }
"""
JAVA = r"""
import java.io.*; import java.net.*; import java.util.*; import java.util.concurrent.*; import java.util.stream.*; import java.util.zip.*;
public class Main {
  static int deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }
  static int forever(int n) { return forever(n + 1) + 1; }
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8); List<Future<Integer>> all = new ArrayList<>();
    for (int i = 0; i < 40; i++) { final int n = i; all.add(pool.submit(() -> IntStream.range(0, 10000 * n).map(x -> x % 7).sum())); }
    long sum = 0; for (Future<Integer> f : all) sum += f.get(); pool.shutdown();
    try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null pointer"); }
    try { forever(0); } catch (StackOverflowError e) { System.out.println("stack overflow"); }
    System.out.println(sum + " " + deep(5000) + " " + IntStream.range(0, 100000).parallel().filter(x -> x % 3 == 0).count());
    ServerSocket s = new ServerSocket(0, 5, InetAddress.getLoopbackAddress()); Thread t = new Thread(() -> { try (Socket c = s.accept()) { c.getOutputStream().write("hello\n".getBytes()); } catch (IOException e) { } }); t.start();
    try (Socket c = new Socket(s.getInetAddress(), s.getLocalPort())) { System.out.println(new BufferedReader(new InputStreamReader(c.getInputStream())).readLine()); } t.join();
    Process p = new ProcessBuilder("sh", "-c", "echo child; exit 3").inheritIO().start(); System.out.println(p.waitFor()); CRC32 crc = new CRC32(); crc.update(new byte[100000]); System.out.println(crc.getValue()); System.gc();
    List<byte[]> garbage = new ArrayList<>(); for (int i = 0; i < 2000; i++) { garbage.add(new byte[10000]); if (i % 50 == 0) garbage.clear(); }
    System.exit(8);
  }
}
"""
BOOST = r"""
#include <boost/coroutine/all.hpp>
#include <boost/context/fiber.hpp>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>
namespace ctx = boost::context; namespace co = boost::coroutines;
int main() {
    long sum = 0;
    { ctx::fiber f{[&](ctx::fiber &&back) { for (int i = 0; i < 20000; i++) { std::ostringstream text; text << i; sum += text.str().size(); back = std::move(back).resume(); } return std::move(back); }};
      while (f) f = std::move(f).resume(); }
    std::cout << sum << "\n";
    co::asymmetric_coroutine<int>::pull_type numbers([](co::asymmetric_coroutine<int>::push_type &yield) { for (int i = 0; i < 5000; i++) { if (i == 4000) throw std::runtime_error("out of a coroutine"); yield(i); } });
    long total = 0; try { for (int n : numbers) { total += n; std::vector<int> v(n % 50); } } catch (std::exception &e) { std::cout << e.what() << " " << total << "\n"; }
    { std::vector<co::asymmetric_coroutine<int>::pull_type> many; for (int k = 0; k < 100; k++) many.emplace_back([k](co::asymmetric_coroutine<int>::push_type &yield) { struct guard { ~guard() { std::cout << ""; } } g; for (int i = 0;; i++) yield(i * k); });
      long all = 0; for (int round = 0; round < 50; round++) for (auto &c : many) { all += c.get(); c(); } std::cout << all << "\n"; }
    return 0;
}
"""
CORO = r"""
#include <coroutine>
#include <cstdio>
#include <exception>
#include <functional>
#include <queue>
#include <stdexcept>
#include <thread>
#include <mutex>
#include <condition_variable>
struct task { struct promise_type; std::coroutine_handle<promise_type> h;
  struct promise_type { int value = 0; std::exception_ptr error; task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; } std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; } std::suspend_always yield_value(int v) { value = v; return {}; } void return_void() {} void unhandled_exception() { error = std::current_exception(); } };
  bool next() { h.resume(); if (h.promise().error) std::rethrow_exception(h.promise().error); return !h.done(); } ~task() { h.destroy(); } };
task count(int n) { for (int i = 0; i < n; i++) { char t[16]; snprintf(t, 16, "%d", i); co_yield t[0] + i; } throw std::runtime_error("from a coroutine"); }
std::mutex m; std::condition_variable cv; std::queue<std::coroutine_handle<>> ready; int left = 400;
struct hop { bool await_ready() { return false; } void await_suspend(std::coroutine_handle<> h) { std::lock_guard l(m); ready.push(h); cv.notify_one(); } void await_resume() {} };
struct detached { struct promise_type { detached get_return_object() { return {}; } std::suspend_never initial_suspend() noexcept { return {}; } std::suspend_never final_suspend() noexcept { return {}; } void return_void() {} void unhandled_exception() { std::terminate(); } }; };
std::atomic<long> sum;
detached walk(int n) { for (int i = 0; i < 50; i++) { co_await hop(); sum += n; } std::lock_guard l(m); if (--left == 0) cv.notify_all(); }
int main() { long s = 0; try { auto t = count(20000); while (t.next()) s += t.h.promise().value; } catch (std::exception &e) { printf("%s %ld\n", e.what(), s); }
  for (int i = 0; i < 400; i++) walk(i);
  std::thread all[4]; for (auto &t : all) t = std::thread([] { for (;;) { std::unique_lock l(m); cv.wait(l, [] { return !ready.empty() || !left; }); if (ready.empty()) return; auto h = ready.front(); ready.pop(); l.unlock(); h.resume(); } });
  for (auto &t : all) t.join(); printf("%ld\n", sum.load()); }
"""
ASYNC = r"""
import Dispatch
import Foundation
actor Counter { var n = 0; func add(_ k: Int) { n += k } ; func value() -> Int { n } }
struct Thrown: Error { let n: Int }
func work(_ n: Int) async throws -> Int { await Task.yield(); if n == 77 { throw Thrown(n: n) }; return n * n }
@main struct Main {
    static func main() async {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in for n in 0..<500 { group.addTask { await Task.yield(); await counter.add(n) } } }
        print(await counter.value())
        do { let all = try await withThrowingTaskGroup(of: Int.self) { group in for n in 0..<50 { group.addTask { try await work(n) } }; return try await group.reduce(0, +) }; print(all); _ = try await work(77) } catch { print(error) }
        let stream = AsyncStream<Int> { c in Task.detached { for i in 0..<1000 { c.yield(i) }; c.finish() } }
        var sum = 0; for await i in stream { sum += i }; print(sum)
        let queue = DispatchQueue(label: "q", attributes: .concurrent); let group = DispatchGroup(); let lock = NSLock(); nonisolated(unsafe) var total = 0
        for i in 0..<200 { queue.async(group: group) { lock.withLock { total += i } } }
        await withCheckedContinuation { c in group.notify(queue: queue) { c.resume() } }; print(total)
        print(try! JSONDecoder().decode([String: Int].self, from: Data("{\"a\": 1}".utf8)), String(format: "%05.1f", 3.14159)); try? await Task.sleep(nanoseconds: 1_000_000); print("end")
    }
}
"""
OMP = r"""
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) { enum { N = 300 }; static double a[N][N], b[N][N], c[N][N];
  #pragma omp parallel for
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { a[i][j] = (i * j) % 7; b[i][j] = (i + j) % 5; }
  #pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { double s = 0; for (int k = 0; k < N; k++) s += a[i][k] * b[k][j]; c[i][j] = s; }
  double t = 0; long n = 0;
  #pragma omp parallel for reduction(+:t)
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) t += floor(sqrt(c[i][j]));
  #pragma omp parallel
  {
    #pragma omp single
    for (int i = 0; i < 2000; i++) {
      #pragma omp task
      { void *p = malloc(i + 1); free(p);
        #pragma omp atomic
        n += i; }
    }
  }
  for (int i = 0; i < 2000; i++) {
    #pragma omp parallel num_threads(4)
    {
      #pragma omp critical
      n++;
    }
  }
  printf("%.1f %ld\n", t, n); }
"""
GO = r"""
package main
/*
#cgo LDFLAGS: -lm
#include <math.h>
#include <stdlib.h>
#include <string.h>
extern int goCompare(void *, void *);
static int cmp(const void *a, const void *b) { return goCompare((void *)a, (void *)b); }
static void sort(int *v, int n) { qsort(v, n, sizeof *v, cmp); }
static double root(double x) { char *p = malloc(100); strcpy(p, "text"); double r = sqrt(x) + (double)strlen(p); free(p); return r; }
*/
import "C"
import ("fmt"; "net"; "os"; "os/exec"; "os/user"; "runtime"; "sync"; "unsafe")
//export goCompare
func goCompare(a, b unsafe.Pointer) C.int { return *(*C.int)(a) - *(*C.int)(b) }
func deep(n int) int { var pad [64]byte; if n == 0 { return int(C.root(4)) }; return deep(n-1) + int(pad[n%64]) }
func main() {
	var wg sync.WaitGroup; var mu sync.Mutex; sum := 0.0
	for i := 0; i < 200; i++ { wg.Add(1); go func(i int) { defer wg.Done(); for k := 0; k < 50; k++ { r := float64(C.root(C.double(i * i))); mu.Lock(); sum += r; mu.Unlock(); runtime.Gosched() } }(i) }
	wg.Wait(); fmt.Println(sum, deep(20000))
	v := []C.int{5, 3, 8, 1, 9, 2, 7, 4}; C.sort(&v[0], C.int(len(v))); fmt.Println(v)
	func() { defer func() { fmt.Println("recovered", recover()) }(); var p *int; *p = 1 }()
	out, _ := exec.Command("sh", "-c", "echo child").Output(); fmt.Print(string(out)); u, _ := user.Current(); fmt.Println(u.Uid == fmt.Sprint(os.Getuid())); a, err := net.LookupHost("localhost"); fmt.Println(len(a) > 0, err)
	runtime.GC(); os.Exit(4)
}
"""
PANIC = r"""
use std::panic; use std::ffi::c_void; use std::thread;
extern "C-unwind" { fn through(f: extern "C-unwind" fn(*mut c_void), data: *mut c_void); }
extern "C" { fn qsort(base: *mut c_void, n: usize, size: usize, cmp: extern "C-unwind" fn(*const c_void, *const c_void) -> i32); }
struct Guard(&'static str); impl Drop for Guard { fn drop(&mut self) { println!("dropped {}", self.0); } }
extern "C-unwind" fn fails(data: *mut c_void) { let _g = Guard("inner"); let n = unsafe { *(data as *mut i32) }; if n > 0 { let mut m = n - 1; unsafe { through(fails, &mut m as *mut i32 as *mut c_void) } } else { panic!("deep") } }
extern "C-unwind" fn compare(a: *const c_void, b: *const c_void) -> i32 { unsafe { *(a as *const i32) - *(b as *const i32) } }
fn main() { panic::set_hook(Box::new(|_| {}));
  for n in 0..3 { let r = panic::catch_unwind(|| { let _g = Guard("outer"); let mut k = n; unsafe { through(fails, &mut k as *mut i32 as *mut c_void) } }); println!("caught {}", r.unwrap_err().downcast_ref::<&str>().unwrap()); }
  let r = thread::spawn(|| { let v: Vec<i32> = vec![]; v[1] }).join(); println!("thread {}", r.is_err());
  let mut v = [5, 3, 9, 1]; unsafe { qsort(v.as_mut_ptr() as *mut c_void, 4, 4, compare) }; println!("{:?}", v);
  println!("{}", std::backtrace::Backtrace::force_capture().to_string().contains("main"));
  let s: i64 = (0..8).map(|k| thread::spawn(move || (0..100000i64).map(|x| x.to_string().len() as i64 * k).sum::<i64>())).map(|t| t.join().unwrap()).sum(); println!("{s}"); std::process::exit(5) }
"""
PANIC_C = "#include <stdlib.h>\nvoid through(void (*f)(void *), void *data) { void *p = malloc(10); f(data); free(p); }\n"
ALLOC = r"""
#include <malloc.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>
int main() { std::vector<std::thread> all; long sums[8] = {};
  for (int t = 0; t < 8; t++) all.emplace_back([t, &sums] { std::map<int, std::string> m; unsigned x = t + 1; for (int i = 0; i < 30000; i++) { x = x * 1103515245 + 12345; m[x % 500] = std::string(x % 300, 'a' + t); if (x % 3 == 0) m.erase(x % 500);
      void *p = nullptr; if (posix_memalign(&p, 64, x % 5000 + 1)) abort(); memset(p, t, x % 5000 + 1); p = realloc(p, 2 * (x % 5000 + 1)); sums[t] += ((char *)p)[0]; free(p); } for (auto &e : m) sums[t] += e.second.size(); });
  for (auto &t : all) t.join(); long s = 0; for (long v : sums) s += v; printf("%ld\n", s); void *big = malloc(200 << 20); memset(big, 1, 1 << 20); free(big); printf("%zu\n", malloc_usable_size(malloc(100)) >= 100 ? (size_t)1 : 0); }
"""
SANITIZED = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
int main(int n, char **arguments) {
  std::mutex m; std::map<int, std::string> all; std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) threads.emplace_back([&, t] { for (int i = 0; i < 2000; i++) { std::lock_guard l(m); all[i % 100] = std::to_string(i * t); } });
  for (auto &t : threads) t.join();
  try { std::vector<int>(3).at(5); } catch (std::out_of_range &) { puts("caught"); }
  printf("%zu\n", all.size()); fflush(stdout);
  if (n > 1 && !strcmp(arguments[1], "overflow")) { char *p = (char *)malloc(10); volatile int i = 12; p[i] = 1; free(p); }
  if (n > 1 && !strcmp(arguments[1], "race")) { static int shared; std::thread a([] { for (int i = 0; i < 1000; i++) shared++; }), b([] { for (int i = 0; i < 1000; i++) shared++; }); a.join(); b.join(); }
  if (n > 1 && !strcmp(arguments[1], "undefined")) { volatile int big = 2147483647; volatile int sum = big + 1; (void)sum; volatile int shift = 40; volatile int s = 1 << shift; (void)s; }
  return 0; }
"""
REPORT = (normal.replace(r"\(BuildId: .*\)|\(\S+\+ADDRESS\)", ""), normal.replace(r"\bT\d+\b|tid=\d+", "T"), normal.replace(r"pid=\d+", "pid"), normal.pids)
SUMMARY = " 2>&1 | grep -E 'SUMMARY|ERROR|WARNING: |runtime error|main.cpp' | sed -E 's/0x[0-9a-f]+/A/g; s/[0-9]{3,}/N/g'"


def sanitizer(name, flag, mode, extra=""):
    return Program(name, f'{extra}./program; {extra}./program {mode}{SUMMARY} || true; echo "${{PIPESTATUS[0]}}"', prepare=f"g++ -g -O1 -fsanitize={flag} main.cpp -o program -pthread",
                   files={"main.cpp": SANITIZED}, needs="g++:g++", version="g++ --version", traced="program", timeout=120, runs=2, normalise=REPORT)


def programs():
    return [
        Program("node", "exec node main.js", prepare="gcc -O1 -shared -fPIC addon.c -o addon.node", files={"main.js": NODE, "addon.c": ADDON}, status=6, needs="node:nodejs gcc:gcc", version="node --version", quick=True),
        Program("npm-like node", "node --expose-gc -e 'let a=[];for(let i=0;i<3e5;i++)a.push({i});a=null;gc();console.log(1)'; echo 'console.log([1,2,3].map(x=>x*2), process.argv.length)' | node - a b; node -e 'setTimeout(()=>{throw new Error(\"late\")},5)' 2>&1 | grep -c late; node --cpu-prof --cpu-prof-name=p -e 'for(let i=0;i<3e7;i++);'; ls p",
                needs="node:nodejs", version="node --version", traced="node", runs=2),
        Program("java", "exec java -Xmx128m -Xss1m -cp . Main", prepare="javac Main.java", files={"Main.java": JAVA}, status=8, needs="javac:openjdk-17-jdk-headless", version="java -version 2>&1", timeout=200, runs=2),
        Program("javac jar", "javac -d out Main.java; jar --create --date=2024-01-01T00:00:00Z --file m.jar -C out .; unzip -l m.jar | tail -1 || jar tf m.jar | wc -l; java -Xint -version 2>&1 | wc -l", files={"Main.java": JAVA}, outputs=("out/*.class",), needs="javac:openjdk-17-jdk-headless", version="javac -version 2>&1", timeout=300, runs=2, traced="javac"),
        Program("Boost coroutines", "exec ./program", prepare="g++ -O1 -w -std=c++17 main.cpp -o program -lboost_coroutine -lboost_context -lboost_thread -lboost_system -pthread || g++ -O1 -w -std=c++17 main.cpp -o program -lboost_coroutine -lboost_context", files={"main.cpp": BOOST}, needs="boost/coroutine/all.hpp:libboost-coroutine-dev boost/context/fiber.hpp:libboost-context-dev g++:g++",
                traced="program", version="dpkg-query -Wf '${Version}' libboost-coroutine1.74-dev"),
        Program("C++20 coroutines", "exec ./program", prepare="g++ -O1 -std=c++20 main.cpp -o program -pthread", files={"main.cpp": CORO}, needs="g++:g++", traced="program", version="g++ --version"),
        Program("Swift concurrency", "exec ./program", prepare="swiftc -O -parse-as-library main.swift -o program", files={"main.swift": ASYNC}, needs="swiftc", traced="program", version="swiftc --version 2>&1"),
        Program("OpenMP", "OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive exec ./program", prepare="gcc -O2 -fopenmp main.c -o program -lm", files={"main.c": OMP}, needs="gcc:gcc", traced="program", version="gcc --version"),
        Program("OpenMP LLVM", "OMP_NUM_THREADS=4 KMP_BLOCKTIME=0 exec ./program", prepare="gcc -O2 -fopenmp -c main.c; gcc main.o -o program -lm -L$(dirname $(ls /usr/lib/llvm-*/lib/libomp.so* | head -1)) -Wl,-rpath,$(dirname $(ls /usr/lib/llvm-*/lib/libomp.so* | head -1)) -l:$(basename $(ls /usr/lib/llvm-*/lib/libomp.so* | head -1))",
                files={"main.c": OMP}, needs="gcc:gcc x86_64-linux-gnu/libomp.so.5:libomp-dev", traced="program", version="dpkg-query -Wf '${Version}' libomp-dev"),
        Program("Go cgo", "exec ./program", prepare="GOFLAGS=-mod=mod GO111MODULE=off GOCACHE=$PWD/gocache go build -o program main.go; rm -rf gocache", files={"main.go": GO}, status=4, needs="go:golang-go gcc:gcc", traced="program", version="go version"),
        Program("go build", "GO111MODULE=off GOCACHE=$PWD/gocache go vet pure.go; GO111MODULE=off GOCACHE=$PWD/gocache go run pure.go", files={"pure.go": "package main\nimport \"os\"\nfunc main() { println(len(os.Args)) }\n"}, needs="go:golang-go", traced="go", version="go version", timeout=300, runs=2,
                known="the go command is linked statically in part: only what goes through libc is recorded"),
        Program("Rust panics", "exec ./program", prepare="gcc -O1 -fexceptions -c c.c && ar rcs libc_part.a c.o && rustc -O --edition 2021 -C panic=unwind -L . -l static=c_part main.rs -o program", files={"main.rs": PANIC, "c.c": PANIC_C}, status=5, needs="rustc gcc:gcc", traced="program", version="rustc --version"),
        Program("jemalloc", "exec ./program", prepare="g++ -O1 main.cpp -o program -pthread -ljemalloc", files={"main.cpp": ALLOC}, needs="jemalloc/jemalloc.h:libjemalloc-dev g++:g++", traced="program", version="dpkg-query -Wf '${Version}' libjemalloc-dev"),
        Program("tcmalloc", "exec ./program", prepare="g++ -O1 main.cpp -o program -pthread -ltcmalloc", files={"main.cpp": ALLOC}, needs="gperftools/tcmalloc.h:libgoogle-perftools-dev g++:g++", traced="program", version="dpkg-query -Wf '${Version}' libgoogle-perftools-dev"),
        Program("glibc malloc", "exec ./program", prepare="g++ -O1 main.cpp -o program -pthread", files={"main.cpp": ALLOC}, needs="g++:g++", traced="program", version="ldd --version"),
        # gcc's ASan runtime is a shared library and wants to be the first one; with any preload library it must be configured for that.
        sanitizer("ASan", "address", "overflow", "ASAN_OPTIONS=verify_asan_link_order=0 "),
        sanitizer("TSan", "thread", "race"),
        sanitizer("UBSan", "undefined", "undefined"),
        Program("erlang", "erl -noshell -eval 'P = self(), [spawn(fun() -> P ! lists:sum(lists:seq(1, N)) end) || N <- lists:seq(1, 500)], S = lists:sum([receive X -> X end || _ <- lists:seq(1, 500)]), io:format(\"~p ~p ~s~n\", [S, catch error(thrown_away) =:= 1, os:cmd(\"echo child\")]), halt(3).'",
                status=3, needs="erl:erlang-base", traced="beam.smp", version="dpkg-query -Wf '${Version}' erlang-base", runs=2),
    ]
