"""LIBSVM's (svmlight's) text: a line a row, with its label and its features that are not zero."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from parablock.csr import given
from parablock.datasets.errors import DataError, quoted
from parablock.datasets.numbers import powers_of_ten
from parablock.datasets.streams import MAX_LINE_BYTES, name_of, reading, refuse_too_much, whole_lines, writing
from parablock.datasets.svmlight_lines import FINE, LARGEST, complaint, parse_lines

_ROWS_AT_ONCE = 4096  # that are made into text before they are written


def read_svmlight(
    source: Any,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Read labels and features from LIBSVM's text format.

    A line is ``label index:value index:value ...`` with ascending indices. Empty lines, ``qid:number`` after the label
    and everything after a ``#`` are skipped.

    Parameters
    ----------
    source : path, "-" or file of bytes
        "-" is standard input. Decompressed where its first bytes are those of gzip, bzip2 or xz.
    n_features : int, optional
        Number of columns, so that a file whose rows lack the last features gets them; a larger index is an error. By
        default the largest index of the file.
    zero_based : bool, default=False
        Whether indices count from 0 instead of 1.
    dtype : {float64, float32}, default=float64
    max_line_bytes : int, default=64 MB
        A line that is longer is an error.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Of int64 where all labels are whole, of float64 otherwise.

    Raises
    ------
    DataError
        With the number of the line that is malformed.

    Examples
    --------
    >>> import io
    >>> from parablock.datasets import read_svmlight
    >>> X, y = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2  # a comment\\n-1 2:1.5\\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1.5, 0. ]])
    >>> y
    array([ 1, -1])
    """
    first = 0 if zero_based else 1
    last = LARGEST if n_features is None else n_features - 1 + first
    name, parts, line, taken = name_of(source), [], 1, 0
    with reading(source) as file:
        for text in whole_lines(file, name, max_line_bytes):
            part = _parsed(text, name, line, first, last, np.dtype(dtype))
            line += text.count(b"\n")
            taken += sum(array.nbytes for array in part)
            refuse_too_much(taken, name, line)
            parts.append(part)
    if not sum(len(part.labels) for part in parts):
        raise DataError(f"{name}: there is no row in it")
    return _joined(parts, n_features)


class _Part(NamedTuple):
    """Of some lines: labels, entries of each row, columns (from 0) and values of the entries."""

    labels: np.ndarray
    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def _parsed(text: bytes, name: str, line: int, first: int, last: int, dtype: np.dtype) -> _Part:
    # Every row has a character and ends its line, and every entry has a colon, so that these are enough.
    labels = np.empty(min(text.count(b"\n"), len(text) // 2) + 1)
    counts = np.empty(len(labels), dtype=np.int64)
    columns = np.empty(text.count(b":"), dtype=np.int32)
    values = np.empty(len(columns))
    status, position, offset, n_rows, n_entries, doubtful = parse_lines(
        np.frombuffer(text, dtype=np.uint8), first, last, powers_of_ten(), labels, counts, columns, values
    )
    if status != FINE:
        before = columns[n_entries - 1] + first if n_entries else 0
        raise DataError(f"{name}, line {line + offset}: {complaint(status, text[position:], before, last)}")
    for entry, start, stop in doubtful:
        value = float(text[start:stop])
        if not np.isfinite(value):
            offset = text.count(b"\n", 0, start)
            raise DataError(f"{name}, line {line + offset}: {quoted(text[start:stop])} is too large for a number")
        if entry < 0:
            labels[-entry - 1] = value
        else:
            values[entry] = value
    # A copy lets go of what was too much.
    return _Part(
        labels[:n_rows].copy(), counts[:n_rows].copy(), columns[:n_entries].copy(), values[:n_entries].astype(dtype)
    )


def _joined(parts: list[_Part], n_features: int | None) -> tuple[sp.csr_matrix, np.ndarray]:
    labels, counts, columns, values = (
        parts[0] if len(parts) == 1 else (np.concatenate([part[which] for part in parts]) for which in range(4))
    )
    ends = np.concatenate(([0], np.cumsum(counts)))
    index = np.int32 if len(columns) <= np.iinfo(np.int32).max else np.int64
    width = int(columns.max(initial=-1)) + 1 if n_features is None else n_features
    X = sp.csr_matrix(
        (values, columns.astype(index, copy=False), ends.astype(index)), shape=(len(labels), width), copy=False
    )
    X.has_sorted_indices = True
    whole = np.all(labels == np.rint(labels)) and np.abs(labels).max() < 2**53
    return X, labels.astype(np.int64) if whole else labels


def write_svmlight(target: Any, X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write labels and features in LIBSVM's text format, with all digits that reading needs to give the same numbers.

    Parameters
    ----------
    target : path or file of bytes
        A file at a path is replaced when the new one is whole, and compressed where its name ends in .gz, .bz2 or .xz.
    X : array or sparse matrix of shape (n_samples, n_features)
        Zeros of an array are left out; entries of a sparse matrix are written as they are.
    y : array of shape (n_samples,)
        Numbers.
    zero_based : bool, default=False
        Whether indices count from 0 instead of 1.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from parablock.datasets import write_svmlight
    >>> file = io.BytesIO()
    >>> write_svmlight(file, np.array([[0.1, 0.0, 3.0], [0.0, 0.0, 0.0]]), [1, -1])
    >>> print(file.getvalue().decode())
    1 1:0.1 3:3.0
    -1
    <BLANKLINE>
    """
    X, y = given(X, "X"), np.asarray(given(y, "y"))
    if y.shape != (X.shape[0],):
        raise DataError(
            f"LIBSVM's text has one number as label of each row; got labels of shape {y.shape} for {X.shape[0]} rows"
        )
    if y.dtype.kind not in "biuf":
        some = ", ".join(repr(label) for label in y[:1].tolist())
        raise DataError(
            f"LIBSVM's text has one number as label of each row; {some} is none. Number the labels, or write .npz, "
            "which has room for text"
        )
    if not np.all(np.isfinite(y)):
        raise DataError("LIBSVM's text has finite numbers as labels; some of these are not")
    if isinstance(target, (str, os.PathLike)):
        with writing(target) as file:
            _write(file, X, y, zero_based)
    else:
        _write(target, X, y, zero_based)


def _write(file: Any, X: Any, y: np.ndarray, zero_based: bool) -> None:
    labels = _decimals(y)
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = sp.csr_matrix(X[start : start + _ROWS_AT_ONCE])
        rows.sum_duplicates()
        if not np.all(np.isfinite(rows.data)):
            row = start + int(np.searchsorted(rows.indptr, np.argmin(np.isfinite(rows.data)), side="right"))
            raise DataError(f"LIBSVM's text has finite numbers only; row {row} has a feature that is not")
        ends, values = rows.indptr.tolist(), _decimals(rows.data)
        columns = (rows.indices.astype(np.int64) + (not zero_based)).tolist()
        entries = [f"{column}:{value}" for column, value in zip(columns, values)]
        lines = [
            " ".join((label, *entries[begin:end])) + "\n"
            for label, begin, end in zip(labels[start : start + _ROWS_AT_ONCE], ends, ends[1:])
        ]
        file.write("".join(lines).encode())


def _decimals(values: np.ndarray) -> list[str]:
    """Numbers as text from which the same numbers can be read."""
    if values.dtype.kind == "f" and values.itemsize <= np.dtype(np.float32).itemsize:
        return [f"{value:.9g}" for value in values.tolist()]
    return [repr(value) for value in (values.astype(np.int8) if values.dtype == bool else values).tolist()]
