"""NumPy's files: .npy, .npz with X and y, CSR matrices as SciPy saves them, and labels in a file of their own."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from parablock import npy
from parablock.csr import checked_csr
from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.labels import as_labels, joined, label_array
from parablock.datasets.streams import STANDARD_INPUT, name_of, reading, whole_content, whole_lines

_CSR = {"data", "indices", "indptr", "shape", "format"}


def read_npy(source: Any) -> np.ndarray:
    """The array of a .npy file; mapped, not read, where the source is a path."""
    with _opened(source) as (file, start, there):
        if npy.is_npz(start):
            npy.Npz(file)  # or it is none
            raise DataError(f"{name_of(source)}: it holds several arrays; read it as npz")
        return npy.read_npy(file, there) if isinstance(file, io.BytesIO) else npy.map_npy(file)


def read_npz(source: Any) -> Data:
    """X, y and feature_names of a .npz file: the arrays of these names, or a sparse matrix as SciPy saves it and the
    others beside it."""
    name = name_of(source)
    with _opened(source) as (file, start, there):
        if npy.is_npy(start):
            npy.npy_header(file, there)
            raise DataError(f"{name}: it holds a single array; read it as npy")
        arrays = npy.Npz(file)
        try:
            if set(arrays) >= _CSR or "X" in arrays:
                X = _sparse(arrays, name) if set(arrays) >= _CSR else arrays["X"]
                return Data(X, arrays.get("y"), _names(arrays, X.shape[1:], name))
        except npy.ArrayError as error:
            raise DataError(f"{name}: an array in it cannot be read ({error})") from error
        found = ", ".join(arrays) or "nothing"
        raise DataError(
            f"{name}: it holds {found[:200]}; it should hold the arrays X and y, or a CSR matrix as "
            "scipy.sparse.save_npz writes it"
        )


def _names(arrays: npy.Npz, shape: tuple[int, ...], name: str) -> list[str] | None:
    if "feature_names" not in arrays:
        return None
    names = arrays["feature_names"]
    if names.dtype.kind != "U" or names.shape != shape:
        raise DataError(
            f"{name}: its feature_names must be text of shape {shape}, one a feature; they are {names.dtype} of shape "
            f"{names.shape}"
        )
    return [str(title) for title in names]


def _sparse(arrays: npy.Npz, name: str) -> sp.csr_matrix:
    format, shape = arrays["format"], arrays["shape"]
    kind = format.item() if format.size == 1 else None
    kind = kind.decode("ascii", errors="replace") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc"):
        raise DataError(f"{name}: it holds a sparse matrix in the format {kind!r}; csr and csc can be read")
    if shape.dtype.kind not in "iu" or shape.shape != (2,):
        raise DataError(f"{name}: an array in it cannot be read (shape must be two whole numbers, rows and columns)")
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    rows, columns = shape.tolist()
    try:
        if kind == "csr":
            return checked_csr(*parts, (rows, columns))
        return checked_csr(*parts, (columns, rows)).T.tocsr()
    except (ValueError, MemoryError) as error:  # the last of a shape with very many rows, of which nothing is there
        raise DataError(f"{name}: an array in it cannot be read (sparse matrix: {error})") from error


def read_labels(source: Any) -> np.ndarray:
    """Labels from a .npy file, or from text with one a line."""
    name = name_of(source)
    if Path(name).suffix == ".npy":
        with _opened(source) as (file, _, there):
            labels = npy.read_npy(file, there)
        if labels.ndim != 1:
            raise DataError(f"{name}: labels must have one dimension; these have the shape {labels.shape}")
        return labels
    parts, line, gap = [], 0, 0  # the first empty line after a label
    with reading(source) as file:
        for text in whole_lines(file, name):
            lines = [label.strip() for label in text.splitlines()]
            count = len(lines)
            while lines and not lines[-1]:
                lines.pop()
            if lines and (gap or not all(lines)):
                raise DataError(f"{name}, line {gap or line + lines.index(b'') + 1}: there is no label on it")
            if lines:
                parts.append(label_array(lines, name, line + 1))
            if len(lines) < count:
                gap = gap or line + len(lines) + 1
            line += count
    return as_labels(joined(parts, name), name)


@contextmanager
def _opened(source: Any) -> Iterator[tuple[BinaryIO, bytes, int]]:
    """A file of NumPy's: itself, how it begins, and its length."""
    name = name_of(source)
    try:
        if isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT:
            with open(source, "rb") as file:
                start = file.read(8)
                file.seek(0)
                yield file, start, os.fstat(file.fileno()).st_size
        else:
            content = whole_content(source)
            yield io.BytesIO(content), content[:8], len(content)
    except npy.ArrayError as error:
        raise DataError(f"{name}: it is no file of NumPy's that can be read ({error})") from error
