"""Data that comes with the package, data files, and CSR matrices on disk."""

from importlib.resources import as_file, files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from parablock.datasets.csr_files import open_csr, save_csr
from parablock.datasets.csv_text import read_csv
from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.reading import read_data
from parablock.datasets.svmlight import read_svmlight, write_svmlight
from parablock.datasets.tables import read_parquet
from parablock.datasets.writing import write_data

__all__ = [
    "Data",
    "DataError",
    "load_covtype_sample",
    "open_csr",
    "read_csv",
    "read_data",
    "read_parquet",
    "read_svmlight",
    "save_csr",
    "write_data",
    "write_svmlight",
]


def load_covtype_sample(
    *, classes: Literal[2, 7] = 2
) -> tuple[NDArray[np.float32], NDArray[np.int8], NDArray[np.float32], NDArray[np.int8]]:
    """Load a sample of the forest cover types: 50,000 training and 10,000 test rows, 54 features.

    The rows are a random sample, in random order, of the UCI Covertype data
    (581,012 rows), so the first n training rows are a random sample as well. Each
    feature is scaled to [0, 1] by its minimum and maximum in the whole data set.

    Parameters
    ----------
    classes : {2, 7}, default=2
        2 gives the usual binary problem: +1 for cover type 2 (lodgepole pine, about half of
        the rows) and -1 for the others. 7 gives the cover types 1 to 7.

    Returns
    -------
    X_train : ndarray of float32, shape (50000, 54)
    y_train : ndarray of int8, shape (50000,)
    X_test : ndarray of float32, shape (10000, 54)
    y_test : ndarray of int8, shape (10000,)

    Notes
    -----
    Source: Blackard, J. (1998). Covertype. UCI Machine Learning Repository,
    https://doi.org/10.24432/C50K5N, licensed CC BY 4.0.

    Examples
    --------
    >>> from parablock.datasets import load_covtype_sample
    >>> X_train, y_train, X_test, y_test = load_covtype_sample()
    >>> X_train.shape, X_test.shape
    ((50000, 54), (10000, 54))
    """
    if classes not in (2, 7):
        raise ValueError(
            f"classes={classes!r} was given; use 2 for type 2 against the others, or 7 for all cover types"
        )
    with as_file(files(__name__) / "covtype_sample.npz") as path, np.load(path) as sample:
        arrays: dict[str, NDArray[Any]] = {name: sample[name] for name in sample.files}
    X = np.ascontiguousarray(arrays["features"].T, dtype=np.float32)
    low = arrays["minimum"].astype(np.float32)
    X -= low
    X /= arrays["maximum"].astype(np.float32) - low
    y = arrays["classes"]
    if classes == 2:
        y = np.where(y == 2, 1, -1).astype(np.int8)
    n_train = int(arrays["n_train"])
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]
