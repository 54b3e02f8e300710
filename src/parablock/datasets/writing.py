"""Data as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.csr import given
from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.reading import format_of
from parablock.datasets.streams import writing
from parablock.datasets.svmlight import write_svmlight

WRITTEN = ("svmlight", "npy", "npz")


def write_data(
    path: str | os.PathLike[str], data: Data, *, format: str | None = None, labels: Any = None, zero_based: bool = False
) -> None:
    """Write features and labels to a file, which replaces what was there when it is whole.

    Parameters
    ----------
    path : path
    data : Data
    format : {"svmlight", "npy", "npz"}, optional
        By default what the name's ending says. A .npz file holds X, y and feature_names; a sparse X is written as
        `scipy.sparse.save_npz` does, with the others beside it, so that `scipy.sparse.load_npz` reads it too. A .npy
        file holds X alone, as an array.
    labels : path, optional
        Of a .npy file that gets the labels.
    zero_based : bool, default=False
        Of LIBSVM's text: whether indices count from 0 instead of 1.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from parablock.datasets import Data, read_data, write_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.svm.gz")
    ...     write_data(path, Data(np.eye(3), np.array([1, 2, 3])))
    ...     read_data(path).y
    array([1, 2, 3])
    """
    format, X, y = format_of(path) if format is None else format, given(data.X, "X"), data.y
    if format not in WRITTEN:
        raise DataError(f"{os.fspath(path)}: data can be written as {', '.join(WRITTEN)}, and not as {format}")
    if format == "svmlight" and y is None:
        raise DataError(f"{os.fspath(path)}: LIBSVM's text needs a label for every row, and there are none")
    if format == "npy" and y is not None and labels is None:
        raise DataError(f"{os.fspath(path)}: a .npy file has no place for labels; name a file for them, or write .npz")
    if format == "svmlight":
        write_svmlight(path, X, y, zero_based=zero_based)
    else:
        with writing(path) as file:
            if format == "npy":
                np.save(file, X.toarray() if sp.issparse(X) else X)
            else:
                np.savez(file, **_arrays(X, data))
    if labels is not None and y is not None:
        with writing(labels) as file:
            np.save(file, y)


def _arrays(X: Any, data: Data) -> dict[str, Any]:
    beside = {} if data.y is None else {"y": data.y}
    if data.names is not None:
        beside["feature_names"] = np.array(data.names, dtype=np.str_)
    if not sp.issparse(X):
        return {"X": X, **beside}
    X = X.tocsr()
    return {
        **beside,
        "format": np.array("csr"),
        "shape": np.array(X.shape),
        "data": X.data,
        "indices": X.indices,
        "indptr": X.indptr,
    }
