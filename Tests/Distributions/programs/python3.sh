# packages: python3
# records: python3*
# status: 1
# version: python3 --version
# quick
cat >main.py <<'END'
import ctypes, hashlib, json, lzma, re, sqlite3, ssl, subprocess, sys, threading, zlib

base = sqlite3.connect(":memory:")
base.execute("create table t(a integer, b text)")
base.executemany("insert into t values(?, ?)", [(i, str(i * i)) for i in range(500)])
base.create_function("twice", 1, lambda x: 2 * x)
print(base.execute("select sum(twice(a)), max(b) from t where b like '1%'").fetchone())

context = ssl.create_default_context()
print(context.verify_mode, len(context.get_ciphers()) > 3)
try:
    context.load_verify_locations(cadata="no certificate")
except ssl.SSLError as error:
    print(type(error).__name__)
client, server = ssl.MemoryBIO(), ssl.MemoryBIO()
greeting = context.wrap_bio(server, client, server_hostname="localhost")
try:
    greeting.do_handshake()
except ssl.SSLWantReadError:
    print("greeted", client.pending > 100)

libc = ctypes.CDLL("libc.so.6")
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 100)(*(i * 37 % 100 for i in range(100)))
libc.qsort(numbers, 100, 4, compare(lambda a, b: a[0] - b[0]))
print(list(numbers) == list(range(100)))

child = subprocess.run([sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); sys.exit(3)"],
                       input="to the child", capture_output=True, text=True)
print(child)
print(subprocess.run("echo from a shell; kill -TERM $$", shell=True, stdout=subprocess.PIPE).returncode)

sums = [0] * 4
def add(k):
    sums[k] = sum(range(20000 * k))
threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
text = json.dumps({"sums": sums, "words": re.findall(r"\w+", "some words, more words")}).encode()
print(hashlib.sha256(text).hexdigest(), zlib.crc32(text), lzma.decompress(lzma.compress(text)) == text)
sys.exit(4)
END
python3 main.py || echo "status $?"
python3 -c 'raise ValueError("not caught")'
