"""The command in a process of its own."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def environment(**more):
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {**os.environ, **one_thread, "PYTHONPATH": path, "COLUMNS": "100", **more}


def command(*arguments):
    """The command as a process runs it."""
    return [sys.executable, "-m", "parablock", *map(str, arguments)]
