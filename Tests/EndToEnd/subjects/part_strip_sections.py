"""Removes the section headers of ELF files, as `sstrip` does: nothing that the loader needs is among them."""
import struct
import sys

for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        header = file.read(64)
        offset, = struct.unpack_from("<Q", header, 0x28)
        file.truncate(offset)
        file.seek(0x28)
        file.write(struct.pack("<Q", 0))
        file.seek(0x3A)
        file.write(struct.pack("<3H", 0, 0, 0))
