import subprocess
import sys

# close_fds=False is posix_spawn: of a child of vfork, which subprocess would take, no call is recorded, and one of fork would count again
# for gcov what its parent had counted before (Python is compiled with -std=c11, where gcc does not take gcov's own fork for libc's).
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv); sys.exit(3)", "one"], capture_output=True, text=True, close_fds=False))
with subprocess.Popen(["/bin/cat"], close_fds=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
    print(cat.communicate(b"through a pipe"))
try:
    subprocess.run(["/nonexistent/program"], close_fds=False)
except FileNotFoundError as error:
    print(error)
