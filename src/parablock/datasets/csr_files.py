"""CSR matrices on disk: a folder with one `.npy` file for each of a matrix's arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.csr import given, takes
from parablock.datasets.errors import DataError
from parablock.mapped import csr_over
from parablock.npy import ArrayError, map_npy
from parablock.replacing import new_folder

_PARTS = ("data", "indices", "indptr", "shape")


def save_csr(folder: str | os.PathLike[str], matrix: Any) -> None:
    """Write a sparse matrix as a folder that `open_csr` opens without reading it into memory.

    The folder gets its name when everything in it is written, so that there is never half a matrix under it.

    Parameters
    ----------
    folder : path
        Of the new folder; nothing may be there yet.
    matrix : sparse matrix or array
        Other formats than CSR are converted, in memory. The arrays of a CSR matrix are written as they are, and may
        be mapped files themselves.

    Examples
    --------
    >>> import os, tempfile
    >>> import scipy.sparse as sp
    >>> from parablock.datasets import open_csr, save_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows")
    ...     save_csr(path, sp.eye(1000, 50, format="csr"))
    ...     open_csr(path).shape
    (1000, 50)
    """
    if not sp.issparse(matrix):
        raise TypeError(
            f"save_csr writes SciPy sparse matrices; got {type(matrix).__name__}. Dense arrays are written with "
            "np.save and opened with np.load(path, mmap_mode='r')."
        )
    matrix = given(matrix, "The matrix").tocsr()
    arrays = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, dtype=np.int64),
    }
    with new_folder(folder) as unfinished:
        for name, array in arrays.items():
            with open(unfinished / f"{name}.npy", "wb") as file:
                np.save(file, array)
                file.flush()
                os.fsync(file.fileno())


def open_csr(folder: str | os.PathLike[str], start: int = 0, stop: int | None = None) -> sp.csr_matrix:
    """Open a CSR matrix on disk, or some rows of it, without reading its values into memory.

    Parameters
    ----------
    folder : path
        With data.npy, indices.npy and indptr.npy, the arrays of a CSR matrix as SciPy names them, and shape.npy, the
        numbers of its rows and columns; `save_csr` writes such a folder.
    start, stop : int, optional
        The rows from start to stop, without stop itself: for a process that has its own part of the data. All rows by
        default.

    Returns
    -------
    scipy.sparse.csr_matrix
        Its values and their columns are mapped files, read-only. The columns are read once here, to see that they are
        in the range of the matrix.

    Examples
    --------
    The rows that one of two processes trains on:

    >>> import os, tempfile
    >>> import scipy.sparse as sp
    >>> from parablock.datasets import open_csr, save_csr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows")
    ...     save_csr(path, sp.eye(1000, 50, format="csr"))
    ...     open_csr(path, start=500).shape
    (500, 50)
    """
    place = Path(folder)
    data, indices, indptr, shape = (_part(place, name) for name in _PARTS)
    if shape.shape != (2,) or not np.issubdtype(shape.dtype, np.integer):
        raise _bad(place, f"shape.npy must hold two whole numbers, rows and columns; it holds {shape[:3].tolist()}")
    n_rows, n_columns = shape.tolist()
    if min(n_rows, n_columns) < 0:
        raise _bad(place, f"shape.npy holds {n_rows} rows and {n_columns} columns")
    if not takes(data.dtype):
        raise _bad(place, f"data.npy must hold numbers as SciPy takes them; it holds {data.dtype.str}")
    for name, array in (("indices", indices), ("indptr", indptr)):
        if array.dtype not in (np.int32, np.int64):
            raise _bad(place, f"{name}.npy must hold int32 or int64 numbers; it holds {array.dtype}")
    if len(indices) != len(data):
        raise _bad(place, f"data.npy has {len(data)} values and indices.npy {len(indices)}; they must be equally many")
    if len(indptr) != n_rows + 1:
        raise _bad(place, f"indptr.npy has {len(indptr)} numbers; a matrix of {n_rows} rows needs {n_rows + 1}")
    stop = n_rows if stop is None else stop
    if not 0 <= start <= stop <= n_rows:
        raise ValueError(f"Rows {start} to {stop} were asked for; {os.fspath(place)!r} has the rows 0 to {n_rows}.")

    ends = indptr[start : stop + 1].astype(np.int64)
    if indptr[0] != 0 or indptr[-1] != len(data) or ends[0] < 0 or ends[-1] > len(data) or np.any(np.diff(ends) < 0):
        raise _bad(place, f"indptr.npy must rise from 0 to {len(data)}, the number of values, and does not")
    if ends[-1] - ends[0] > np.iinfo(indices.dtype).max:
        raise _bad(place, "with more than 2^31 values in these rows, indices.npy must hold int64 numbers")
    data, indices = data[ends[0] : ends[-1]], indices[ends[0] : ends[-1]]
    low, high = int(indices.min(initial=0)), int(indices.max(initial=-1))
    if low < 0 or high >= n_columns:
        raise _bad(place, f"indices.npy has numbers from {low} to {high}; the matrix has {n_columns} columns")
    return csr_over(data, indices, (ends - ends[0]).astype(indices.dtype), n_columns)


def _part(folder: Path, name: str) -> np.ndarray:
    path = folder / f"{name}.npy"
    if not path.exists():
        raise FileNotFoundError(
            f"{os.fspath(path)!r} is not there. A CSR matrix on disk is a folder with "
            f"{', '.join(f'{part}.npy' for part in _PARTS)}: save_csr writes one."
        )
    try:
        with open(path, "rb") as file:
            array = map_npy(file)
    except ArrayError as error:
        raise _bad(folder, f"{name}.npy cannot be opened ({error})") from error
    if array.ndim != 1:
        raise _bad(folder, f"{name}.npy must have one dimension; it has the shape {array.shape}")
    return array


def _bad(folder: Path, why: str) -> DataError:
    return DataError(f"{os.fspath(folder)!r} holds no whole CSR matrix: {why}. Write it again with save_csr.")
