"""`tracer plan`, held against what it does not know: objdump's reading of the same code, and programs that run with the plan applied.

- Hostile: functions in assembly, one for each thing that breaks the patching of entries (subjects/hostile.S), with the tactic or
  reason that must come out.
- Bytes: of real modules, every planned patch begins and ends where objdump has instructions, and no direct jump of objdump's listing
  leads into bytes that are replaced.
- Applied: apply.c patches every planned function of a program and its libraries, also libc's; it must run as without. Also for
  aarch64, under qemu.
- Lengths: what the plan says of how long calls may be.
- Sites: every direct call and jump that objdump lists to a function of tactic calls is a site of the plan, and nothing else is.
- Origins: each relocated instruction stands for the one of the original that does the same.
- Names: those of static functions, wherever a symbol table may be.
- Command: output, errors, the cache.
"""
import bisect
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import planfile
import pytest
import recorded_programs
from recorded_programs import LIMIT, ROOT, TOOL, new_folder, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["/usr/bin/git", "/usr/bin/python3", "/usr/bin/gdb", "/usr/bin/openssl", "/usr/bin/perl"]
LIBRARIES = ["libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libm.so.6", "libz.so.1", "libsqlite3.so.0", "libgcc_s.so.1"]


def tracer(*arguments, cache=None, **options):
    return recorded_programs.tracer(*arguments, **({"XDG_CACHE_HOME": cache} if cache else {}), **options)


@functools.cache
def libraries():
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    known = {}
    for line in listed.splitlines():
        found = re.match(r"\s+(\S+) \((.*)\) => (\S+)", line)
        if found and "x86-64" in found[2]:
            known.setdefault(found[1], os.path.realpath(found[3]))
    return known


def plan(path, *options):
    """(elf_machine, functions) of the plan of a module, and where its file is."""
    cache = new_folder()
    tracer("plan", path, *options, cache=cache)
    [name] = os.listdir(cache + "/tracer/plans")
    file = f"{cache}/tracer/plans/{name}"
    return *planfile.read(file), file


@functools.cache
def plan_of_file(path):
    """It is made once: the module does not change any more."""
    return plan(path)[2]


@functools.cache
def hostile(*options):
    output = os.path.join(new_folder(), "hostile.so")
    subprocess.run(["gcc", "-o", output, "-shared", "-nostdlib", "-Wl,-Bsymbolic", *options, f"{HERE}/subjects/hostile.S"], check=True, timeout=LIMIT)
    return output


def written(name, text):
    """Writes a file into a folder of its own."""
    path = os.path.join(new_folder(), name)
    pathlib.Path(path).write_text(text)
    return path


def functions_of(path, *options):
    """Returns the functions of a module's plan, as the tool prints them, by their names and aliases."""
    found = json.loads(tracer("plan", path, "--json", *options).stdout)["functions"]
    return {name: each for each in found for name in [each["name"], *each.get("aliases", [])]}


class Expecting(unittest.TestCase):
    def check(self, path, source, fewest):
        """The source says of each function which tactic or reason must come out, of more than `fewest`."""
        functions = functions_of(path)
        expected = re.findall(r"^// expect (\S+) (\S+)(?: (.*))?$", pathlib.Path(HERE, "subjects", source).read_text(), re.M)
        self.assertGreater(len(expected), fewest)
        for name, tactic, words in expected:
            with self.subTest(name):
                self.assertIn(name, functions)
                self.assertEqual(functions[name]["tactic"], tactic, functions[name]["reason"])
                if tactic == "none":
                    self.assertIn(words, functions[name]["reason"])
                else:
                    self.assertIsNone(functions[name]["reason"])
        return functions


x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="code of x86_64")


@x86
class Hostile(Expecting):
    def test_each_function_has_its_tactic_or_reason(self):
        functions = self.check(hostile(), "hostile.S", 30)
        self.assertIn("alias", functions)
        self.assertNotIn("ordinary.cold", functions)
        self.assertEqual([name for name in functions if name.startswith("0x")], [])  # the byte before `restorer` is no function

    def test_it_is_the_same_without_padding_between_segments(self):
        self.check(hostile("-Wl,-z,noseparate-code"), "hostile.S", 30)

    def test_a_stripped_module_has_them_by_their_frames(self):
        path = hostile()
        whole = {each.address: each for each in plan(path)[1]}
        bare = path + ".bare"
        subprocess.run(["objcopy", "--strip-all", "--remove-section=.symtab", path, bare], check=True)
        subprocess.run(["objcopy", "--keep-global-symbol=ordinary", "--strip-all", path, bare], check=True)
        for each in plan(bare)[1]:
            if each.address in whole and each.names == whole[each.address].names:
                self.assertEqual(each.tactic, whole[each.address].tactic, each.name)

    def test_traps_are_planned_when_asked_for(self):
        path = hostile()
        for options, tactic in ([], "none"), (["--traps"], "trap"):
            self.assertEqual(functions_of(path, *options)["tight"]["tactic"], tactic)


class Callbacks(unittest.TestCase):
    """C++ functions that code generated by V8 calls."""

    SOURCE = """namespace v8 {
struct Value;
template <class T> struct FunctionCallbackInfo { int number; };
template <class T> struct PropertyCallbackInfo { int number; };
struct V8 { static void SetReturnAddressLocationResolver(unsigned long (*)(unsigned long)); };
}
int sum;
unsigned long (*resolver)(unsigned long);
void called_back(const v8::FunctionCallbackInfo<v8::Value> &info) { sum = sum * 3 + info.number; }
void gets(int, const v8::PropertyCallbackInfo<v8::Value> &info) { sum = sum * 5 + info.number; }
void other(int number) { sum = sum * 7 + number; }
#ifdef ANSWERED
void v8::V8::SetReturnAddressLocationResolver(unsigned long (*given)(unsigned long)) { resolver = given; }
#endif
"""

    def reasons(self, *options):
        path = written("callbacks.cpp", self.SOURCE)
        module = path.replace(".cpp", ".so")
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic", *options, "-o", module, path], check=True, timeout=LIMIT)
        found = functions_of(module).values()
        return {name: next(each["reason"] for each in found if name in each["name"]) for name in ("called_back", "gets", "other")}

    def test_they_are_left_alone_unless_v8_asks_where_their_return_address_is(self):
        reasons = self.reasons()
        self.assertIn("made at run time", reasons["called_back"])
        self.assertIn("made at run time", reasons["gets"])
        self.assertIsNone(reasons["other"])
        self.assertEqual(set(self.reasons("-DANSWERED").values()), {None})


class Links(Expecting):
    """Uses of x30 by functions of aarch64."""

    def test_who_reads_it_is_left_alone_and_who_only_uses_the_register_is_not(self):
        if not shutil.which("aarch64-linux-gnu-gcc"):
            self.skipTest("no aarch64-linux-gnu-gcc")
        path = os.path.join(new_folder(), "links.so")
        subprocess.run(["aarch64-linux-gnu-gcc", "-o", path, "-shared", "-nostdlib", f"{HERE}/subjects/links.S"], check=True, timeout=LIMIT)
        self.check(path, "links.S", 10)


class Code:
    """A module as objdump lists it."""

    JUMP = re.compile(r"(?:bnd |notrack |data16 |cs |ds )*(j\w+|loop\w*|call|xbegin)(?:,p[nt])?\s+(?:0x)?([0-9a-f]+)\b")

    def __init__(self, path):
        self.path, self.instructions, self.jumps = path, {}, []
        self.read()

    def read(self, *options):
        text = subprocess.run(["objdump", "-d", "-w", *options, self.path], capture_output=True, text=True, timeout=LIMIT, check=True).stdout
        for line in text.splitlines():
            parts = line.split("\t")
            if len(parts) < 2 or not parts[0].endswith(":"):
                continue
            address, length = int(parts[0][:-1], 16), len(parts[1].split())
            operation = parts[2] if len(parts) > 2 else ""
            self.instructions[address] = (length, operation)
            found = self.JUMP.match(operation)
            if found:
                self.jumps.append((address, found[1], int(found[2], 16)))

    def begin(self, address):
        """Returns True if an instruction begins there. After data in a stripped file's text, objdump, which knows no functions, is out of step."""
        if address not in self.instructions:
            self.read(f"--start-address={address}", f"--stop-address={address + 64}")
        return address in self.instructions


class OnRealModules:
    """`check` is given the path of each."""

    @pytest.mark.parametrize("name", [*MODULES, *LIBRARIES])
    def test_real_module(self, name):
        path = os.path.realpath(libraries().get(name, name))
        if not os.path.exists(path):
            pytest.skip(f"no {name} here")
        self.check(path)


@x86
class TestBytes(OnRealModules):
    def check(self, path):
        _, functions, _ = plan(path)
        functions.sort(key=lambda each: each.address)
        begins = [each.address for each in functions]
        code = Code(path)
        patched = [each for each in functions if each.tactic != "none"]
        assert len(patched) > 10
        inside, starts, used = {}, {}, {}
        for each in patched:
            start = each.address + each.patch
            if each.tactic == "calls":
                continue
            starts[start] = each
            for area in each.replaces:
                for address in area:
                    assert address not in used, f"{each.name} and {used[address]} replace the same byte"
                    used[address] = each.name
                for address in area[1:]:
                    inside[address] = each
            # Only whole instructions are relocated.
            at = start
            while at < each.address + each.resume:
                assert code.begin(at), f"{each.name}: 0x{at:x} is no instruction"
                length, text = code.instructions[at]
                at += length
                if re.match(r"(bnd |notrack |data16 )*call\b", text):
                    after = min(start + each.replaced, each.address + each.size)
                    assert at >= after, f"{each.name}: {text} returns into what is replaced"
            assert at == each.address + each.resume, each.name
            if each.tactic == "jump2":
                padding = [code.instructions[at][1] for at in range(each.landing - 8, each.landing + 5) if at in code.instructions and at + code.instructions[at][0] > each.landing]
                assert all(re.match(r"(data16 |cs )*(nop|int3|xchg +%ax,%ax)", text) for text in padding), (each.name, padding)
            if each.tactic == "neighbour":
                inside[each.landing] = each
                host = functions[bisect.bisect_right(begins, each.landing) - 1]
                assert host.tactic in ("jump5", "whole"), f"{each.name}: {host.name} is {host.tactic}"
                assert host.address + host.patch + 5 <= each.landing <= host.address + host.resume - 5, f"{each.name}: {host.name} does not leave these bytes"

        def is_code(site):
            """Not a text in or between functions, which objdump reads as jumps, too."""
            each = functions[max(bisect.bisect_right(begins, site) - 1, 0)]
            return each.address <= site < each.address + each.size and each.reason != planfile.NOT_CODE
        for site, name, target in code.jumps:
            if target in inside and site not in used and not (inside[target].tactic == "whole" and inside[target].address <= site < inside[target].address + inside[target].size):
                assert not is_code(site), f"0x{site:x}: {name} 0x{target:x} leads into the entry of {inside[target].name}, {inside[target].tactic}"
            # A loop to the first byte would be recorded as a call.
            if target in starts and name != "call" and starts[target].tactic != "whole":
                each = starts[target]
                assert not each.address <= site < each.address + each.size, f"0x{site:x}: {name} to the first byte of {each.name}"

    def test_hostile(self):
        self.check(hostile())


@x86
class TestSites(OnRealModules):
    def check(self, path):
        """Returns the number of sites of each function of tactic calls, by name."""
        _, functions, _ = plan(path)
        code = Code(path)
        functions.sort(key=lambda each: each.address)
        begins = [each.address for each in functions]
        known = {each.address: each for each in functions if each.tactic == "calls"}
        expected = {address: set() for address in known}
        for site, name, target in code.jumps:
            if target not in known:
                continue
            around = functions[max(bisect.bisect_right(begins, site) - 1, 0)]
            if name != "call" and around.address == target and site < target + around.size:
                continue  # an iteration
            end = site + code.instructions[site][0]
            expected[target].add(end - 4)
        for each in known.values():
            missing = expected[each.address] - set(each.sites)
            assert not set(each.sites) - expected[each.address] and (not missing or each.flags & planfile.HELD), (each.name, [hex(site) for site in missing])
        assert not any(each.sites for each in functions if each.tactic != "calls")
        return {each.name: len(each.sites) for each in known.values()}

    def test_hostile(self):
        found = self.check(hostile())
        assert (found["tight_called"], found["calls_and_loops"], found["called_by_unknown"]) == (3, 1, 1)
        held = {each.name for each in plan(hostile())[1] if each.flags & planfile.HELD}
        assert {"held_by_data", "held_by_code", "called_by_unknown"} <= held


def apply_library(compiler):
    output = os.path.join(new_folder(), "apply.so")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", f"-I{ROOT}/Sources/Format/CTraceLayout/include", "-o", output, f"{HERE}/apply.c"], check=True)
    return output


def entered(counts):
    """How many of the patched functions have been."""
    return int(pathlib.Path(counts).read_text().rstrip("\0").split()[1])


def outcome(command, **options):
    ended = subprocess.run(command, capture_output=True, timeout=LIMIT, **options)
    return ended.returncode, ended.stdout, ended.stderr


@x86
class TestApplied:
    """With every planned entry patched, also of libc."""

    library = staticmethod(functools.cache(lambda: apply_library("gcc")))

    def run_both(self, command, fewest, **variables):
        """The program's output, bare and patched, must be the same; more than `fewest` functions must have been entered."""
        path = os.path.realpath(shutil.which(command[0]))
        listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        modules = [path, *(os.path.realpath(found) for found in re.findall(r"=> (/\S+)", listed))]
        plans = written("plans", "".join(f"{module} {plan_of_file(module)}\n" for module in modules))
        environment = dict(os.environ, LC_ALL="C", PYTHONHASHSEED="0", **variables)
        bare = outcome([path, *command[1:]], env=environment)
        counts = plans + ".counts"
        environment.update(LD_PRELOAD=self.library(), PLANS=plans, COUNTS=counts)
        assert outcome([path, *command[1:]], env=environment) == bare
        assert entered(counts) > fewest

    def test_python(self):
        self.run_both(["/usr/bin/python3", "-c", PYTHON], 2000)

    def test_git(self):
        folder = new_folder()
        environment = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z", "HOME": scratch()}
        git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "init", "-q", folder], check=True)
        for n in range(5):
            pathlib.Path(folder, f"file{n}").write_text("line\n" * n * 100)
            subprocess.run([*git, "add", "."], check=True)
            subprocess.run([*git, "commit", "-qm", f"commit {n}"], check=True, env=dict(os.environ, **environment))
        for arguments in ["log", "-p", "--stat"], ["status"], ["diff", "HEAD~3"], ["blame", "file4"]:
            self.run_both([*git, *arguments], 300, **environment)

    def test_compiler_proper(self):
        found = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
        source = written("source.c", "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(
            f"int f{n}(int a, double *b) {{ int s = {n}; for (int i = 0; i < a; i++) s += b[i] * i; return s ? s : f{max(n - 1, 0)}(s, b); }}\n"
            for n in range(50)))
        self.run_both([found, "-quiet", "-O2", "-o", "-", source], 1000)

    @pytest.mark.parametrize("options", ["-O0", "-O2", "-O2 -fcf-protection=full", "-Os -fno-pie -no-pie"])
    def test_exceptions_of_cpp(self, options):
        source = written("throws.cpp", CPP)
        output = source.removesuffix(".cpp")
        subprocess.run(["g++", *options.split(), "-o", output, source], check=True)
        self.run_both([output], 100)

    @pytest.mark.parametrize("command", [
        ["openssl", "list", "-digest-algorithms"], ["perl", "-e", "print join(',', sort map { $_ * 7 % 101 } 1..1000)"],
        ["sqlite3", ":memory:", "create table t(a); insert into t values (3),(1),(2); select group_concat(a) from (select a from t order by a)"],
        ["openssl", "dgst", "-sha256", os.path.realpath(TOOL)], ["xz", "-9", "-c", os.path.realpath("/bin/ls")]], ids=lambda command: " ".join(command[:2]))
    def test_other_program(self, command):
        if not shutil.which(command[0]):
            pytest.skip(f"no {command[0]} here")
        self.run_both(command, 100)


class TestAppliedOnArm:
    """The same for aarch64, under qemu: what is relocated is one instruction."""

    SYSROOT = "/usr/aarch64-linux-gnu"
    library = staticmethod(functools.cache(lambda: apply_library("aarch64-linux-gnu-gcc")))

    @staticmethod
    @functools.cache
    def built(options):
        source = written("arm.cpp", CPP.replace("10000", "1000"))  # it enters the same functions, in a tenth of the calls
        program = source.removesuffix(".cpp")
        subprocess.run(["aarch64-linux-gnu-g++", *options.split(), "-o", program, source], check=True, capture_output=True)
        return program

    @pytest.mark.parametrize("options", ["-O0", "-O2", "-O2 -mbranch-protection=standard", "-O2 -mbranch-protection=standard -Wl,-z,force-bti"])
    def test_exceptions_of_cpp(self, options):
        emulators = [os.path.expanduser("~/.cache/tracer/qemu/qemu-aarch64"), shutil.which("qemu-aarch64-static")]
        qemu = next((path for path in emulators if path and os.path.exists(path)), None)
        if not qemu or not shutil.which("aarch64-linux-gnu-g++"):
            pytest.skip("no qemu-aarch64-static, or no aarch64-linux-gnu-g++")
        program = self.built(options)
        own = plan(program)
        lines = f"{program} {own[2]}\n"
        for path in ["/lib/libc.so.6", "/lib/libm.so.6", "/lib/libstdc++.so.6", "/lib/libgcc_s.so.1"]:
            lines += f"{path} {plan_of_file(os.path.realpath(self.SYSROOT + path))}\n"
        plans = written("plans", lines)
        counts = plans + ".counts"
        command = [qemu, "-L", self.SYSROOT]
        # Bare, the last one dies of what its start files lack; patched text is no longer guarded.
        bare = outcome([*command, self.built(options.removesuffix(" -Wl,-z,force-bti"))])
        patched = outcome([*command, "-E", f"LD_PRELOAD={self.library()}", "-E", f"PLANS={plans}", "-E", f"COUNTS={counts}", program])
        assert patched == bare
        assert entered(counts) > 100
        if "force-bti" in options:
            assert any(each.flags & planfile.SIGNED for each in own[1])


PYTHON = """
import collections, decimal, hashlib, json, random, re, struct, zlib
random.seed(7)
words = ["%x" % random.getrandbits(40) for _ in range(3000)]
print(hashlib.sha256(" ".join(sorted(words)).encode()).hexdigest())
print(len(re.findall(r"[a-f]+\\d", " ".join(words))), json.loads(json.dumps(words)) == words)
print(zlib.crc32(zlib.compress(" ".join(words).encode())), decimal.Decimal(2).sqrt())
print(collections.Counter("".join(words)).most_common(3), struct.pack("<dIq", 1.5, 2, -3))
class A:
    def __getattr__(self, name): raise AttributeError(name)
for n in range(100):
    try: A().nothing
    except AttributeError as e: last = e
print(last, sum(x * x for x in range(10000)), f"{1/3:.10f}", 3 ** 500 % 1000007)
"""

CPP = r"""
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct Noisy { const char *name; ~Noisy() { std::printf("~%s ", name); } };
__attribute__((noinline)) int deep(int n) { Noisy noisy{"deep"}; if (n == 0) throw std::runtime_error("bottom"); return deep(n - 1) + 1; }
__attribute__((noinline)) int first_is_a_call(int n) { return deep(n) * 2; }
__attribute__((noinline)) int choose(int n) { switch (n) { case 0: return 7; case 1: return 9; case 2: return n * 3; case 3: return -1; case 4: return 12; default: return n; } }
static std::jmp_buf buffer;
__attribute__((noinline)) void leave() { std::longjmp(buffer, 3); }
int main() {
    for (int n = 0; n < 4; n++) try { std::printf("%d\n", first_is_a_call(n)); } catch (const std::exception &e) { std::printf("%s\n", e.what()); }
    if (int n = setjmp(buffer)) std::printf("jumped %d\n", n); else leave();
    std::map<std::string, int> map;
    for (int n = 0; n < 200; n++) map[std::to_string(n * 37 % 101)] += choose(n % 7);
    std::ostringstream text;
    for (auto &[key, value] : map) text << key << '=' << value << ' ';
    std::cout << text.str().size() << ' ' << text.str().substr(0, 40) << std::endl;
    std::vector<std::thread> threads;
    std::vector<long> sums(4);
    for (int t = 0; t < 4; t++) threads.emplace_back([&, t] { for (int n = 0; n < 10000; n++) sums[t] += std::to_string(n).size(); });
    for (auto &thread : threads) thread.join();
    for (long sum : sums) std::cout << sum << ' ';
    try { std::stoi("none"); } catch (const std::invalid_argument &e) { std::cout << e.what() << std::endl; }
}
"""


LENGTHS = r"""
#define FUNCTION __attribute__((noinline, noclone, used))
extern long elsewhere(long); long (*pointer)(long); volatile long field; int word;
#if defined(__x86_64__)
#define SYSTEM_CALL "syscall"
#define PAUSE "pause"
#define SLEEP "tpause %edi"
#else
#define SYSTEM_CALL "svc #0"
#define PAUSE "yield"
#define SLEEP "wfe"
#endif
FUNCTION long straight(long n) { return n > 3 ? field : n; }
FUNCTION long of_two(long n) { return straight(n) + straight(n + 1); }
FUNCTION long tail(long n) { field = n; return of_two(n); }
FUNCTION long looped(long n) { for (; n > 0; n--) field = n; return n; }
FUNCTION long of_looped(long n) { return looped(n) + 1; }
FUNCTION long recursive(long n) { long below = n ? recursive(n - 1) : 0; __asm__("" : "+r"(below)); return below + n; }
FUNCTION long by_pointer(long n) { return pointer(n) + 1; }
FUNCTION long outside(long n) { return elsewhere(n) + 1; }
FUNCTION long acquired(long n) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE) + n; }
FUNCTION void counted(void) { __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST); }
FUNCTION void locked(void) { field = 1; while (__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST)) ; }
FUNCTION void tried(void) { if (__atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST)) elsewhere(1); }
FUNCTION void under_lock(long n) { locked(); field = n; }
FUNCTION void called(void) { field = 1; field = 2; __asm__ volatile(SYSTEM_CALL); }
FUNCTION void paused(void) { while (!field) __asm__ volatile(PAUSE); }
FUNCTION void slept(void) { __asm__ volatile(SLEEP); }
FUNCTION void above(void) { called(); field = 1; }
#if defined(__x86_64__)
FUNCTION void repeated(long n) { void *to = (void *)&field; __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory"); }
#endif
"""


class TestLengths:
    """The plan says which functions an agent may suppress for good, which it must watch, and which it never suppresses."""

    @pytest.mark.parametrize("compiler", ["gcc", "clang", "aarch64-linux-gnu-gcc"])
    @pytest.mark.parametrize("level", ["-O0", "-O2"])
    def test_what_makes_a_call_long(self, compiler, level):
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}")
        library = os.path.join(new_folder(), "lengths.so")
        options = ["-march=armv8.1-a"] if compiler.startswith("aarch64") else ["-mwaitpkg"]  # atomics of one instruction, and tpause
        subprocess.run([compiler, level, "-w", *options, "-fPIC", "-shared", "-fvisibility=hidden", "-x", "c", "-", "-o", library], input=LENGTHS, text=True, check=True,
                       timeout=LIMIT)
        flags = {each.name: each.flags for each in plan(library)[1]}
        expected = {"bounded": {"straight", "of_two", "tail", "acquired", "counted"},
                    "waits": {"locked", "tried", "under_lock", "called", "paused", "slept", "above"},
                    "neither": {"looped", "of_looped", "recursive", "by_pointer", "outside", *({"repeated"} & set(flags))}}
        found = {"bounded": {name for name in flags if flags[name] & planfile.BOUNDED}, "waits": {name for name in flags if flags[name] & planfile.WAITS}}
        found["neither"] = set(flags) & set.union(*expected.values()) - found["bounded"] - found["waits"]
        found = {kind: names & set.union(*expected.values()) for kind, names in found.items()}
        assert found == expected
        leaves = {"straight", "looped", "acquired", "counted", "locked", "paused", "slept"}
        assert {name for name in leaves | {"of_two", "called", "by_pointer"} if flags[name] & planfile.LEAF} == leaves

    def test_functions_of_rust_that_have_an_object(self):
        """In both manglings, and with LLVM's suffix; but no closure of theirs, no other type's, none outside of the libraries."""
        those = ["_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
                 "_RNvMs0_NtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync4once5futexNtB5_4Once4call", "_ZN3std3sys4sync5mutex5futex5Mutex4wake17h0123456789abcdefE",
                 "_ZN11parking_lot9raw_mutex8RawMutex9lock_slow17h0123456789abcdefE", "_RNvNtNtNtNtCsjrHSEGnQ3l9_3std3sys3pal4unix5futex10futex_wake.llvm.12"]
        others = ["_RNCNvMs0_NtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync4once5futexNtB5_4Once4call0B7_", "_ZN4mine5Mutex4wake17h0123456789abcdefE",
                  "_ZN3std4sync4once4Once9call_once17h0123456789abcdefE", "_ZN3std3sys5Mutex4wakeEv", "main_5Mutex4wake"]
        library = os.path.join(new_folder(), "names.so")
        source = "".join(f'void f{n}(void) __asm__("{name}"); void f{n}(void) {{ __asm__ volatile("nop;nop;nop;nop;nop;nop"); }}\n'
                         for n, name in enumerate(those + others))
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-x", "c", "-", "-o", library], input=source, text=True, check=True, timeout=LIMIT)
        flags = {each.name: each.flags for each in plan(library)[1]}
        assert {name for name in flags if flags[name] & planfile.OBJECT} == set(those), set(those + others) - set(flags)


@x86
class Origins(unittest.TestCase):
    """Origins of relocated instructions, against objdump's listing of the originals."""

    def test_each_instruction_stands_for_the_one_that_does_the_same(self):
        path = libraries()["libc.so.6"]
        _, functions, _ = plan(path)
        code, kinds = Code(path), {"same": 0, "mapped": 0, "copied": 0, "call": 0}
        content = pathlib.Path(path).read_bytes()  # in its text, addresses are file offsets
        for each in functions:
            if each.tactic == "none" or not each.relocated:
                continue
            at, originals = each.patch, []
            while at < each.resume and code.begin(each.address + at):
                originals.append(at)
                at += code.instructions[each.address + at][0]
            goes_on = not each.flags & planfile.RELOCATED_END
            mapped = dict((original, relocated) for relocated, original in each.instructions) or {n: n - each.patch for n in originals + [each.resume] * goes_on}
            self.assertEqual(sorted(mapped), originals + [each.resume] * goes_on, each.name)
            kinds["mapped" if each.instructions else "same"] += 1
            for original in originals:
                length, operation = code.instructions[each.address + original]
                relocated = mapped[original]
                if re.match(r"(bnd |notrack )?call", operation):
                    self.assertEqual(each.relocated[relocated:relocated + 6], b"\xe8\x01\0\0\0\xcc", each.name)
                    self.assertEqual(each.linked, relocated + 5, each.name)
                    kinds["call"] += 1
                elif not re.match(r"(bnd |notrack )?j", operation) and "rip" not in operation:
                    start = each.address + original
                    self.assertEqual(each.relocated[relocated:relocated + length], content[start:start + length], f"{each.name}+{original}: {operation}")
                    kinds["copied"] += 1
            if goes_on:
                self.assertEqual((each.relocated[mapped[each.resume]], mapped[each.resume] + 5), (0xe9, len(each.relocated)), each.name)
        for kind, count in kinds.items():
            self.assertGreater(count, 10, kind)


@x86
class Names(unittest.TestCase):
    """Names of static functions, which only a full symbol table has."""

    def module(self):
        source = written("names.c", "__attribute__((noinline)) static int kept_to_itself(int a) { return a ? a * 3 + 1 : 0; }\n"
                         "__attribute__((noinline)) static int called_by_one(int a) { return kept_to_itself(a) + a; }\n"
                         "int offered(int a) { return called_by_one(a + 1) + kept_to_itself(a); }\n")
        path = source.removesuffix(".c") + ".so"
        subprocess.run(["gcc", "-O2", "-fno-ipa-cp", "-shared", "-fPIC", "-Wl,--build-id", "-o", path, source], check=True)
        return path

    def functions(self, path):
        return {each["name"]: each["address"] for each in functions_of(path, "--no-cache").values()}

    def test_of_the_symbol_table_and_of_frames_alone(self):
        path = self.module()
        whole = self.functions(path)
        subprocess.run(["strip", "--strip-all", path], check=True)
        bare = self.functions(path)
        self.assertIn("offered", bare)
        self.assertNotIn("kept_to_itself", bare)
        for name in "kept_to_itself", "called_by_one":
            self.assertEqual(bare[whole[name]], whole[name])  # its address stands for its name

    def test_of_a_separate_debug_file(self):
        path = self.module()
        whole = self.functions(path)
        subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
        subprocess.run(["strip", "--strip-all", path], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={path}.debug", path], check=True)
        self.assertEqual(self.functions(path), whole)
        os.unlink(path + ".debug")
        self.assertNotIn("kept_to_itself", self.functions(path))

    @unittest.skipUnless(shutil.which("xz"), "no xz")
    def test_of_gnu_debugdata(self):
        path = self.module()
        whole = self.functions(path)
        small = path + ".mini"
        subprocess.run(["objcopy", "--only-keep-debug", path, small], check=True)
        subprocess.run(["strip", "--strip-all", path], check=True)
        subprocess.run(["xz", "--force", small], check=True)
        subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={small}.xz", path], check=True)
        self.assertEqual(self.functions(path), whole)


@x86
class Command(unittest.TestCase):
    def test_nothing_is_kept_where_the_user_wants_no_cache(self):
        module = hostile()
        for value, is_kept in (("on", True), ("off", False), ("0", False), ("no", False)):
            with self.subTest(value):
                cache = new_folder()
                tracer("plan", module, cache=cache, TRACER_CACHE=value)
                self.assertEqual(os.path.exists(cache + "/tracer/plans"), is_kept)

    def test_json(self):
        found = json.loads(tracer("plan", "/usr/bin/git", "--json").stdout)
        self.assertEqual((found["schema"], found["total"]), (1, len(found["functions"])))
        self.assertEqual(found["patched"], sum(each["tactic"] != "none" for each in found["functions"]))
        for each in found["functions"]:
            self.assertEqual(set(each) - {"aliases"}, {"name", "module", "address", "size", "tactic", "reason"})
            self.assertEqual(each["reason"] is None, each["tactic"] != "none")

    def test_table_and_globs(self):
        path = hostile()
        text = tracer("plan", path).stdout
        self.assertRegex(text, r"functions +patched +share .*refused +module")
        self.assertIn("each iteration of a loop would look like a call", text)
        self.assertNotIn("short_with_padding", text)
        text = tracer("plan", path, "--functions", "hostile.so!short_*").stdout
        self.assertRegex(text, r"0x[0-9a-f]+ +3  jump5 +short_with_padding")
        self.assertIn("short_with_padding", tracer("plan", path, "--all").stdout)
        self.assertIn("no function matches nothing*", tracer("plan", path, "--functions", "nothing*", status=1).stderr)

    def test_errors_are_one_line(self):
        for path, words in ("/none", "No such file"), ("/etc/passwd", "not a 64-bit ELF file"), ("/tmp", "not a 64-bit ELF file"), (scratch() + "/x.o", "not linked"):
            if path.endswith(".o"):
                subprocess.run(["gcc", "-c", "-x", "c", "/dev/null", "-o", path], check=True)
            said = tracer("plan", path, status=1).stderr
            self.assertEqual(said.count("\n"), 1)
            self.assertIn(words, said)

    def test_a_plan_is_remembered_and_a_damaged_one_is_made_again(self):
        cache = new_folder()
        path = hostile("-Wl,--build-id")
        first = tracer("plan", path, "--all", cache=cache).stdout
        folder = cache + "/tracer/plans"
        [name] = os.listdir(folder)
        file = f"{folder}/{name}"
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        before = os.stat(file).st_ino
        self.assertEqual(tracer("plan", path, "--all", cache=cache).stdout, first)
        self.assertEqual(os.stat(file).st_ino, before)  # read, not made
        content = pathlib.Path(file).read_bytes()
        for damage in content[:-8], content[:40] + b"\xff" + content[41:], content[:300] + b"\xff" * 8 + content[308:], b"", content + b"\0" * 8:
            os.unlink(file)
            with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as opened:
                opened.write(damage)
            self.assertEqual(tracer("plan", path, "--all", cache=cache).stdout, first)
            self.assertEqual(pathlib.Path(file).read_bytes(), content)
        # One that others may write to is not believed; nor is a link followed.
        os.chmod(file, 0o666)
        before = os.stat(file).st_ino
        tracer("plan", path, cache=cache)
        self.assertNotEqual(os.stat(file).st_ino, before)
        os.rename(file, file + ".there")
        os.symlink(file + ".there", file)
        tracer("plan", path, cache=cache)
        self.assertFalse(os.path.islink(file))
        # Another file with the same build-id.
        os.utime(path, (1, 1))
        before = os.stat(file).st_ino
        tracer("plan", path, cache=cache)
        self.assertNotEqual(os.stat(file).st_ino, before)
        with self.subTest("off"):
            other = new_folder()
            tracer("plan", path, "--no-cache", cache=other)
            self.assertEqual(os.listdir(other), [])
