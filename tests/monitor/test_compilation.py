"""The first fit on a machine says that it compiles; later ones need not."""

import subprocess
import sys

import pytest

FIT = """
import numpy as np
from parablock import KernelSVC
X = np.random.default_rng(0).normal(size=(60, 2))
KernelSVC().fit(X, X[:, 0] > 0)
"""


@pytest.mark.slow
def test_compilation_is_announced_once_and_only_when_it_happens(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first, second = (subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stderr.count("Compiling") == 1
    assert "once" in first.stderr
    assert second.stderr == ""
