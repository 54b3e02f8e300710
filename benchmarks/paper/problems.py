"""The data sets of the experiments, at both scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases import SAMPLE_ROWS
from benchmarks.data import Dataset, load
from benchmarks.deformed_digits import deformed_digits, round_digits
from benchmarks.paper.kdda_like import kdda_like
from parablock.datasets import load_covtype_sample

SCALES = ("small", "full")


@dataclass(frozen=True)
class Size:
    """Training and test rows; None: all."""

    rows: int | None
    test_rows: int | None


@dataclass(frozen=True)
class PaperSet:
    """A data set as the paper describes it, and the one that stands for it here.

    Attributes
    ----------
    name : str
        Here.
    stands_for : str
        In the paper.
    paper : tuple of int
        The paper's training rows, test rows and features.
    paper_parameters : str
        The paper's C and gamma.
    C, gamma : float
        Ours.
    make : callable
        From training and test rows (None: all) to the data.
    sizes : dict
        By scale.
    remark : str
        How it differs from the paper's.
    """

    name: str
    stands_for: str
    paper: tuple[int, int, int]
    paper_parameters: str
    C: float
    gamma: float
    make: Callable[[int | None, int | None], Dataset]
    sizes: dict[str, Size]
    remark: str


@dataclass(frozen=True)
class Problem:
    """Rows, labels -1 and +1, and the parameters of the kernel machine."""

    name: str
    C: float
    gamma: float
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def _covtype(rows: int | None, test_rows: int | None) -> Dataset:
    few = rows is not None and rows <= SAMPLE_ROWS and test_rows is not None and test_rows <= 10_000
    return Dataset(*load_covtype_sample()) if few else load("covtype")


def _mnist(rows: int | None, test_rows: int | None) -> Dataset:
    X, y, X_test, y_test = load("mnist")
    return Dataset(X.astype(np.float32), round_digits(y), X_test.astype(np.float32), round_digits(y_test))


def _digits(rows: int | None, test_rows: int | None) -> Dataset:
    X, y = deformed_digits(8_000_000 if rows is None else rows)
    _, _, X_test, y_test = load("mnist")
    return Dataset(X.astype(np.float32), round_digits(y), X_test.astype(np.float32), round_digits(y_test))


def _kdda(rows: int | None, test_rows: int | None) -> Dataset:
    X, y = kdda_like(8_407_752 if rows is None else rows)
    X_test, y_test = kdda_like(510_302 if test_rows is None else test_rows, test=True)
    return Dataset(X, y, X_test, y_test)


SETS = {
    one.name: one
    for one in (
        PaperSet(
            "covtype", "covtype", (464_810, 116_202, 54), "2^5, 2^5", 2.0**5, 2.0**5, _covtype,
            {"small": Size(20_000, 5_000), "full": Size(None, None)},
            "the same table, another random split",
        ),
        PaperSet(
            "ijcnn1", "webspam", (280_000, 70_000, 254), "2^3, 2^5", 2.0**5, 2.0, lambda rows, test: load("ijcnn1"),
            {"small": Size(20_000, 5_000), "full": Size(None, None)},
            "stands in: webspam cannot be had here. Dense, few features, an easy problem with few support vectors",
        ),
        PaperSet(
            "mnist", "cifar", (50_000, 10_000, 3_072), "2^3, 2^-22", 2.0**0, 2.0**-21, _mnist,
            {"small": Size(10_000, 5_000), "full": Size(None, None)},
            "stands in: cifar cannot be had here. Pictures of 28 x 28 pixels, round digits (0, 3, 6, 8, 9) against the "
            "others",
        ),
        PaperSet(
            "digits", "mnist8m", (8_000_000, 100_000, 784), "2^0, 2^-21", 2.0**0, 2.0**-21, _digits,
            {"small": Size(20_000, 5_000), "full": Size(960_000, None)},
            "imitated: MNIST digits, bent, turned and shifted at random (`benchmarks.deformed_digits`); tested on "
            "MNIST's own 10,000 test rows",
        ),
        PaperSet(
            "kdda-like", "kdda", (8_407_752, 510_302, 20_216_830), "2^0, 2^-15", 2.0**2, 2.0**-7, _kdda,
            {"small": Size(20_000, 5_000), "full": Size(400_000, 20_000)},
            "imitated: as many features and as sparse (`benchmarks.paper.kdda_like`), with labels of a known rule, so "
            "another C and gamma",
        ),
    )
}  # fmt: skip


def load_problem(name: str, scale: str, rows: int | None = None) -> Problem:
    """A data set at a scale, or with another number of training rows.

    Raises
    ------
    FileNotFoundError
        Where the data is not there and cannot be fetched; the message says how to get it.
    """
    one = SETS[name]
    size = one.sizes[scale]
    n, m = size.rows if rows is None else rows, size.test_rows
    X, y, X_test, y_test = one.make(n, m)
    chosen, tested = _spread(len(y), n), _spread(len(y_test), m)
    X, y, X_test, y_test = X[chosen], y[chosen], X_test[tested], y_test[tested]
    signs = (np.where(labels > 0, 1, -1).astype(np.int8) for labels in (y, y_test))
    return Problem(name, one.C, one.gamma, X, next(signs), X_test, next(signs))


def _spread(there: int, wanted: int | None) -> Any:
    """Rows at equal distances: some sets are in the order in which they were recorded."""
    if wanted is None or wanted >= there:
        return slice(None)
    return np.linspace(0, there - 1, wanted).astype(np.intp)
