"""The rivals with the kernel values of a GPU, or of Triton's interpreter: they decide as they do on the CPU."""

# ruff: noqa: E402
import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

torch = pytest.importorskip("torch", reason="the GPU's vectors are torch's")
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported
pytest.importorskip("triton", reason="the GPU's kernels are Triton's")

from benchmarks.paper.problems import Problem
from benchmarks.paper.tracing import trace
from benchmarks.rivals import ALGORITHM_1, CASVM, DCSVM, PSVM, CascadeSVM, FirstStep, Nystroem, Parablock, PPackSVM

pytestmark = pytest.mark.slow  # runs interpreted kernels

X, y = make_moons(60, noise=0.1, random_state=0)
X, y = X.astype(np.float32), np.where(y > 0, 1, -1)
PROBLEM = Problem("moons", 2.0, 2.0, X[:40], y[:40], X[40:], y[40:])
FIRST_STEP = {**ALGORITHM_1, "n_blocks": 2, "max_iter": 1}
RIVALS = {
    "DCSVM": DCSVM(2.0, 2.0, levels=1, tol=1e-2),
    "FirstStep": FirstStep(2.0, 2.0, blocks=2, tol=1e-2),
    "FirstStep, logistic": FirstStep(2.0, 2.0, blocks=2, tol=1e-2, loss="logistic"),
    "CASVM": CASVM(2.0, 2.0, clusters=2, tol=1e-2),
    "CascadeSVM": CascadeSVM(2.0, 2.0, parts=2, tol=1e-2),
    "PPackSVM": PPackSVM(2.0, 2.0, pack=20),
    "PSVM": PSVM(2.0, 2.0, power=0.6),
    "Nystroem": Nystroem(2.0, 2.0, features=8),
    "Parablock": Parablock(2.0, 2.0, prediction="local", options=FIRST_STEP),
}


@pytest.mark.parametrize("name", RIVALS)
def test_decides_as_on_the_cpu(name):
    cpu, gpu = (trace(replace(RIVALS[name], device=device), PROBLEM) for device in ("cpu", "cuda"))
    assert gpu.last.accuracy == pytest.approx(cpu.last.accuracy, abs=0.05)
    assert gpu.last.accuracy > 0.7
    if cpu.last.objective is not None:
        assert gpu.last.objective == pytest.approx(cpu.last.objective, rel=1e-2)
