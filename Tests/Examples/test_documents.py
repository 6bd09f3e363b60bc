"""Each document shows output that is really printed, and names things that exist, as scripts/examples checks."""
import os

import pytest
from once import ROOT
from script_modules import load

examples = load("scripts/examples")


@pytest.mark.parametrize("path", examples.every())
def test_document(path):
    check = examples.Check(os.path.join(ROOT, ".build/release/tracer"))
    document = examples.read(path)
    check.document(document)
    check.names([document])
    assert not check.wrong
    for reason in check.skipped:
        print("skipped:", reason)
