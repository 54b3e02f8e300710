"""Kernels with parameters that are learned: their values for all pairs of rows, and gradients.

Parameters are one vector z. All but E are logarithms, so that a penalty on the way from the start means the same for
all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from parablock.tables import pairs
from parablock.tables.columns import View
from parablock.tables.lapack import product_with_own_transpose, symmetric_times

_DOWN, _UP = 8.0, 5.0  # how far logarithms may move from the start
_POWERS = (0.2, 1.0)
_LARGEST_EXPONENT = 80.0
STIFF, STIFF_E = 0.3, 80.0
_ROUGH_RIDGE, _SMOOTH_RIDGE, _SMOOTH = 1e-3, 1e-2, 0.8


class MetricKernel(ABC):
    """A kernel of rows of d columns, of which the first k are numeric."""

    power = 1.0  # of the differences, in the distance

    def __init__(self, d: int, k: int) -> None:
        self.d, self.k = d, k
        self.at: dict[str, slice] = {}
        self.size = 0

    def _parameters(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self.at[name] = slice(self.size, self.size + size)
            self.size += size

    def bounds(self, z: np.ndarray, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest parameters of a way that begins at z."""
        low, high = z - _DOWN, z + _UP
        if "p" in self.at:
            low[self.at["p"]], high[self.at["p"]] = np.log(_POWERS)
        return low, high

    def stiffness(self) -> np.ndarray:
        """How much a step away from the start costs, by parameter."""
        return np.full(self.size, STIFF)

    @abstractmethod
    def rescaled(self, z: np.ndarray, move: float) -> np.ndarray:
        """Parameters whose distances are exp(move) times as long."""

    @abstractmethod
    def distances(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray) -> None:
        """Of rows to the rows `columns`; without these among themselves, below the diagonal."""

    def exponent(self, z: np.ndarray) -> float:
        """p of K = exp(-D^p)."""
        return 1.0

    def least_single_ridge(self, z: np.ndarray) -> float:
        """From this ridge on a factor in float32 is exact enough to learn with: the smoother a kernel, the smaller its
        eigenvalues."""
        return _SMOOTH_RIDGE if self.power == 2 and self.exponent(z) > _SMOOTH else _ROUGH_RIDGE

    def value(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray, D: np.ndarray) -> None:
        """Kernel values, and distances in D, which may be the same array where distances are not needed."""
        self.distances(z, rows, columns, D)
        pairs.exponential(D, 1.0, self.exponent(z), columns is None, out)

    def diagonal(self, z: np.ndarray, rows: View) -> np.ndarray:
        """K(x, x) of every row."""
        return np.ones(len(rows))

    @abstractmethod
    def gradient(self, z: np.ndarray, rows: View, G: np.ndarray, D: np.ndarray) -> np.ndarray:
        """<G, dK/dz> for a symmetric G, given below the diagonal; D holds the distances and is overwritten."""


class LaplaceKernel(MetricKernel):
    """K = exp(-sum_j w_j |x_j - z_j|)."""

    def __init__(self, d: int, k: int) -> None:
        super().__init__(d, k)
        self._parameters(w=d)

    def start(self, log_scale: float) -> np.ndarray:
        return np.full(self.d, log_scale)

    def rescaled(self, z: np.ndarray, move: float) -> np.ndarray:
        return z + move

    def distances(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray) -> None:
        pairs.absolute_distances(rows.X, _by_column(rows, columns), np.exp(z), columns is None, out)

    def gradient(self, z: np.ndarray, rows: View, G: np.ndarray, D: np.ndarray) -> np.ndarray:
        pairs.through_exponential(G, 1.0, D)
        sums = np.empty(self.d)
        pairs.absolute_sums(rows.X, _by_column(rows, None), D, sums)
        return np.exp(z) * sums


class PowerKernel(MetricKernel):
    """K = exp(-D^p), D = sum_j w_j (x_j - z_j)^2."""

    power = 2.0

    def __init__(self, d: int, k: int) -> None:
        super().__init__(d, k)
        self._parameters(w=d, p=1)

    def start(self, log_scale: float) -> np.ndarray:
        return np.append(np.full(self.d, log_scale), np.log(0.5))

    def rescaled(self, z: np.ndarray, move: float) -> np.ndarray:
        z = z.copy()
        z[self.at["w"]] += move
        return z

    def exponent(self, z: np.ndarray) -> float:
        return float(np.exp(z[-1]))

    def distances(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray) -> None:
        pairs.squared_distances(rows.X, _by_column(rows, columns), np.exp(z[self.at["w"]]), columns is None, out)

    def gradient(self, z: np.ndarray, rows: View, G: np.ndarray, D: np.ndarray) -> np.ndarray:
        p = self.exponent(z)
        slope = pairs.through_exponential(G, p, D)
        sums = np.empty(self.d)
        pairs.squared_sums(rows.X, _by_column(rows, None), D, sums)
        return np.append(np.exp(z[self.at["w"]]) * sums, p * slope)


class FullKernel(MetricKernel):
    """K = exp(-D^p) + b + sum_j l_j x_j z_j + sum_j v_j exp(-t_j |x_j - z_j|), D = |E' diag(w)^(1/2) (x - z)|^2.

    The last sum is over numeric columns, and the linear kernel sees -1/2 and 1/2 in columns of two values. E is whole;
    w stays as it is.
    """

    power = 2.0

    def __init__(self, d: int, k: int, log_w: np.ndarray) -> None:
        super().__init__(d, k)
        self.log_w = log_w
        self._root = np.exp(log_w / 2)
        self._parameters(E=d * d, p=1, b=1, l=d, v=k, t=k)

    def start(self, log_p: float) -> np.ndarray:
        z = np.zeros(self.size)
        z[self.at["E"]] = np.eye(self.d).ravel()
        z[self.at["p"]], z[self.at["b"]] = log_p, np.log(0.1)
        z[self.at["l"]], z[self.at["v"]] = np.log(0.1 / self.d), np.log(0.3 / max(self.k, 1))
        return z

    def bounds(self, z: np.ndarray, view: View) -> tuple[np.ndarray, np.ndarray]:
        low, high = super().bounds(z, view)
        low[self.at["E"]], high[self.at["E"]] = -np.inf, np.inf
        largest = np.abs(view.X[:, : self.k]).max(axis=0)
        # exp(t x) stays finite
        t = np.log(_LARGEST_EXPONENT / np.maximum(largest, 1e-300))
        high[self.at["t"]] = np.maximum(np.minimum(high[self.at["t"]], t), low[self.at["t"]])
        return low, high

    def stiffness(self) -> np.ndarray:
        stiff = super().stiffness()
        stiff[self.at["E"]] = STIFF_E
        return stiff

    def rescaled(self, z: np.ndarray, move: float) -> np.ndarray:
        z = z.copy()
        z[self.at["E"]] *= np.exp(move / 2)
        return z

    def exponent(self, z: np.ndarray) -> float:
        return float(np.exp(z[self.at["p"]][0]))

    def factor(self, z: np.ndarray) -> np.ndarray:
        """M of D = |M' (x - z)|^2."""
        return self._root[:, None] * z[self.at["E"]].reshape(self.d, self.d)

    def distances(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray) -> None:
        M = self.factor(z)
        A = np.ascontiguousarray(rows.X @ M)
        B = A if columns is None else columns.X @ M
        pairs.squared_distances(A, np.ascontiguousarray(B.T), np.ones(self.d), columns is None, out)

    def value(self, z: np.ndarray, rows: View, columns: View | None, out: np.ndarray, D: np.ndarray) -> None:
        super().value(z, rows, columns, out, D)
        b, linear, v = (np.exp(z[self.at[name]]) for name in "blv")
        scaled = np.column_stack([rows.line * np.sqrt(linear), np.full(len(rows), np.sqrt(b))])
        if columns is None:
            product_with_own_transpose(scaled, out, add=True)
        else:
            out += scaled @ np.column_stack([columns.line * np.sqrt(linear), np.full(len(columns), np.sqrt(b))]).T
        if self.k:
            up, down = self._ends(z, rows)
            Up, Down = (up, down) if columns is None else self._ends(z, columns)
            pairs.add_column_kernels(up, down, _turned(Up), _turned(Down), v, columns is None, out)

    def diagonal(self, z: np.ndarray, rows: View) -> np.ndarray:
        b, linear, v = (np.exp(z[self.at[name]]) for name in "blv")
        return 1 + b + (rows.line**2) @ linear + v.sum()

    def gradient(self, z: np.ndarray, rows: View, G: np.ndarray, D: np.ndarray) -> np.ndarray:
        out, n = np.zeros(self.size), len(rows)
        p = self.exponent(z)
        out[self.at["p"]] = p * pairs.through_exponential(G, p, D)
        X = rows.X * self._root
        # The sum over k < i of S_ik (x_i - x_k)(x_i - x_k)' by one product.
        SX = symmetric_times(D, np.column_stack([X, np.ones(n)]))
        H = X.T @ (SX[:, -1:] * X - SX[:, :-1])
        out[self.at["E"]] = ((H + H.T) @ z[self.at["E"]].reshape(self.d, self.d)).ravel()
        b, linear, v, t = (np.exp(z[self.at[name]]) for name in "blvt")
        GL = symmetric_times(G, np.column_stack([rows.line, np.ones(n)]))
        out[self.at["b"]] = b * GL[:, -1].sum()
        out[self.at["l"]] = linear * (GL[:, :-1] * rows.line).sum(axis=0)
        if self.k:
            up, down = self._ends(z, rows)
            X = np.ascontiguousarray(rows.X[:, : self.k])
            value, slope = np.empty((2, self.k))
            pairs.column_kernel_sums(X, up, down, _turned(X), _turned(up), _turned(down), G, value, slope)
            out[self.at["v"]] = v * (2 * value + np.trace(G, dtype=np.float64))
            out[self.at["t"]] = -2 * v * t * slope
        return out

    def _ends(self, z: np.ndarray, rows: View) -> tuple[np.ndarray, np.ndarray]:
        tx = np.exp(z[self.at["t"]]) * rows.X[:, : self.k]
        tx = np.clip(tx, -_LARGEST_EXPONENT - 5, _LARGEST_EXPONENT + 5)
        return np.exp(tx), np.exp(-tx)


def _by_column(rows: View, columns: View | None) -> np.ndarray:
    return _turned((rows if columns is None else columns).X)


def _turned(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X.T)
