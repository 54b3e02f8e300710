"""Starts Python programs on several MPI ranks, for tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

_BESIDE_PYTHON = Path(sys.executable).parent / "mpiexec"
MPIEXEC = str(_BESIDE_PYTHON) if _BESIDE_PYTHON.exists() else "mpiexec"
SECONDS = 240  # a test that takes longer hangs


def command(ranks, program, *arguments):
    return [MPIEXEC, "-n", str(ranks), sys.executable, str(program), *map(str, arguments)]


def environment():
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    root = Path(__file__).parents[2]
    return {**os.environ, **one_thread, "PYTHONPATH": os.pathsep.join((str(root), str(root / "src")))}


def run(ranks, program, *arguments):
    """The finished process; its output as text."""
    return subprocess.run(
        command(ranks, program, *arguments), env=environment(), capture_output=True, text=True, timeout=SECONDS
    )


def results(ranks, program, *arguments):
    """The JSON object that the program's first rank prints."""
    done = run(ranks, program, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])  # some MPIs add colours


def mpi_works():
    try:
        done = subprocess.run([MPIEXEC, "-n", "1", sys.executable, "-c", ""], capture_output=True, timeout=60)
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


needs_mpi = pytest.mark.skipif(not mpi_works(), reason="no working mpiexec")
