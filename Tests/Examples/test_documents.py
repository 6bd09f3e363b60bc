"""Each document shows output that is really printed, and names things that exist, as scripts/examples checks."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
from options import load

examples = load(os.path.join(ROOT, "scripts/examples"))


@pytest.mark.parametrize("path", examples.every())
def test_document(path):
    check = examples.Check(os.path.join(ROOT, ".build/release/tracer"))
    document = examples.read(path)
    check.document(document)
    check.names([document])
    assert not check.wrong
    for reason in check.skipped:
        print("skipped:", reason)
