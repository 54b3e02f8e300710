"""What tells one problem from another, so that a checkpoint is resumed by its own."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.kernels import Called, Kernel
from parablock.problem import Problem

_ROWS, _VALUES = 256, 16  # of the data, and of those some whose kernel values are computed


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
