import bz2
import hashlib
import lzma
import os
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib

text = b"all work and no play " * 200
for module in (zlib, bz2, lzma):
    assert module.decompress(module.compress(text)) == text
print(hashlib.sha256(text).hexdigest(), hashlib.blake2b(text).hexdigest()[:8], hashlib.pbkdf2_hmac("sha1", b"a", b"b", 9).hex(), zlib.crc32(text))
with tempfile.TemporaryDirectory() as folder:
    with zipfile.ZipFile(os.path.join(folder, "one.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b", text)
    with tarfile.open(os.path.join(folder, "one.tar.xz"), "w:xz") as archive:
        archive.add(os.path.join(folder, "one.zip"), "one.zip")
base = sqlite3.connect(":memory:")
base.create_function("twice", 1, lambda value: value * 2)
base.execute("create table t (a integer, b text)")
base.executemany("insert into t values (?, ?)", enumerate("abc"))
print(base.execute("select twice(a), b from t order by b desc").fetchall())
