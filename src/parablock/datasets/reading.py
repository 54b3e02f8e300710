"""Data files of all kinds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parablock.datasets.arrays import read_labels, read_npy, read_npz
from parablock.datasets.csr_files import open_csr
from parablock.datasets.csv_text import read_csv
from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.streams import MAX_LINE_BYTES, STANDARD_INPUT, name_of, without_compression
from parablock.datasets.svmlight import read_svmlight
from parablock.datasets.tables import chosen_columns, read_parquet

_ENDINGS = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ("svmlight", "csv", "parquet", "npy", "npz", "folder")
TABLES = ("csv", "parquet")


def format_of(source: Any) -> str:
    """The format that a file's name promises; LIBSVM's text where it promises nothing."""
    if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == STANDARD_INPUT:
        return "svmlight"
    if Path(source).is_dir():
        return "folder"
    return _ENDINGS.get(Path(without_compression(os.fspath(source))).suffix.lower(), "svmlight")


def read_data(
    source: Any,
    *,
    format: str | None = None,
    target: str | int | None = None,
    drop: Sequence[str | int] = (),
    features: Sequence[str] | None = None,
    header: bool | None = None,
    labels: Any = None,
    n_features: int | None = None,
    zero_based: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Data:
    """Read features and labels from a file.

    Parameters
    ----------
    source : path, "-" or file of bytes
        "-" is standard input. Text may be compressed with gzip, bzip2 or xz.
    format : {"svmlight", "csv", "parquet", "npy", "npz", "folder"}, optional
        By default what the name's ending says: .csv and .tsv, .parquet and .pq, .npy, .npz; a folder is one that
        `save_csr` wrote; anything else is LIBSVM's text (svmlight). A .npz file holds the array X or a CSR matrix as
        `scipy.sparse.save_npz` writes it, y if there are labels, and feature_names if they have some.
    target : str or int, optional
        Of tables (CSV and Parquet) the column with the labels: its name, or its number from 1, or from -1 backwards.
    drop : sequence of str or int, default=()
        Of tables: columns to leave out, named or numbered likewise.
    features : sequence of str, optional
        Of tables and .npz files with names: the columns to take as features, in this order; all that are left by
        default.
    header : bool, optional
        Of CSV: whether the first line has the names of the columns; by default it is looked at.
    labels : path, optional
        A file with the labels alone: .npy, or text with one a line.
    n_features : int, optional
        How many there must be. LIBSVM's text may have fewer, the others are zero.
    zero_based : bool, default=False
        Of LIBSVM's text: whether indices count from 0 instead of 1.
    max_line_bytes : int, default=64 MB
        Of text: a line that is longer is an error. Raise it for tables that are wider.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        Which says where the file is malformed.

    Examples
    --------
    >>> import io
    >>> from parablock.datasets import read_data
    >>> data = read_data(io.BytesIO(b"5.1,3.5,1\\n6,2.9,0\\n"), format="csv", target=-1)
    >>> data.X.shape, data.y
    ((2, 2), array([1, 0]))
    """
    format = format_of(source) if format is None else format
    name = name_of(source)
    if format not in FORMATS:
        raise DataError(f"format {format!r} is not known; there are {', '.join(FORMATS)}")
    if (target is not None or drop) and format not in TABLES:
        raise DataError(f"{name}: columns were named; this is read as {format}, and only csv and parquet have columns")
    if format == "svmlight":
        data = Data(*read_svmlight(source, n_features=n_features, zero_based=zero_based, max_line_bytes=max_line_bytes))
    elif format == "csv":
        data = read_csv(
            source, target=target, drop=drop, features=features, header=header, max_line_bytes=max_line_bytes
        )
    elif format == "parquet":
        data = read_parquet(source, target=target, drop=drop, features=features)
    elif format == "npz":
        data = _in_order(read_npz(source), name, features)
    else:
        data = Data(read_npy(source) if format == "npy" else open_csr(source), None)
    if labels is not None:
        if data.y is not None:
            raise DataError(f"{name}: it has labels of its own, so that a file of labels beside it has no place")
        data = Data(data.X, read_labels(labels), data.names)
    _check(data, name, n_features)
    return data


def _in_order(data: Data, name: str, features: Sequence[str] | None) -> Data:
    """The features that are asked for by name, where the data has names."""
    if features is None or data.names is None or data.names == list(features):
        return data
    _, places = chosen_columns(data.names, len(data.names), name, None, (), features)
    return Data(data.X[:, places], data.y, list(features))


def _check(data: Data, name: str, n_features: int | None) -> None:
    X, y = data.X, data.y
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{name}: features must be numbers in two dimensions; these are {X.dtype} of shape {X.shape}")
    if not X.shape[0]:
        raise DataError(f"{name}: there is no row in it")
    if not X.shape[1]:
        raise DataError(f"{name}: there is no feature in it")
    if y is not None and y.shape != (X.shape[0],):
        raise DataError(
            f"{name}: there must be one label a row; there are {X.shape[0]} rows, and labels of shape {y.shape}"
        )
    if y is not None and y.dtype.kind != "U" and not (y.dtype.kind in "biuf" and np.can_cast(y.dtype, np.float64)):
        raise DataError(f"{name}: labels must be numbers or text; these are {y.dtype}. Write them as y.astype(str)")
    if n_features is not None and X.shape[1] != n_features:
        hint = "; is one of them the target?" if y is None and X.shape[1] == n_features + 1 else ""
        raise DataError(f"{name}: there are {X.shape[1]} features, and {n_features} are expected{hint}")
