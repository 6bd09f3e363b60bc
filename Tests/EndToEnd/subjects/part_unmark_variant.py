"""Clears STO_AARCH64_VARIANT_PCS of undefined dynamic symbols: FILE NAME…, as a file that was linked to a library whose
functions were not marked."""
import struct
import sys

with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    offset, = struct.unpack_from("<Q", data, 0x28)
    entry_bytes, count = struct.unpack_from("<2H", data, 0x3A)
    sections = [struct.unpack_from("<2I4Q2I2Q", data, offset + n * entry_bytes) for n in range(count)]
    table = next(s for s in sections if s[1] == 11)  # SHT_DYNSYM
    names = sections[table[6]][4]
    cleared = 0
    for position in range(table[4], table[4] + table[5], 24):
        name, _, other, section = struct.unpack_from("<I2BH", data, position)
        text = data[names + name:data.index(0, names + name)].decode()
        if text in sys.argv[2:] and section == 0 and other & 0x80:
            data[position + 5] = other & ~0x80
            cleared += 1
    if cleared != len(sys.argv) - 2:
        sys.exit(f"{cleared} of {len(sys.argv) - 2} symbols were marked")
    file.seek(0)
    file.write(data)
