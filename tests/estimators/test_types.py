"""What mypy --strict makes of a user's script: types are kept, and what is wrong is found."""

import re
import subprocess
import sys
from typing import get_args

import pytest

from parablock.devices import DEVICES
from parablock.engines import ENGINES
from parablock.estimators import _types
from parablock.kernels import KERNELS
from parablock.partition import PARTITIONERS
from parablock.solver.block_solvers import CHOICES
from tests.documents import REPOSITORY

# The package is in site-packages for a user, where its own lines are not complained of.
SETTINGS = """
[mypy]
python_version = 3.11
[mypy-parablock.*]
ignore_errors = True
[mypy-sklearn.*,scipy.*,numba.*,torch.*,triton.*,joblib.*,threadpoolctl.*,safetensors.*,dask.*,distributed.*,mpi4py.*]
ignore_missing_imports = True
follow_imports = skip
[mypy-rich.*,onnx.*,pandas.*,matplotlib.*,pyarrow.*,llvmlite.*]
ignore_missing_imports = True
follow_imports = skip
"""

GOOD = """
from pathlib import Path

import numpy as np
import parablock
from parablock import AutoKernelRegressor, Checkpoint, KernelLogisticRegression, KernelRidge, KernelSVC
from parablock import KernelSVCCV, KernelSVR
from parablock.callbacks import ProgressBar, TimeLimit
from parablock.kernels import RBF
from parablock.models import load_any, to_onnx, to_sklearn

X, y = np.zeros((4, 2)), np.array([0, 0, 1, 1])
model = KernelSVC(C=10, gamma=2, kernel="laplacian", device="auto", class_weight={0: 1, 1: 2.5}).fit(X, y)
reveal_type(model)
reveal_type(KernelSVC().set_params(C=2).set_callbacks(ProgressBar(), TimeLimit(60)).fit(X, y))
reveal_type(KernelSVCCV(Cs=[1, 10], gammas="scale", scoring="accuracy").fit(X, y).best_estimator_)
reveal_type(KernelRidge.path(X, y, Cs=3))
reveal_type(parablock.load("model.pbk"))
reveal_type(AutoKernelRegressor(max_time=1.5).fit(X, y))
reveal_type(model.predict(X))
reveal_type(model.history_[0].objective)
reveal_type(model.stop_reason_)
reveal_type(model.coef_)
reveal_type(KernelLogisticRegression().fit(X, y).predict_proba(X))


def product(A: "np.ndarray", B: "np.ndarray") -> "np.ndarray":
    values: np.ndarray = A @ B.T
    return values


KernelSVC(kernel=product).fit([["a"], ["b"]], ["no", "yes"], sample_weight=[1, 2])
KernelSVR(0.5, kernel=RBF(2.0), partition=np.zeros(4), memory_limit="1GB", checkpoint=Path("file"), resume="auto")
KernelSVR(engine=parablock.engines.MPIEngine(), checkpoint=Checkpoint("file"), random_state=0, n_jobs=None)
loaded = parablock.load(Path("model.pbk"))
if isinstance(loaded, KernelSVC):
    print(loaded.decision_function(X), loaded.loss)
print(load_any("other").predict(X), to_onnx(model), to_sklearn(model), model.to_sklearn().predict(X))
print(model.score(X, y), model.get_params()["C"], model.dual_coef_.shape)
model.save("model.pbk")
parablock.save(model, "model.pbk")
"""

REVEALED = [
    "KernelSVC",
    "KernelSVC",
    "KernelSVC",
    "list[parablock.estimators.regression.KernelRidge]",
    "KernelClassifier | parablock.estimators.regression.KernelRegressor",
    "AutoKernelRegressor",
    "ndarray",
    "float",
    "str",
    "ndarray",
    "ndarray",
]

# Each line is wrong, in the way that is said behind it.
BAD = """
import numpy as np  # fine
import parablock  # fine
from parablock import AutoKernelRegressor, KernelRidge, KernelSVC, KernelSVCCV, KernelSVR  # fine

from parablock import KernelSVM  # has no attribute "KernelSVM"
from parablock.kernels import Gauss  # has no attribute "Gauss"

X, y = np.zeros((4, 2)), np.zeros(4)  # fine
KernelSVC(gama=1.0)  # Unexpected keyword argument "gama"
KernelSVC(probability=True)  # Unexpected keyword argument "probability"
KernelSVR(alpha=1.0)  # Unexpected keyword argument "alpha"
KernelSVC(1.0, "hinge")  # Too many positional arguments
KernelSVC(loss="log_loss")  # "loss" to "KernelSVC" has incompatible type
KernelSVC(kernel="gaussian")  # "kernel" to "KernelSVC" has incompatible type
KernelSVC(kernel=None)  # "kernel" to "KernelSVC" has incompatible type
KernelSVC(gamma="median")  # "gamma" to "KernelSVC" has incompatible type
KernelSVC(device="gpu")  # "device" to "KernelSVC" has incompatible type
KernelSVC(engine="dask")  # "engine" to "KernelSVC" has incompatible type
KernelSVC(partition="voronoi")  # "partition" to "KernelSVC" has incompatible type
KernelSVC(block_solver="newton")  # "block_solver" to "KernelSVC" has incompatible type
KernelSVC(line_search="wolfe")  # "line_search" to "KernelSVC" has incompatible type
KernelSVC(prediction="nearest")  # "prediction" to "KernelSVC" has incompatible type
KernelSVC(class_weight="even")  # "class_weight" to "KernelSVC" has incompatible type
KernelSVC(memory_limit=[1])  # "memory_limit" to "KernelSVC" has incompatible type
KernelSVC(resume="yes")  # "resume" to "KernelSVC" has incompatible type
KernelSVC(max_iter=0.5)  # "max_iter" to "KernelSVC" has incompatible type
KernelSVC(C="1")  # "C" to "KernelSVC" has incompatible type
KernelSVR(epsilon=None)  # "epsilon" to "KernelSVR" has incompatible type
KernelSVCCV(gammas="median")  # "gammas" to "KernelSVCCV" has incompatible type
AutoKernelRegressor(gamma=1.0)  # Unexpected keyword argument "gamma"
AutoKernelRegressor().fit(X, y).support_  # "AutoKernelRegressor" has no attribute "support_"
KernelSVCCV(C=1.0)  # Unexpected keyword argument "C"
KernelSVC().fit(X)  # Missing positional argument "y"
KernelSVC().predict()  # Missing positional argument "X"
KernelSVC().fit(X, y).predict_proba(X)  # "KernelSVC" has no attribute "predict_proba"
KernelSVC().fit(X, y).support_vector_  # "KernelSVC" has no attribute "support_vector_"
KernelRidge().decision_function(X)  # "KernelRidge" has no attribute "decision_function"
KernelSVC().fit(X, y).history_[0].gap  # "Record" has no attribute "gap"
parablock.load()  # Missing positional argument "path"
parablock.load(1)  # "load" has incompatible type "int"
parablock.load("model.pbk").loss  # has no attribute "loss"
parablock.save(KernelSVC())  # Missing positional argument "path"
parablock.restore("model.pbk")  # has no attribute "restore"
KernelSVC().save()  # Missing positional argument "path"
"""


def check(script, tmp_path):
    """What mypy --strict says of a script: (line, kind, text)."""
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", "--hide-error-context",
         "--cache-dir", REPOSITORY / ".mypy_cache" / "script", "script.py"],
        cwd=tmp_path, env={"MYPYPATH": str(REPOSITORY / "src"), "PATH": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stderr + result.stdout
    found = re.findall(r"^script\.py:(\d+): (error|note): (.*)$", result.stdout, flags=re.MULTILINE)
    return [(int(line), kind, text) for line, kind, text in found]


@pytest.mark.slow
def test_a_good_script_passes_and_keeps_its_types(tmp_path):
    found = check(GOOD, tmp_path)
    assert [each for each in found if each[1] == "error"] == []
    revealed = [text for _, _, text in found if text.startswith("Revealed type is")]
    assert len(revealed) == len(REVEALED)
    for text, expected in zip(revealed, REVEALED):
        assert expected in text


@pytest.mark.slow
def test_wrong_names_wrong_values_and_missing_arguments_are_found(tmp_path):
    found = [(line, text) for line, kind, text in check(BAD, tmp_path) if kind == "error"]
    for number, line in enumerate(BAD.splitlines(), 1):
        if line:
            errors = [text for where, text in found if where == number]
            expected = line.split("  # ")[1]
            if expected == "fine":
                assert errors == []
            else:
                assert any(expected in text for text in errors), f"{line}\n{errors}"


@pytest.mark.parametrize(
    ("literal", "known"),
    [
        ("KernelName", KERNELS),
        ("PartitionName", PARTITIONERS),
        ("BlockSolverName", CHOICES),
        ("EngineName", ENGINES),
        ("DeviceName", DEVICES),
    ],
)
def test_the_literal_types_are_those_that_there_are(literal, known):
    assert set(get_args(getattr(_types, literal))) == set(known)
