"""Scaling of features by a shift and a factor each, which a fitted model may carry.

The command trains on scaled rows, and the scalers of a pipeline are folded into one scaling when it is saved; the
model then takes the rows that a user has, and scales them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.mapped import stretches

_ROUNDING = 1e-12  # of its mean: by less a feature only seems to vary
_ALREADY = 1e-6  # as far as means and variances may be from 0 and 1 of rows that were scaled before


@dataclass(frozen=True, eq=False)
class Scaling:
    """``(x - shift) * scale`` of every row.

    Parameters
    ----------
    shift, scale : ndarray of shape (n_features,), float64
        Finite; scales are positive. Where all shifts are zero, zeros stay zeros and sparse rows sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.scaling import Scaling
    >>> X = np.array([[1.0, 1900.0], [3.0, 2000.0]])
    >>> scaling = Scaling.of(X)
    >>> scaling.shift, scaling.scale
    (array([   2., 1950.]), array([1.  , 0.02]))
    >>> scaling.apply(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    shift: np.ndarray
    scale: np.ndarray

    def __post_init__(self) -> None:
        if self.shift.ndim != 1 or self.shift.shape != self.scale.shape:
            raise ValueError(
                f"A scaling has one shift and one factor a feature; got shapes {self.shift.shape} and "
                f"{self.scale.shape}."
            )
        good = np.isfinite(self.shift) & np.isfinite(self.scale) & (self.scale > 0)
        if not np.all(good):
            place = int(np.argmin(good))
            raise ValueError(
                "A scaling has finite shifts and positive finite factors; feature "
                f"{place + 1} has shift {self.shift[place]} and factor {self.scale[place]}."
            )

    @classmethod
    def of(cls, X: Any, *, shift: bool = True) -> Scaling:
        """That of dense rows to mean 0 and variance 1; of sparse rows, or without shift, to a largest absolute value of
        1. A constant feature keeps its unit."""
        if sp.issparse(X) or not shift:
            return cls(np.zeros(X.shape[1]), _inverse(_largest(X)))
        size = _largest(X)
        unit = np.where(size > 0, size, 1.0)  # in which neither sums nor squares overflow
        mean, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for start, stop in stretches(X):
            mean += (X[start:stop] / unit).sum(axis=0) / X.shape[0]
        for start, stop in stretches(X):
            squares += np.square(X[start:stop] / unit - mean).sum(axis=0) / X.shape[0]
        spread = np.sqrt(squares)
        return cls(mean * unit, _inverse(np.where(spread > _ROUNDING * np.abs(mean), spread, 0.0) * unit))

    @property
    def shifts(self) -> bool:
        """Whether zeros do not stay zeros."""
        return bool(self.shift.any())

    @property
    def does_nothing(self) -> bool:
        """Whether rows are left as they are, but for rounding: they were scaled before."""
        return bool(np.all(np.abs(self.shift * self.scale) <= _ALREADY) and np.all(np.abs(self.scale - 1) <= _ALREADY))

    def is_same(self, other: Scaling) -> bool:
        """Whether the two do exactly the same."""
        return np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)

    def then(self, other: Scaling) -> Scaling:
        """This one, and the other one of what it gives."""
        return Scaling(self.shift + other.shift / self.scale, self.scale * other.scale)

    def apply(self, X: Any) -> Any:
        """The rows scaled: in float64, and given back in float32 where they came so. Sparse rows stay sparse where
        nothing is shifted, and become dense otherwise."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if sp.issparse(X) and not self.shifts:
            scaled = X.tocsr().astype(dtype, copy=True)
            scaled.data = (X.data * self.scale[X.indices]).astype(dtype, copy=False)
            _check(scaled.data)
            return scaled
        X = X.toarray() if sp.issparse(X) else X
        out = np.empty(X.shape, dtype=dtype)
        with np.errstate(over="ignore"):
            for start, stop in stretches(X):
                out[start:stop] = (X[start:stop] - self.shift) * self.scale
                _check(out[start:stop])
        return out


def _largest(X: Any) -> np.ndarray:
    """The largest absolute value of every feature."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=0).toarray()[0], dtype=np.float64)
    largest = np.zeros(X.shape[1])
    for start, stop in stretches(X):
        part = X[start:stop]
        np.maximum(largest, np.maximum(part.max(axis=0), -part.min(axis=0).astype(np.float64)), out=largest)
    return largest


def _inverse(size: np.ndarray) -> np.ndarray:
    """1 / size; 1 for a size of zero, or of so little that no number is its inverse."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1.0 / size
    return np.where(np.isfinite(inverse) & (inverse > 0), inverse, 1.0)


def _check(scaled: np.ndarray) -> None:
    if not np.isfinite(scaled).all():
        raise ValueError(
            f"Features are too large for {scaled.dtype} after scaling: they are very far from those that the scaling "
            "was made for."
        )
