"""Scripts of scripts/, whose files have no suffix, as modules."""
import importlib.machinery
import importlib.util
import os
import sys

from once import ROOT


def load(path):
    """`path` counts from the project's top."""
    loader = importlib.machinery.SourceFileLoader(os.path.basename(path), os.path.join(ROOT, path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module
