import csv
import html
import io
import json
import re
import textwrap

data = {"names": ["a", "ü", "日本"], "numbers": [1, 2.5, -3e10, 2**70], "nested": {"empty": [], "none": None}}
assert json.loads(json.dumps(data, indent=1)) == data
try:
    json.loads('{"a": }')
except json.JSONDecodeError as error:
    print(error)
print(re.sub(r"(?P<word>\w+)\s(?=x)", lambda found: found["word"].upper(), "one x two x three"), re.split(r"[,;]\s*", "a, b;c"))
print(re.findall(r"(?i)(?:ab|a(b))+?c", "abc aBC abac"), re.fullmatch(r"(\d{2,4})-(?!00)\d+", "2026-11"))
rows = io.StringIO()
csv.writer(rows).writerows([["a", 'b"c'], [1, None]])
print(list(csv.reader(io.StringIO(rows.getvalue()))), html.escape("<&>"), textwrap.fill("word " * 30, 40))
print("{:>10.3f}|{!r:^12}|{:#x}".format(3.14159, "q", 255), f"{1e100:g} {12345678:,}", "%-8s|%+d" % ("x", 5))
