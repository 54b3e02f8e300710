"""After `warm_up` nothing is left to compile, whatever is fitted."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher

from parablock import (
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVCCV,
    KernelSVR,
    warm_up,
)
from parablock.cli import main
from parablock.datasets import load_covtype_sample, read_csv, read_svmlight, write_svmlight

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def everything_is_compiled():
    lines = []
    seconds = warm_up(lines.append)
    assert seconds >= 0.0
    assert lines[0].startswith("losses")


@pytest.fixture(autouse=True)
def nothing_new():
    """Fits load or compile no function for other types than `warm_up` did."""
    before = signatures()
    yield
    assert signatures() - before == set()


def signatures():
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("parablock")]
    functions = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    return {(function.py_func.__qualname__, str(types)) for function in functions for types in function.signatures}


@pytest.fixture(scope="module")
def covtype():
    X, y, _, _ = load_covtype_sample()
    return X[:3000], y[:3000]


def csr(X, bits=32):
    X = sp.csr_matrix(np.where(np.abs(X) < 0.2, 0, X))
    X.indices, X.indptr = X.indices.astype(f"int{bits}"), X.indptr.astype(f"int{bits}")
    return X


SETTINGS = {"tol": 1e-2, "n_blocks": 5, "max_iter": 10, "random_state": 0}
quiet = pytest.mark.filterwarnings("ignore::UserWarning")


@quiet
@pytest.mark.parametrize("form", [np.asfortranarray, csr, lambda X: csr(X, 64)], ids=["dense", "csr", "csr64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 32.0, "C": 32.0, "max_iter": 100},
        {"gamma": 3000.0, "n_jobs": 2},
        {"gamma": 3.0, "memory_limit": "300KB"},
        {"kernel": "chi2", "fit_intercept": False},
        {"kernel": "matern52", "block_solver": "cyclic"},
        {"kernel": "linear", "partition": "kmeans"},
    ],
    ids=str,
)
def test_rows_of_every_kind(covtype, form, dtype, settings):
    X, y = covtype
    rows = form(X.astype(dtype))
    KernelSVC(**{**SETTINGS, **settings}).fit(rows, y).predict(rows[:100])


@quiet
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_of_very_many_features(covtype, dtype):
    """Beyond some number they are found by a hash table; most kernel values are zero."""
    X = sp.random(300, 300_000, density=2e-5, format="csr", dtype=dtype, random_state=0)
    KernelSVC(kernel="linear", **SETTINGS, partition="random").fit(X, covtype[1][:300]).predict(X)


@quiet
@pytest.mark.parametrize("several", [False, True])
def test_every_loss(covtype, several):
    X, y = covtype
    classes = y + 2 * (X[:, 0] > 0.5) if several else y
    numbers = np.column_stack([X[:, 0], X[:, 1]]) if several else X[:, 0]
    KernelSVC(loss="squared_hinge", **SETTINGS).fit(X, classes).predict(X)
    KernelLogisticRegression(**SETTINGS).fit(X, classes).predict_proba(X)
    for machine in KernelRidge, KernelSVR, KernelQuantileRegressor:
        machine(**SETTINGS).fit(X, numbers).predict(X)
    KernelRidge(**SETTINGS, memory_limit="20MB").fit(X, numbers).certify(X, numbers)


@quiet
def test_models_along_c_and_cross_validation(covtype):
    X, y = covtype
    KernelSVCCV(cv=2, Cs=[1, 10], gammas=[1.0, 32.0]).fit(X[:500], y[:500])
    KernelSVC.path(X[:500], y[:500], Cs=[1, 10], gamma=32)


@quiet
def test_precomputed_and_checkpoints(covtype, tmp_path):
    X, y = covtype[0][:500], covtype[1][:500]
    KernelSVC(kernel="precomputed", **SETTINGS).fit(X @ X.T, y).predict(X @ X.T)
    for number, rows in enumerate((X, csr(X), X.astype(np.float64))):
        KernelSVC(**SETTINGS, checkpoint=tmp_path / f"{number}").fit(rows, y)


def test_tables(covtype):
    X, y = covtype[0][:80], covtype[1][:80]
    AutoKernelClassifier(random_state=0).fit(X, y).predict_proba(X)
    model = AutoKernelRegressor(random_state=0).fit(X, X[:, 0], groups=np.arange(80) // 3)  # exact: a small ridge
    model.predict_interval(X)
    assert model.feature_importances_.argmax() == 0


def test_data_files(covtype, tmp_path):
    X, y = covtype[0][:50], covtype[1][:50]
    write_svmlight(tmp_path / "rows.svm", X, y)
    read_svmlight(tmp_path / "rows.svm")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=";")
    read_csv(tmp_path / "rows.csv")


def test_the_command(capsys):
    assert main(["warm-up"]) == 0
    out, err = capsys.readouterr()
    assert "float64, sparse" in out
    assert out.endswith("there was nothing left to compile\n")
    assert "Compiling" not in err


def test_whoever_asks_for_it_is_not_told_that_it_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    program = "from parablock import warming\nfrom parablock.losses import Hinge\n"
    program += "warming._steps = lambda folder: [('one', lambda: Hinge().compiled_bounds)]\n"
    program += "print(warming.warm_up(print) > 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.endswith("True\n"), done.stderr
    assert done.stderr == ""
