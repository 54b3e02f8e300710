"""What tells one problem from another, for a checkpoint to be resumed by its own, and one rank's data from others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from parablock.kernels import Called, Kernel
from parablock.problem import Problem

_ROWS, _VALUES = 256, 16  # of the data, and of those some whose kernel values are computed
_WORDS = 1024  # of 8 bytes: a line


def fingerprint_of(kernel: Kernel, problem: Problem, X: Any) -> str:
    """Of targets and weights, of some rows of the data, and of loss and kernel with their parameters."""
    digest = hashlib.sha256()
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _ROWS).astype(np.intp))
    some = X[rows]
    parameters, parts = vars(kernel), [problem.target, problem.weight]
    parts += [some.data, some.indices, some.indptr] if sp.issparse(some) else [some]
    if isinstance(kernel, Called):
        # A function says nothing of itself that would hold in another process; its values do.
        few = some[:_VALUES]
        parameters, parts = {}, [*parts, kernel.values(few, few)]
    digest.update(repr((type(kernel).__qualname__, sorted(parameters.items()))).encode())
    digest.update(repr((type(problem.loss).__qualname__, problem.loss.parameter, problem.intercept)).encode())
    for part in parts:
        digest.update(str(part.shape).encode())
        digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return digest.hexdigest()


def digest_of(X: Any, columns: Sequence[np.ndarray]) -> str:
    """Of all the data and of columns beside it. It differs wherever two machines were not given the same by mistake; it
    is no proof against intent."""
    digest = hashlib.sha256()
    for part in ((X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)) + tuple(columns):
        digest.update(str((part.shape, part.dtype)).encode())
        if part.dtype == object:
            digest.update(repr(part.tolist()).encode())
        else:
            _add(digest, np.ascontiguousarray(part).reshape(-1).view(np.uint8))
    return digest.hexdigest()


def _add(digest: Any, bytes_: np.ndarray) -> None:
    """Sums over lines of words, and over columns of them, instead of the words: to hash these would take ten times as
    long as to read them. The data may be a file that is larger than memory, so it is not copied."""
    whole = len(bytes_) // (8 * _WORDS) * 8 * _WORDS
    for sums in _sums(bytes_[:whole].view(np.uint64).reshape(-1, _WORDS)):
        digest.update(sums.data)
    digest.update(bytes_[whole:].data)


@njit(cache=True, nogil=True)
def _sums(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every line and of every column, in one look at the words."""
    lines, columns = np.zeros(words.shape[0], dtype=np.uint64), np.zeros(words.shape[1], dtype=np.uint64)
    for i in range(words.shape[0]):
        total = lines[i]
        for j in range(words.shape[1]):
            total += words[i, j]
            columns[j] += words[i, j]
        lines[i] = total
    return lines, columns
