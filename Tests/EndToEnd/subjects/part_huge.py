"""Writes and links libhuge0.so … libhuge99.so: function I of library L calls function I of library L + 1, a thousand
slots each. In assembly, because compiling as much C takes minutes."""
import os
import subprocess
import sys

folder, libraries, functions = sys.argv[1], 100, 1000
for library in reversed(range(libraries)):
    path = os.path.join(folder, f"huge{library}.s")
    last = library == libraries - 1
    with open(path, "w") as out:
        for i in range(functions):
            name = f"huge_{library}_{i}"
            print(f".globl {name}\n.type {name},@function\n{name}:", file=out)
            if last:
                print(" lea 1(%rdi),%rax\n ret", file=out)
            else:
                # Each calls the same function of the next library and adds one.
                print(f" sub $8,%rsp\n call huge_{library + 1}_{i}@PLT\n inc %rax\n add $8,%rsp\n ret", file=out)
            print(f".size {name},.-{name}", file=out)
        print('.section .note.GNU-stack,"",@progbits', file=out)
    output = os.path.join(folder, f"libhuge{library}.so")
    link = [] if last else [f"-lhuge{library + 1}"]
    subprocess.run(["gcc", "-shared", "-nostdlib", path, "-o", output, "-L", folder, f"-Wl,-soname,libhuge{library}.so",
                    f"-Wl,-rpath,{folder}"] + link, check=True)
    os.unlink(path)
