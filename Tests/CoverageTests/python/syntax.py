import ast
import ctypes
import dis
import io
import pathlib
import symtable
import tokenize

text = pathlib.Path(__file__).read_text()
tree = ast.parse(text)
assert ast.dump(ast.parse(ast.unparse(tree))) == ast.dump(tree)
print(len(list(tokenize.generate_tokens(io.StringIO(text).readline))), symtable.symtable(text, "f", "exec").get_identifiers())
dis.dis(compile("lambda a, *b: [c for c in b if c]", "f", "eval"), file=io.StringIO())
for wrong in ("f(", "a = = b", "def f(a, a): pass", "  x", "'open", "return"):
    try:
        exec(compile(wrong, "wrong", "exec"))
    except SyntaxError as error:
        print(error)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
numbers = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
ctypes.CDLL(None).qsort(numbers, 5, ctypes.sizeof(ctypes.c_int), compare)
print(list(numbers))
