"""Interpreters and their own tests."""
import normal
from program import Program

# Finds a Python with a `test` package: the first of these, or Debian's python3 with libpython3.11-testsuite.
FIND_PYTHON = r"""
for python in /usr/bin/python3 $(ls -d "$(getent passwd "$(id -u)" | cut -d: -f6)"/.pyenv/versions/3.11*/bin/python3.11 /usr/local/bin/python3 2>/dev/null); do "$python" -c 'import test.test_json' 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo 'no python3 with its test package: apt-get install libpython3.11-testsuite' >&2; exit 1; }
echo "$python" > python
"""


def regression(*tests, limit=""):
    # Skipped: a test that fails bare wherever a .pth file of site-packages imports threading.
    return Program("python3 " + tests[0].removeprefix("test_"), f'exec "$(cat python)" -m test -u none --timeout 400 -i test_import_from_another_thread {" ".join(tests)} 2>&1', prepare=FIND_PYTHON, normalise=(
        normal.times, normal.pids, normal.without(r"load avg", r"^== ", r"^Total duration|^Using random seed|^TIME|^0:|^Result:|slowest"), normal.replace(r" in TIME| \(TIME\)|test_python_\w+|", "")), traced="python3|python3.11", timeout=300, runs=2, limit=limit,
        version="python3 -V")


PYTHON = r"""
import ctypes, decimal, hashlib, json, multiprocessing, re, sqlite3, ssl, subprocess, sys, tempfile, threading, zlib, asyncio, concurrent.futures
def everything():
    print(subprocess.run(["sh", "-c", "echo child; exit 4"], capture_output=True).stdout, sys.version_info[:1])
    base = sqlite3.connect(":memory:")
    base.execute("create table t(a, b)")
    base.executemany("insert into t values(?, ?)", [(i, i * i) for i in range(5000)])
    base.create_function("twice", 1, lambda x: 2 * x)
    print(base.execute("select sum(twice(b)), count(*), max(a) from t where a % 3 = 0").fetchone())
    print(hashlib.sha256(b"x" * 100000).hexdigest(), zlib.crc32(zlib.decompress(zlib.compress(b"text" * 10000))), ssl.create_default_context().verify_mode)
    async def ticker(n):
        for i in range(3): await asyncio.sleep(0.001 * n)
        return n
    async def main(): return await asyncio.gather(*(ticker(n) for n in range(5)))
    print(asyncio.run(main()))
    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(lambda n: len(json.dumps(list(range(n)))), range(200))))
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    values = (ctypes.c_int * 8)(5, 3, 8, 1, 9, 2, 7, 4); ctypes.CDLL(None).qsort(values, 8, 4, callback); print(list(values))
    print(decimal.Decimal(2).sqrt(), len(re.findall(r"(a|b)+c", "abac" * 1000)))
    with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(abs, range(-5, 5)))
    with multiprocessing.get_context("spawn").Pool(2) as pool: print(pool.map(abs, range(-5, 5)))
    raise SystemExit(9)
if __name__ == "__main__": everything()
"""
LUA = r"""
local co = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield(i) end end)
local s = 0; for i = 1, 1000 do s = s + co() end; print(s)
local t = {}; for i = 1, 20000 do t[i] = (i * 7919) % 20011 end; table.sort(t); print(t[1], t[10000], #t)
print(pcall(function() error({code = 3}) end)); print(select(2, pcall(error, "text")))
print(string.format("%5.2f %q", math.pi, "a\nb"), ("x"):rep(10):gsub("x", "yz")); print(#io.popen("seq 100"):read("a")); local f = setmetatable({}, {__gc = function() print("collected") end}); f = nil; collectgarbage()
"""
RUBY = r"""
require 'json'; require 'digest'; require 'socket'; require 'timeout'; require 'zlib'; require 'open3'
puts Digest::SHA256.hexdigest('x' * 10000), JSON.parse(JSON.generate((1..1000).to_h { |i| [i.to_s, i * i] })).size
f = Fiber.new { 1000.times { |i| Fiber.yield i }; :done }; s = 0; 1000.times { s += f.resume }; puts s
puts (1..4).map { |n| Thread.new { (1..20000).sum { |x| x % (n + 1) } } }.map(&:value).inspect
begin; raise ArgumentError, 'thrown'; rescue => e; puts e.message; ensure; puts 'ensured'; end
puts catch(:found) { 10.times { |i| throw :found, i if i == 7 } }; puts Open3.capture2('tr a-z A-Z', stdin_data: 'child')[0]
server = TCPServer.new('127.0.0.1', 0); t = Thread.new { c = server.accept; c.puts c.gets.reverse; c.close }; c = TCPSocket.new('127.0.0.1', server.addr[1]); c.puts 'hello'; puts c.read; t.join
begin; Timeout.timeout(0.05) { sleep }; rescue Timeout::Error; puts 'timed out'; end
pid = fork { exit! 5 }; Process.wait pid; puts $?.exitstatus; GC.start; trap('USR1') { puts 'signal' }; Process.kill('USR1', $$); sleep 0.01; exit 4
"""
PHP = r"""<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } echo fib(20), "\n";
$a = range(1, 20000); shuffle($a); sort($a); echo array_sum($a), ' ', md5(serialize($a)), "\n"; echo json_encode(['a' => [1, 2.5, null]]), "\n"; echo preg_replace_callback('/\d+/', fn($m) => $m[0] * 2, 'a1b22'), "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo get_class($e), "\n"; } finally { echo "finally\n"; }
function gen() { for ($i = 0; $i < 1000; $i++) yield $i; } echo array_sum(iterator_to_array(gen())), "\n"; $f = new Fiber(function () { $x = Fiber::suspend(1); echo "got $x\n"; }); echo $f->start(), "\n"; $f->resume('back');
echo shell_exec('echo child'), strlen(gzcompress(str_repeat('text', 1000))) > 10 ? "zip\n" : "", hash('sha256', 'x'), "\n"; exit(3);
"""
PERL = r"""
use strict; use warnings; use threads; use POSIX qw(:sys_wait_h); use Digest::SHA qw(sha256_hex); use Storable qw(dclone); use List::Util qw(sum); use Time::HiRes qw(ualarm); use Socket;
my %count; $count{length $_}++ for map { "x" x ($_ % 17) } 1..20000; print join(",", map { "$_=$count{$_}" } sort { $a <=> $b } keys %count), "\n";
my $text = join " ", map { sprintf "%05.2f", sqrt $_ } 1..500; $text =~ s/(\d+)\.(\d+)/$2.$1/g; print sha256_hex($text), "\n"; eval { die { code => 42 } }; print "caught $@->{code}\n";
my @t = map { my $n = $_; threads->create(sub { sum(map { $_ % $n } 1..5000) }) } 2..5; print join(",", map { $_->join } @t), "\n";
my $pid = fork; if (!$pid) { exec "echo", "from the child" } waitpid $pid, 0; print "status ", $? >> 8, "\n"; $SIG{ALRM} = sub { die "alarm\n" }; eval { ualarm 20000; select undef, undef, undef, 20; }; print "woken by $@"; print `echo backticks`; exit 5;
"""
TCL = r"""
package require Tcl 8.6
proc fib n { if {$n < 2} { return $n }; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }; puts [fib 18]
coroutine c apply {{} { yield; for {set i 0} {$i < 1000} {incr i} { yield $i } }}; set s 0; for {set i 0} {$i < 1000} {incr i} { incr s [c] }; puts $s
if {[catch {error thrown} m]} { puts "caught $m" }; puts [exec echo child]; set srv [socket -server {apply {{ch a p} { puts $ch "hello"; close $ch }}} -myaddr 127.0.0.1 0]; set port [lindex [fconfigure $srv -sockname] 2]
set c [socket 127.0.0.1 $port]; fileevent $c readable {gets $::c ::line; set ::done 1}; vwait ::done; puts $line; puts [zlib crc32 [string repeat x 10000]]; puts [regsub -all {(a)(b)} [string repeat ab 100] {\2\1} out]; after 5 {set ::fired 1}; vwait ::fired; puts [llength [lsort -integer [lmap x [lrepeat 5000 7] {expr {$x * 3}}]]]; exit 6
"""


def programs():
    return [
        Program("python3", 'exec /usr/bin/python3 main.py', files={"main.py": PYTHON}, status=9, needs="/usr/bin/python3:python3",
                version="/usr/bin/python3 -V", quick=True, traced="python3.11"),
        regression("test_json", "test_re", "test_struct", "test_zlib", "test_sqlite3"),
        regression("test_threading", "test_thread", "test_queue"),
        regression("test_subprocess", "test_signal", limit="8M"),  # two hundred processes; waits in loops: hundreds of millions of calls
        regression("test_ctypes"),
        regression("test_asyncio", limit="8M"),
        regression("test_ssl", "test_hashlib"),
        regression("test_multiprocessing_main_handling", "test_ftplib", "test_httplib", "test_selectors", limit="8M"),
        regression("test_faulthandler", "test_dict", "test_generators", "test_exceptions", "test_math", "test_float", "test_io", limit="8M"),
        Program("pytest", '"$PYTHON" -m pytest -q -p no:cacheprovider -n 2 . 2>&1; ', python="pytest pytest-xdist", status=1, files={"test_it.py": "import pytest, threading\n@pytest.mark.parametrize('n', range(60))\ndef test_square(n): assert (n * n) ** .5 == n\n"
                "def test_fails(): assert 1 == 2\n@pytest.fixture\ndef tmp(tmp_path): yield tmp_path\ndef test_file(tmp, capfd): (tmp / 'x').write_text('y'); print('out'); assert capfd.readouterr().out == 'out\\n'\n"
                "def test_raises():\n    with pytest.raises(ZeroDivisionError): 1 / 0\n"},
                # The worker that gets a test, and the order of results, vary.
                normalise=(normal.times, normal.replace(r"^\[gw\d\]", "[gw]"), normal.replace(r"^\.*F\.*(?= +\[)", "F and dots")), traced="python3|python3.11", version='"$PYTHON" -m pytest --version'),
        Program("numpy OpenBLAS", '"$PYTHON" main.py', python="numpy", files={"main.py": "import numpy as np\nr = np.random.default_rng(1)\na = r.standard_normal((400, 400)); b = a @ a.T + 400 * np.eye(400)\nprint(f'{np.linalg.slogdet(b)[1]:.10e}', "
                "f'{np.abs(np.linalg.solve(b, a) - np.linalg.inv(b) @ a).max():.1e}' < '1', np.linalg.eigvalsh(b)[:2].round(6), np.fft.rfft(a[0]).sum().round(9), np.sort(a.ravel())[:2], np.linalg.svd(a)[1][:2].round(8))\n"},
                version='"$PYTHON" -c "import numpy; print(\'numpy\', numpy.__version__)"', traced="python3|python3.11"),
        Program("python3 greenlet", '"$PYTHON" main.py', python="greenlet gevent", files={"main.py": "import gevent, greenlet\nfrom gevent import monkey; monkey.patch_all()\nimport socket, threading, time\ndef f(n):\n    for i in range(50): gevent.sleep(0)\n    return n * 2\n"
                "print(sum(g.value for g in gevent.joinall([gevent.spawn(f, n) for n in range(200)])))\ns = gevent.server.StreamServer(('127.0.0.1', 0), lambda c, a: c.sendall(c.recv(100).upper())) if hasattr(gevent, 'server') else None\n"
                "def deep(n): return 0 if n == 0 else 1 + deep(n - 1)\ng = [greenlet.greenlet(deep) for _ in range(20)]\nprint([x.switch(200) for x in g][:2])\n"
                "a = greenlet.greenlet(lambda: [b.switch(i) for i in range(1000)]); b = greenlet.greenlet(lambda x: [a.switch() for _ in range(2000)]); a.switch(); print('switched')\n"},
                version='"$PYTHON" -c "import gevent; print(\'gevent\', gevent.__version__)"', traced="python3|python3.11"),
        Program("perl", "exec perl main.pl", files={"main.pl": PERL}, status=5, needs="perl:perl", version="perl -v | sed -n 2p", quick=True),
        Program("tclsh", "exec tclsh main.tcl", files={"main.tcl": TCL}, status=6, needs="tclsh:tcl8.6", version="echo 'puts [info patchlevel]' | tclsh", traced="tclsh8.6"),
        Program("lua", "exec lua5.4 main.lua", files={"main.lua": LUA}, needs="lua5.4:lua5.4", version="lua5.4 -v", traced="lua5.4", normalise=(normal.replace(r"table: ADDRESS", "table"),)),
        Program("ruby", "exec ruby main.rb", files={"main.rb": RUBY}, status=4, needs="ruby:ruby", version="ruby --version", traced="ruby3.1"),
        Program("php", "exec php -n main.php", files={"main.php": PHP}, status=3, needs="php:php-cli", version="php --version", traced="php8.2"),
    ]
