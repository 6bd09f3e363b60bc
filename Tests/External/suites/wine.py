"""Wine: the Windows programs that it brings, and its own tests of what lies nearest to the system, check by check."""
import glob
import os
import pathlib
import subprocess

from sources import compiled
from trial import Suite, Test, Unavailable

PYTHON, WINE, HEADERS, COMPILER = "/usr/bin/python3", "/usr/lib/wine/wine64", "/usr/include/wine/wine", "x86_64-w64-mingw32-gcc"
LIBRARIES = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows"
# Files of tests that ask the system for something: processes, threads, memory, exceptions, handles. Others compare strings, up to two
# million times, or take minutes (kernel32's file).
MODULES = {
    "ntdll": "change env error exception file info om pipe port reg sync thread threadpool time virtual wow64".split(),
    "kernel32": "change console debugger environ fiber heap loader mailslot module pipe process sync thread time timer toolhelp virtual".split(),
    "msvcrt": "cpp data environ file heap misc signal".split(),
}
ENVIRONMENT = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=", "DISPLAY": ""}
SCRIPT = r"""@echo off
for /L %%n in (1,1,200) do call :add %%n
echo %total%
goto :eof
:add
set /a total=total+%1*%1
exit /b
"""
JSCRIPT = "function f(n) { if (n > 50) throw new Error('deep'); return f(n + 1); } try { f(0); } catch (e) { WScript.Echo(e.message); } WScript.Echo([3, 1, 2].sort().join());"
KEY = r"HKCU\Software\External"
COMMANDS = {
    "cmd ver": "cmd /c ver",
    "cmd, a script": r"cmd /c Z:{files}/script.bat",
    "cmd, a pipe": r"cmd /c echo one two| findstr two",
    "cmd, processes": "cmd /c for /L %n in (1,1,10) do @cmd /c exit 0 & echo done",
    "cscript": r"cscript //nologo Z:{files}/script.js",
    "findstr": r"findstr total Z:{files}/script.bat",
    "fc": r"fc Z:{files}/script.bat Z:{files}/script.bat",
    "hostname": "hostname",
    "whoami": "whoami",
    "winepath": r"winepath -w /usr/lib",
    "where": "where cmd",
    "reg": rf"cmd /c reg add {KEY} /v name /d value /f & reg query {KEY} & reg export {KEY} Z:{{tmp}}/out.reg /y & type Z:{{tmp}}\out.reg & reg delete {KEY} /f",
    "sc query": "sc query rpcss",
    "net start": "net start",
    "wmic": "wmic os get caption",
    "rundll32": "rundll32 kernel32.dll,Beep",
    "start": "start /wait /unix /bin/true",
    "regsvr32": "regsvr32 /s oleaut32.dll",
    "winemenubuilder": "winemenubuilder",
    "wineboot update": "wineboot -u",
    "wineboot restart": "wineboot -r",
}


def file(directory, *names):
    return os.path.join(directory.folder, *names)


def sources(directory, module):
    """{name: file} of a module's tests."""
    return {name: f"{directory.source}/dlls/{module}/tests/{name}.c" for name in MODULES[module]}


def linked(directory, module):
    """One program of all the tests of a module that can be compiled by these headers, and how many cannot."""
    objects = file(directory, module)
    os.makedirs(objects)
    include = subprocess.run([COMPILER, "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()

    def command(name, path):
        return [COMPILER, "-O1", "-w", "-D__WINESRC__", "-D__WINE_PE_BUILD", "-D_MSVCR_VER=0", "-nostdinc", f"-I{os.path.dirname(path)}", f"-I{HEADERS}/msvcrt", f"-I{HEADERS}/windows",
                f"-I{os.path.dirname(HEADERS)}", f"-I{directory.source}/include", "-isystem", include, "-c", path, "-o", f"{objects}/{name}.o"]

    names = sources(directory, module)
    left = compiled([command(*one) for one in names.items()], directory.folder)
    names = [name for name, said in zip(names, left) if not said]
    pathlib.Path(objects, "list.c").write_text(
        '#define STANDALONE\n#include "windows.h"\n#include "wine/test.h"\n' + "".join(f"extern void func_{name}(void);\n" for name in names)
        + "const struct test winetest_testlist[] = {" + "".join(f'{{"{name}", func_{name}}}, ' for name in names) + "{0, 0}};\n")
    if compiled([command("list", f"{objects}/list.c")], directory.folder)[0]:
        raise Unavailable(f"{module}'s list of tests cannot be compiled")
    directory.run([COMPILER, "-o", file(directory, f"{module}_test.exe"), *sorted(glob.glob(objects + "/*.o")), f"{LIBRARIES}/libwinecrt0.a", f"{LIBRARIES}/libntdll.a", "-luser32", "-ladvapi32",
               "-lmsvcrt", f"{LIBRARIES}/libmsvcrt.a"])
    return len(left) - left.count("")


def build(directory):
    left = {module: linked(directory, module) for module in MODULES}
    with open(file(directory, "log"), "a") as log:
        log.write(f"not compiled: {left}\n")
    os.makedirs(file(directory, "files"))
    for name, text in (("script.bat", SCRIPT), ("script.js", JSCRIPT)):
        pathlib.Path(file(directory, "files", name)).write_text(text, newline="\r\n")
    environment = {**ENVIRONMENT, "WINEPREFIX": file(directory, "prefix"), "HOME": directory.folder}
    directory.run([WINE, "wineboot", "-i"], environment=environment)
    directory.run(["/usr/lib/wine/wineserver64", "-w"], environment=environment)


def tests(directory):
    environment = {**ENVIRONMENT, "WINEPREFIX": file(directory, "prefix")}
    for name, command in COMMANDS.items():
        yield Test(name, [WINE, *command.replace("{files}", file(directory, "files")).split(" ")], environment=environment, output=True, timeout=300)
    yield Test("wineboot", ["sh", "-c", f"{WINE} wineboot -i && ls {{tmp}}/prefix/drive_c/windows/system32"], environment={**environment, "WINEPREFIX": "{tmp}/prefix"}, output=True, timeout=600)
    for module in MODULES:
        for name in sources(directory, module):
            if os.path.exists(file(directory, module, name + ".o")):
                yield Test(f"{module} {name}", [PYTHON, directory.program("wine_cases.py"), "{cases}", WINE, file(directory, f"{module}_test.exe"), name],
                           environment=environment, cases=True, timeout=600)


suites = [Suite("wine", "Wine's programs, and its tests of ntdll, kernel32 and msvcrt", (
    (PYTHON, "python3"), (WINE, "wine64"), (COMPILER, "gcc-mingw-w64-x86-64"), (HEADERS + "/debug.h", "libwine-dev"), ("dpkg-source", "dpkg-dev")), tests, build, source="wine", programs="wine_cases.py")]
