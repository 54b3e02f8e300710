"""Whether kernel values keep their digits in the precision that they are computed in.

A distance is computed as `s(x, x) + s(z, z) - 2 s(x, z)`: of two rows that are near each other and far from the origin
nothing but rounding is left. So values of a few rows, as the device computes them, are compared with exact ones: those
of the rows with the largest norms, which lose most, and of some others; each with itself and with a row beside it,
which lose more than any other pair, and with two others, where numbers leave the range of the precision.

Whole numbers lose nothing as long as the sums of their products are whole numbers that the precision holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compact import without_unused
from parablock.devices.base import Device, Samples
from parablock.devices.cpu.samples import make_samples
from parablock.devices.cpu.tiles import tiles
from parablock.kernels import Cosine, Kernel, Linear, Polynomial, Sigmoid
from parablock.kernels.distance import DistanceKernel
from parablock.mapped import is_sparse, stretches

LARGEST_ERROR = 1e-4  # of a kernel value, beside those of its two rows with themselves
_ROWS = 16  # of the largest norms, and as many others
_FEATURES = 1 << 16  # of dense rows up to which there are so many
_AT_ONCE = 1 << 12  # features: a bound on memory
_STEPS = 4  # of rounding to the side is a row beside another one
_ROUNDING, _ROOM = 8, 1 / 8  # of a sum of three terms, in its last digit; below the largest number
_NORM = 1e-30  # squared: that of smaller rows has fewer digits in float32 ...
_LEAST_SQUARE = 1e-290  # ... and of these in float64
_NEGLIGIBLE = 1e-14  # beside the largest kernel value
_ALIKE = 1e-12  # share that differs of rows that are all the same, to rounding


def kernel_error(device: Device, kernel: Kernel, samples: Samples, X: Any, centre: np.ndarray | None) -> float:
    """The largest error found of a kernel value, as a share of the values of its two rows with themselves; infinity
    where numbers leave the range of the precision.

    Parameters
    ----------
    device : Device
    kernel : Kernel
    samples : Samples
        The rows of X as the device has them.
    X : array, CSR matrix, MappedRows or TensorRows
    centre : ndarray or None
        What was subtracted.
    """
    if kernel.overlap in ("given", "called"):
        return 0.0  # the user's own values
    own = samples.self_overlap
    if not (np.all(np.isfinite(own)) and gamma_fits(kernel, samples.dtype)):
        return np.inf
    rows = X[_chosen(own, 0 if is_sparse(X) else X.shape[1])]
    beside = _beside(rows, _STEPS * float(np.finfo(samples.dtype).eps))
    both = sp.vstack((rows, beside)).tocsr() if sp.issparse(rows) else np.concatenate((rows, beside))
    first, second = _pairs(rows.shape[0])
    here = device.samples(both, kernel, centre)
    with np.errstate(all="ignore"):  # what leaves the range is found in what comes out
        values = device.gram(kernel, here.take(slice(rows.shape[0])), here)[first, second].astype(np.float64)
        better = samples.dtype == np.float32 and device.has_float64
        exact, largest = _exact(kernel, both.astype(np.float64), first, second, offsets=better)
        errors = np.where(values == exact, 0.0, np.abs(values - exact) / largest)
    fits = np.all(np.isfinite(errors)) and largest.max() < math.sqrt(
        np.finfo(samples.dtype).max
    )  # also squares of them
    return float(errors.max()) if fits else np.inf


def gamma_fits(kernel: Kernel, dtype: Any) -> bool:
    """Whether the kernel's gamma, if it has one, is a number of that precision with all its digits."""
    gamma, limits = getattr(kernel, "gamma", 1.0), np.finfo(dtype)
    return not isinstance(gamma, float) or float(limits.smallest_normal) <= gamma <= float(limits.max)


def rows_for_float64(device: Device, kernel: Kernel, samples: Samples, X: Any, centre: np.ndarray | None) -> np.ndarray:
    """Which rows to predict are so far away from the training data that float32 would not do for them, as it did there,
    where the device has something better. Takes what `kernel_error` takes."""
    if not device.has_float64 or samples.dtype != np.float32 or kernel.overlap in ("given", "called"):
        return np.empty(0, dtype=np.intp)
    own, limits = samples.self_overlap.astype(np.float64), np.finfo(np.float32)
    coarse = ~(own < float(limits.max) * _ROOM)  # also what is not a number
    if isinstance(kernel, Cosine):
        coarse |= own < _NORM
    if isinstance(kernel, DistanceKernel) or kernel.shift_invariant:
        tile = np.zeros((len(own), 1))
        kernel.transform(tile, _ROUNDING * float(limits.eps) * own, np.zeros(1))
        lost = ~(kernel.diagonal(np.ones(len(own))) - tile[:, 0] < 4 * LARGEST_ERROR)
        if lost.any() and not (is_whole(X) and own.max() < _ROOM / limits.eps and is_whole(centre)):
            coarse |= lost
    return np.flatnonzero(coarse)


def is_whole(X: Any) -> bool:
    """Whether all values are whole numbers."""
    if X is None:
        return True
    values = X.data if sp.issparse(X) else X
    return all(bool(np.all(values[a:b] == np.rint(values[a:b]))) for a, b in stretches(values))


def _chosen(own: np.ndarray, n_features: int) -> np.ndarray:
    """Numbers of rows: those of the largest overlaps with themselves, and some from everywhere."""
    count = min(len(own), max(2, _ROWS * _FEATURES // max(n_features, _FEATURES)))
    largest = np.argpartition(own, len(own) - count)[-count:]
    return np.union1d(largest, np.linspace(0, len(own) - 1, count).astype(np.intp))


def _beside(rows: Any, step: float) -> Any:
    """A row beside each one: by such a share of every number to the side, or of whole numbers to the next one."""
    whole = is_whole(rows)
    if sp.issparse(rows):
        moved = [_moved(line, whole, step) for line in _lines(rows)]
        return sp.csr_matrix((np.concatenate(moved), rows.indices, rows.indptr), shape=rows.shape)
    return np.stack([_moved(row, whole, step) for row in rows])


def _lines(rows: Any) -> Any:
    """The values of every row, of a CSR matrix those that are there."""
    return np.split(rows.data, rows.indptr[1:-1]) if sp.issparse(rows) else rows


def _moved(values: np.ndarray, whole: bool, step: float) -> np.ndarray:
    if not whole:
        shares = np.random.default_rng(len(values)).choice([-1.0, -0.5, 0.5, 1.0], len(values))
        return (values * (1.0 + step * shares)).astype(values.dtype)
    moved = values.copy()
    if len(values):
        place = np.abs(values).argmax()
        moved[place] = max(values[place] + 1, np.nextafter(values[place], np.inf, dtype=values.dtype))
    return moved


def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of every row with itself, with the one beside it, and with two others."""
    rows = np.arange(count)
    return np.tile(rows, 4), np.concatenate((rows, count + rows, (rows + 1) % count, (rows + count // 2) % count))


def _exact(
    kernel: Kernel, rows: Any, first: np.ndarray, second: np.ndarray, offsets: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values of pairs of rows, in float64, and what bounds each; with `offsets` less what they have in common.
    Distances are computed of differences, which lose nothing."""
    if isinstance(kernel, DistanceKernel) or kernel.shift_invariant:
        distances = _distances(kernel.overlap, rows, first, second)
        tile = np.zeros((len(first), 1))
        kernel.transform(tile, distances, np.zeros(1))  # as if of rows that have no overlap, one of them with itself
        return tile[:, 0], kernel.diagonal(np.ones(len(first)))
    samples = make_samples(rows, kernel)
    values = np.empty((len(samples), len(samples)))
    for start, stop, left, right, tile in tiles(kernel, samples, samples):
        values[start:stop, left:right] = tile
    if isinstance(kernel, Sigmoid):  # is not positive semi-definite: its diagonal bounds nothing
        return values[first, second], np.full(len(first), np.abs(values).max())
    own = samples.self_overlap
    root = np.sqrt(np.abs(kernel.diagonal(own)))
    if isinstance(kernel, (Linear, Cosine)):
        lost = (own < _LEAST_SQUARE) & np.array([row.any() for row in _lines(rows)])
        root[lost] = np.nan
    # What is far below the values of other rows need not be exact.
    largest = np.maximum(root[first] * root[second], _NEGLIGIBLE * root.max() ** 2)
    if offsets and isinstance(kernel, (Linear, Polynomial)):
        largest *= _share_that_differs(values[: len(values) // 2, : len(values) // 2])
    return values[first, second], largest


def _share_that_differs(values: np.ndarray) -> float:
    """How much of a kernel matrix is left when the rows are centred in the kernel's own space: what tells them apart,
    where a model has an intercept. One where nothing is left."""
    centred = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    share = float(np.trace(centred) / np.trace(values)) if np.trace(values) > 0 else 1.0
    return min(share, 1.0) if share > _ALIKE else 1.0


def _distances(overlap: str, rows: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of pairs of rows, by differences of features."""
    total = np.zeros(len(first))
    if sp.issparse(rows):
        rows = without_unused(rows)[0].tocsc()
    for start in range(0, rows.shape[1], _AT_ONCE):
        part = rows[:, start : start + _AT_ONCE]
        part = part.toarray() if sp.issparse(part) else part
        difference = part[first] - part[second]
        if overlap == "product":
            total += np.square(difference).sum(axis=1)
        elif overlap == "minimum":
            total += np.abs(difference).sum(axis=1)
        else:
            both = part[first] + part[second]
            total += (difference * np.divide(difference, both, out=np.zeros_like(both), where=both > 0)).sum(axis=1)
    return total
