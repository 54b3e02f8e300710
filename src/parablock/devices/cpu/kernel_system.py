"""Linear systems with the kernel matrix of all rows, by Cholesky factorisation in float64.

The matrix and its factor share one array: the factor L lies in the lower triangle with the diagonal, and the kernel
matrix K stays above it, so that residuals need neither a second matrix nor its values again. The array is cut into
tiles of a fixed size, each the work of one thread with BLAS held to one thread, so the result has the same bits on any
number of threads, and Ctrl-C is heard between two tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from parablock.devices.cpu.samples import CpuSamples
from parablock.devices.cpu.tiles import tiles
from parablock.kernels import Kernel

_TILE = 256
Map = Callable[[Callable[[int], Any], Iterable[int]], Any]  # calls a function with every item, on some threads


class KernelSystem:
    """K + diag(d) of all rows, for several d one after the other.

    Parameters
    ----------
    kernel : Kernel
    samples : CpuSamples
        In float64.
    map_ : callable

    Attributes
    ----------
    kernel_evaluations : int
        Kernel values computed: of the tiles on and above the diagonal.
    """

    def __init__(self, kernel: Kernel, samples: CpuSamples, map_: Map) -> None:
        n = len(samples)
        self._matrix, self._map = np.empty((n, n)), map_

        def fill(first: int) -> int:
            last = min(first + _TILE, n)
            rows, columns = samples.take(slice(first, last)), samples.take(slice(first, n))
            for start, stop, left, right, tile in tiles(kernel, rows, columns):
                self._matrix[first + start : first + stop, first + left : first + right] = tile
            return (last - first) * (n - first)

        self.kernel_evaluations = sum(map_(fill, range(0, n, _TILE)))
        self.diagonal = np.diagonal(self._matrix).copy()

    def factorise(self, added: np.ndarray) -> bool:
        """Make the factor of K + diag(added); False where that matrix is not positive definite."""
        A, n = self._matrix, len(self._matrix)
        shifted = self.diagonal + added
        for first, last in self._stretches():
            A[last:, first:last] = A[first:last, last:].T

        for first, last in self._stretches():
            known = A[first:last, :first]
            own = np.triu(A[first:last, first:last], 1).T
            own[np.diag_indices(last - first)] = shifted[first:last]
            own -= known @ known.T
            factor, failed = lapack.dpotrf(own, lower=1, clean=1)
            if failed:
                return False
            np.copyto(A[first:last, first:last], factor, where=np.tri(last - first, dtype=bool))

            def below(start: int, first: int = first, last: int = last, factor: np.ndarray = factor) -> None:
                rows = slice(start, min(start + _TILE, n))
                tile = A[rows, first:last] - A[rows, :first] @ A[first:last, :first].T
                A[rows, first:last] = solve_triangular(factor, tile.T, lower=True, check_finite=False).T

            self._map(below, range(last, n, _TILE))
        return True

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + diag(d))^-1 times each column, after `factorise`."""
        A, x = self._matrix, right.copy()
        for first, last in self._stretches():
            x[first:last] -= A[first:last, :first] @ x[:first]
            x[first:last] = solve_triangular(A[first:last, first:last], x[first:last], lower=True, check_finite=False)
        for first, last in reversed(list(self._stretches())):
            x[first:last] -= A[last:, first:last].T @ x[last:]
            x[first:last] = solve_triangular(
                A[first:last, first:last], x[first:last], trans=1, lower=True, check_finite=False
            )
        return x

    def product(self, x: np.ndarray) -> np.ndarray:
        """K times each column, whatever has been factorised."""
        A, out = self._matrix, self.diagonal[:, None] * x
        for first, last in self._stretches():
            own, right = np.triu(A[first:last, first:last], 1), A[first:last, last:]
            out[first:last] += own @ x[first:last] + own.T @ x[first:last] + right @ x[last:]
            out[last:] += right.T @ x[first:last]
        return out

    def _stretches(self) -> Iterator[tuple[int, int]]:
        n = len(self._matrix)
        for first in range(0, n, _TILE):
            yield first, min(first + _TILE, n)
