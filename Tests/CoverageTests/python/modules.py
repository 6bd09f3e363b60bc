import importlib
import pkgutil
import sys

# Omitted are modules that open windows or act when they are imported; packages, too, since they import half of the library.
OMITTED = {"antigravity", "this", "turtle"}
imported = 0
for name in sorted({module.name for module in pkgutil.iter_modules() if not module.ispkg} | set(sys.builtin_module_names)):
    if name in sys.stdlib_module_names and name not in OMITTED and not name.startswith("_test"):
        try:
            importlib.import_module(name)
            imported += 1
        except ImportError:
            pass
print(imported > 100)
