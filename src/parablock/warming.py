"""Compiles once what fits on this machine's processor need, so that no later process has to.

Numba compiles a function for the types that it is called with. What these are depends on the precision and the format
of the rows, and on what a fit does with them: small fits of every combination do all of it.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from parablock import datasets
from parablock.devices.cpu.strips import STRIP, Strips
from parablock.devices.cpu.whole import WholeColumns
from parablock.estimators import (
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)
from parablock.monitor import Checkpoint, Stopwatch
from parablock.monitor.compilation import compilation_is_known
from parablock.tables import AutoKernelRegressor
from parablock.tables.columns import Columns
from parablock.tables.kernels import FullKernel, LaplaceKernel, PowerKernel
from parablock.tables.leave_one_out import Problem, Workspace, left_out, loss_and_gradient

_ROWS, _FEATURES = 700, 5
_SETTINGS: dict[str, Any] = {"n_blocks": 6, "max_iter": 6, "tol": 1e-4, "n_jobs": 1, "random_state": 0}
_PRECISIONS = (np.float32, np.float64)
Work = Callable[[], Any]


def warm_up(tell: Callable[[str], None] = lambda text: None) -> float:
    """Compile what fits and predictions on the CPU need, and the readers of data files, for all later processes.

    What is in Numba's cache already is only loaded. Not compiled are losses and kernels of your own, and what a GPU
    needs, which Triton compiles at the first fit.

    Parameters
    ----------
    tell : callable, optional
        Is called with a line of text after every step.

    Returns
    -------
    float
        Seconds that were spent compiling.

    Examples
    --------
    >>> from parablock import warm_up
    >>> seconds = warm_up(print)  # doctest: +SKIP
    losses                               9.2 s of compilation
    float32, dense                       5.3 s of compilation
    ...
    """
    compilation_is_known()
    total = 0.0
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # a few iterations are enough
        for name, work in _steps(Path(folder)):
            stopwatch = Stopwatch()
            work()
            seconds = stopwatch.seconds_compiling()
            tell(f"{name:<34}{seconds:6.1f} s of compilation")
            total += seconds
    return total


def _steps(folder: Path) -> Iterator[tuple[str, Work]]:
    """What to do, with a name for each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, _FEATURES))
    y = X[:, 0] * X[:, 1] > 0
    yield "losses", lambda: _losses(X, y)
    for precision in _PRECISIONS:
        rows = X.astype(precision)
        for kind, some in _formats(rows, folder).items():
            yield f"{rows.dtype}, {kind}", lambda some=some: _kernels(some, y, folder)  # type: ignore[misc]
        yield f"{rows.dtype}, kernel columns", lambda precision=precision: _columns(precision)  # type: ignore[misc]
        yield f"{rows.dtype}, precomputed", lambda rows=rows: _precomputed(rows, y)  # type: ignore[misc]
    yield "tables", lambda: _tables(X[:60])
    yield "data files", lambda: _files(X, y, folder)


def _losses(X: np.ndarray, y: np.ndarray) -> None:
    """A fit with each of the losses: the other steps have only one."""
    machines: list[Any] = [KernelSVC(), KernelSVC(loss="squared_hinge"), KernelLogisticRegression()]
    machines += [KernelSVR(), KernelRidge(), KernelRidge(memory_limit="1MB"), KernelQuantileRegressor()]
    for machine in machines:
        target = y if is_classifier(machine) else X[:, 0]
        for line_search in ("auto", "armijo"):
            machine.set_params(**_SETTINGS, line_search=line_search).fit(X, target).predict(X)
            machine.certify(X, target)


def _formats(rows: np.ndarray, folder: Path) -> dict[str, Any]:
    """Rows in all the ways that they may come in."""
    locked = rows.copy()
    locked.flags.writeable = False  # as arrays that came from another process are
    np.save(folder / "rows.npy", rows)
    short = sp.csr_matrix(np.where(np.abs(rows) < 0.5, 0, rows))
    long = short.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    on_disk = {}
    for name, some in (("32", short), ("64", long)):
        datasets.save_csr(folder / f"{rows.dtype}-{name}", some)
        on_disk[f"sparse on disk, {name} bits"] = datasets.open_csr(folder / f"{rows.dtype}-{name}")
    return {
        "dense": rows,
        "read-only": locked,
        "on disk": np.load(folder / "rows.npy", mmap_mode="r"),
        "sparse": short,
        "sparse, 64 bits": long,
        **on_disk,
    }


def _kernels(X: Any, y: np.ndarray, folder: Path) -> None:
    """Fits that do all that depends on the rows, with all kernels that have compiled parts of their own."""
    checkpoint = Checkpoint(folder / f"{id(X)}.checkpoint")
    for settings in (
        {"gamma": 0.5, "checkpoint": checkpoint, "resume": "auto"},
        {"gamma": 50.0},
        {"gamma": 0.5, "memory_limit": "100KB"},
        {"gamma": 0.5, "regroup": False, "prediction": "local"},
        {"kernel": "laplacian", "partition": "kernel_kmeans"},
        {"kernel": "matern32"},
    ):
        KernelSVC(**{**_SETTINGS, **settings}).fit(X, y).predict(X)


def _columns(precision: Any) -> None:
    """Memory for kernel columns, of both kinds and with and without room for more: which it is depends on the data."""
    samples, coef, out = 3 * STRIP, np.ones((1, 2)), np.zeros((1, 3 * STRIP))
    values = np.ones((2, samples), dtype=precision)
    for most in (len(values), 2 * len(values)):
        for kind in (Strips, WholeColumns):
            columns: Strips | WholeColumns = kind(most, samples, 1 << 20, precision)
            columns.follow(0, samples)
            columns.write(values, 0, 0)
            columns.add(np.arange(2), coef, 0, samples, out)
            columns.add_new(values, 0, coef, 0, out)
            columns.read(np.arange(2), np.arange(samples), values, np.arange(2))
            columns.keep_only(np.array([1]))


def _precomputed(rows: np.ndarray, y: np.ndarray) -> None:
    matrix = rows @ rows.T
    KernelSVC(kernel="precomputed", **_SETTINGS).fit(matrix, y).predict(matrix)


def _tables(X: np.ndarray) -> None:
    """A fit, and all kernels in both precisions: which is used depends on the ridge that is learned."""
    X, y = np.column_stack([X, X[:, 0] > 0]), X[:, :1]
    AutoKernelRegressor(n_jobs=1, random_state=0).fit(X, y).predict_interval(X)
    view = Columns.learned(X, [0] * X.shape[1], y, np.ones(len(X))).view(X)
    shape = view.X.shape[1], view.numeric
    problem, space = Problem(view, y, np.ones(len(X))), Workspace(len(X))
    for kernel in (LaplaceKernel(*shape), PowerKernel(*shape), FullKernel(*shape, np.zeros(shape[0]))):
        for precision in (space, space.single):
            loss_and_gradient(kernel, problem, np.full(kernel.size + 1, -1.0), precision)
            left_out(kernel, problem, np.full(kernel.size + 1, -1.0), precision)


def _files(X: np.ndarray, y: np.ndarray, folder: Path) -> None:
    """Both formats of text, written and read."""
    labels = np.where(y, 1.0, -1.0)
    datasets.write_svmlight(folder / "rows.svm", X, labels)
    np.savetxt(folder / "rows.csv", np.column_stack([labels, X]), delimiter=",")
    for precision in _PRECISIONS:
        datasets.read_svmlight(folder / "rows.svm", dtype=precision)
        datasets.read_csv(folder / "rows.csv", target=1)
