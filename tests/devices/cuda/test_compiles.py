"""All Triton kernels compile for a real card, whether there is one or not."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # compiles every kernel

pytest.importorskip("torch", reason="the GPU's kernels work on torch tensors")
pytest.importorskip("triton", reason="the GPU's kernels are written in Triton")


def test_every_kernel_compiles_for_a_card(tmp_path):
    # A process of its own: here, the interpreter has taken the compiler's place.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "tests.devices.cuda.offline"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-500:] + result.stderr[-3000:]
