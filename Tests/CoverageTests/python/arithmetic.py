import array
import cmath
import datetime
import decimal
import fractions
import math
import random
import statistics
import struct

random.seed(4)
values = [random.gauss(0, 1) for _ in range(50)]
print(statistics.quantiles(values), math.fsum(values), math.comb(40, 20), cmath.sqrt(-2), 7**300 % 11**50, pow(3, -1, 7))
print(decimal.Decimal(2).sqrt() + decimal.Decimal("1e-20"), fractions.Fraction(3, 7) ** 5, divmod(-2**90, 12345), 1.5.hex())
print(datetime.datetime(2024, 2, 29, 12) + datetime.timedelta(days=366), datetime.date.fromisoformat("2026-11-24").isocalendar())
print(struct.unpack("<IhQ", struct.pack("<IhQ", 1, -2, 3)), array.array("d", values[:3]).tobytes().hex()[:8], sorted(values)[0])
print(int("123456789" * 8) * int("987654321" * 8) // 10**50, round(2.675, 2), complex("1+2j") ** 2)
