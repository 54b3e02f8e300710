"""Importing the package takes no time, compiles nothing and starts nothing."""

import json
import subprocess
import sys

import pytest

import parablock

LOOK = """
import json, sys, threading
import parablock
slow = [name for name in ("numba", "scipy", "sklearn") if name in sys.modules]
parablock.KernelSVC, parablock.models.save, parablock.KernelSVCCV
slow += [name for name in ("rich", "onnx", "sklearn.svm", "sklearn.cluster", "sklearn.metrics",
                          "sklearn.model_selection") if name in sys.modules]
import parablock.datasets, parablock.demo, parablock.callbacks, parablock.plots, parablock.report
from numba.core.dispatcher import Dispatcher
from parablock.losses import Hinge
compiled, functions = [], 0
for name, module in list(sys.modules.items()):
    if name.startswith("parablock"):
        for value in vars(module).values():
            if isinstance(value, Dispatcher):
                functions += 1
                compiled += [value.py_func.__qualname__] if value.signatures else []
cached = [name for name in vars(Hinge()) if name.startswith("compiled")]
extras = [name for name in ("matplotlib", "torch", "triton", "dask", "distributed", "mpi4py") if name in sys.modules]
print(json.dumps({"functions": functions, "compiled": compiled + cached, "threads": threading.active_count(),
                  "extras": extras, "slow": slow}))
"""


def test_every_name_is_there_and_no_other():
    found = {name: getattr(parablock, name) for name in parablock.__all__}
    assert all(thing.__name__ == name for name, thing in found.items() if name != "__version__")
    assert set(parablock.__all__) <= set(dir(parablock))
    with pytest.raises(AttributeError, match="has no attribute 'KernelSVD'"):
        parablock.KernelSVD  # noqa: B018


@pytest.mark.slow
def test_import_compiles_nothing_starts_no_threads_and_loads_no_extras():
    result = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    found = json.loads(result.stdout)
    assert found["functions"] > 10  # the look was at the right place
    assert found["compiled"] == []
    assert found["threads"] == 1
    assert not found["extras"]
    assert not found["slow"]  # what takes long is imported when it is used
    assert result.stderr == ""
