"""NumPy's files: .npy, .npz with X and y, CSR matrices as SciPy saves them, and labels in a file of their own."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.datasets.data import Data
from parablock.datasets.errors import DataError
from parablock.datasets.streams import STANDARD_INPUT, name_of, whole_content
from parablock.datasets.tables import as_labels

_CSR = {"data", "indices", "indptr", "shape", "format"}


def read_npy(source: Any) -> np.ndarray:
    """The array of a .npy file; mapped, not read, where the source is a path."""
    array: np.ndarray = _opened(source, mapped=True)
    if isinstance(array, np.lib.npyio.NpzFile):
        raise DataError(f"{name_of(source)}: it holds several arrays; read it as npz")
    return array


def read_npz(source: Any) -> Data:
    """X, y and feature_names of a .npz file: the arrays of these names, or a sparse matrix as SciPy saves it and the
    others beside it."""
    name = name_of(source)
    opened = _opened(source, mapped=False)
    if not isinstance(opened, np.lib.npyio.NpzFile):
        raise DataError(f"{name}: it holds a single array; read it as npy")
    with opened as arrays:
        try:
            if set(arrays) >= _CSR or "X" in arrays:
                X = _sparse(arrays, name) if set(arrays) >= _CSR else arrays["X"]
                return Data(X, arrays.get("y"), _names(arrays, X.shape[1:], name))
        except DataError:
            raise
        except (ValueError, KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{name}: an array in it cannot be read ({error})") from error
        found = ", ".join(arrays) or "nothing"
        raise DataError(
            f"{name}: it holds {found}; it should hold the arrays X and y, or a CSR matrix as scipy.sparse.save_npz "
            "writes it"
        )


def _names(arrays: Any, shape: tuple[int, ...], name: str) -> list[str] | None:
    if "feature_names" not in arrays:
        return None
    names = arrays["feature_names"]
    if names.dtype.kind != "U" or names.shape != shape:
        raise DataError(
            f"{name}: its feature_names must be text of shape {shape}, one a feature; they are {names.dtype} of shape "
            f"{names.shape}"
        )
    return [str(title) for title in names]


def _sparse(arrays: Any, name: str) -> sp.csr_matrix:
    kind = arrays["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc"):
        raise DataError(f"{name}: it holds a sparse matrix in the format {kind!r}; csr and csc can be read")
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    matrix = (sp.csr_matrix if kind == "csr" else sp.csc_matrix)(parts, shape=tuple(arrays["shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix.tocsr()


def read_labels(source: Any) -> np.ndarray:
    """Labels from a .npy file, or from text with one a line."""
    name = name_of(source)
    if Path(name).suffix == ".npy":
        labels = np.asarray(_opened(source, mapped=False))
        if labels.ndim != 1:
            raise DataError(f"{name}: labels must have one dimension; these have the shape {labels.shape}")
        return labels
    lines = [line.strip() for line in whole_content(source).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if not all(lines):
        raise DataError(f"{name}, line {lines.index(b'') + 1}: there is no label on it")
    return as_labels(np.array(lines), name)


def _opened(source: Any, mapped: bool) -> Any:
    name = name_of(source)
    try:
        if isinstance(source, (str, os.PathLike)) and os.fspath(source) != STANDARD_INPUT:
            return np.load(source, mmap_mode="r" if mapped else None, allow_pickle=False)
        return np.load(io.BytesIO(whole_content(source)), allow_pickle=False)
    except DataError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{name}: it is no file of NumPy's that can be read ({error})") from error
