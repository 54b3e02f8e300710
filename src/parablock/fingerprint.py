"""What tells one problem from another, for a checkpoint to be resumed by its own, and for a model to be certified with
the rows that it was trained on.

Every value counts, and how rows are spread over machines does not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.engines.sharing import Shard
from parablock.hashing import hash_of_rows
from parablock.kernels import Called, Kernel
from parablock.problem import Problem

_VALUES = 16  # rows whose kernel values tell one function from another
_DIGITS = 9  # of a kernel's parameters: the last ones of gamma="scale" depend on how the rows are spread


def fingerprint_of(kernel: Kernel, problem: Problem, X: Any) -> str:
    """Of rows, targets and weights, and of loss and kernel with their parameters."""
    told: list[Any] = [type(kernel).__qualname__]
    if isinstance(kernel, Called):
        # A function says nothing of itself that would hold in another process; its values do.
        few = X[np.unique(np.linspace(0, X.shape[0] - 1, _VALUES).astype(np.intp))]
        told.append(np.ascontiguousarray(kernel.values(few, few), dtype=np.float64).tobytes())
    else:
        told += [(name, _short(value)) for name, value in sorted(vars(kernel).items())]
    told += [type(problem.loss).__qualname__, problem.loss.parameter, problem.intercept, str(X.dtype)]
    return _digest(X, [*problem.target, *problem.weight], told)


def fingerprint_of_rows(
    X: Any, target: np.ndarray, sample_weight: np.ndarray, more: Any = None, dtype: Any = None
) -> str:
    """Of rows, targets of shape (n_outputs, n) and weights as a user gave them, and of what more there is to say of
    them (as its `repr`); with the precision of the rows, or the given one, to which they are rounded first."""
    dtype = X.dtype if dtype is None else np.dtype(dtype)
    return f"{dtype}:{_digest(X, [*target, sample_weight], [more], None if dtype == X.dtype else dtype)}"


def is_fingerprint(text: str) -> bool:
    """Whether it is one of `fingerprint_of_rows`."""
    return re.fullmatch("float(32|64):[0-9a-f]{64}", text) is not None


def precision_of(fingerprint: str) -> np.dtype:
    """That of the rows that `fingerprint_of_rows` was given."""
    return np.dtype(fingerprint.partition(":")[0])


def _digest(X: Any, columns: Sequence[np.ndarray], told: Sequence[Any], dtype: Any = None) -> str:
    hashes = X.hash_of_rows(columns) if isinstance(X, Shard) else hash_of_rows(X, columns, dtype=dtype)
    return hashlib.sha256(repr((X.shape, len(columns), hashes.tolist(), *told)).encode()).hexdigest()


def _short(value: Any) -> Any:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else value
