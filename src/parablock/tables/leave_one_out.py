"""The exact leave-one-out error of kernel least squares, and its gradient.

With C = (K + ridge / weight)^-1 and alpha = C Y, the residual of row i, where row i is left out of the fit, is
alpha_i / C_ii; where a group of rows is left out, it is C_GG^-1 alpha_G. The loss is their mean square, weighted.

The gradient is <G, dK + d(ridge / weight)>. For single rows, with u = 2 r / C_ii and v_i the sum over outputs of
2 r alpha / C_ii^2, which is never negative, G = C diag(v) C - (C u alpha' + alpha u' C) / 2: one symmetric product of
C diag(v)^(1/2) with itself. For groups v becomes a block of the matrix, and the product is a general one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from parablock.tables import lapack, pairs
from parablock.tables.columns import View
from parablock.tables.kernels import MetricKernel

RIDGES = (1e-6, 30.0)


@dataclass(frozen=True)
class Problem:
    """What is learned: a view of rows, their targets, weights of mean one, and groups (neighbouring rows), if any.

    `counted` are the weights of the rows' residuals in the loss; those of the rows by default.
    """

    view: View
    target: np.ndarray
    weight: np.ndarray
    group: np.ndarray | None = None
    counted: np.ndarray | None = None

    @property
    def shares(self) -> np.ndarray:
        """Of the squared residuals in the loss; they sum to one over rows and outputs."""
        counted = self.weight if self.counted is None else self.counted
        return counted / (counted.sum() * self.target.shape[1])

    def groups(self) -> list[slice]:
        """Rows that are left out together."""
        assert self.group is not None
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(self.group)], strict=True)]


@dataclass(frozen=True)
class LeftOut:
    """Decisions of every row by the machine that was fitted without it, and coefficients with all rows."""

    loss: float
    decision: np.ndarray
    alpha: np.ndarray


class Workspace:
    """The matrices of all pairs, as many as are asked for; `single` are the same in float32, in the same memory."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self._memory: dict[str, np.ndarray] = {}

    @property
    def single(self) -> Workspace:
        other = Workspace(self.n)
        other.dtype, other._memory = np.dtype(np.float32), self._memory
        return other

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._memory:
            self._memory[name] = np.empty(self.n * self.n)
        return self._memory[name].view(self.dtype)[: self.n * self.n].reshape(self.n, self.n)

    @staticmethod
    def bytes(n: int, learning: bool, grouped: bool) -> int:
        """What is asked for at most."""
        return 8 * n * n * ((4 if grouped else 3) if learning else 2 if grouped else 1)


def left_out(kernel: MetricKernel, problem: Problem, z: np.ndarray, space: Workspace) -> LeftOut | None:
    """The loss alone, at z = (parameters of the kernel, log ridge); None where the matrix is not positive definite."""
    kernel.value(z[:-1], problem.view, None, space["K"], space["K"])
    return left_out_of_matrix(problem, float(np.exp(z[-1])), space)


def left_out_of_matrix(problem: Problem, ridge: float, space: Workspace) -> LeftOut | None:
    """The same, where space["K"] holds the kernel matrix, which is overwritten."""
    K, Y, n = space["K"], problem.target, len(problem.target)
    K.flat[:: n + 1] += ridge / problem.weight
    if not lapack.cholesky(K):
        return None
    alpha = lapack.solve_factored(K, Y)
    if problem.group is None:
        lapack.invert_factor(K)
        diagonal = np.empty(n)
        pairs.row_squares(K, diagonal)
        residual = alpha / diagonal[:, None]
    else:
        lapack.inverse_of_factor(K)
        residual = np.empty_like(alpha)
        for rows in problem.groups():
            residual[rows] = solve_block(K[rows, rows], alpha[rows])
    return LeftOut(_loss(problem, residual), Y - residual, alpha)


def loss_and_gradient(
    kernel: MetricKernel, problem: Problem, z: np.ndarray, space: Workspace
) -> tuple[float, np.ndarray] | None:
    """At z = (parameters of the kernel, log ridge); None where the matrix is not positive definite."""
    K, ridge, n = space["K"], float(np.exp(z[-1])), len(problem.target)
    kernel.value(z[:-1], problem.view, None, K, space["D"])
    K.flat[:: n + 1] += ridge / problem.weight
    if not lapack.cholesky(K):
        return None
    lapack.inverse_of_factor(K)
    alpha = lapack.symmetric_times(K, problem.target)
    residual, u = (_single if problem.group is None else _grouped)(problem, alpha, space)
    G = space["K"]
    lapack.add_symmetric_pair(-0.5, u, alpha, G)
    slope = ridge * float(np.sum(G.diagonal() / problem.weight))
    return _loss(problem, residual), np.append(kernel.gradient(z[:-1], problem.view, G, space["D"]), slope)


def _single(problem: Problem, alpha: np.ndarray, space: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and C u; C, in space["K"], becomes C diag(v) C."""
    C, share = space["K"], problem.shares
    diagonal = C.diagonal().astype(np.float64)
    residual = alpha / diagonal[:, None]
    u = lapack.symmetric_times(C, (2 * share / diagonal)[:, None] * residual)
    v = 2 * share * (alpha * alpha).sum(axis=1) / diagonal**3
    pairs.mirrored(C, np.sqrt(v), space["W"])
    lapack.product_with_own_transpose(space["W"], C)
    return residual, u


def _grouped(problem: Problem, alpha: np.ndarray, space: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """The same for groups."""
    C, share = space["K"], problem.shares
    pairs.mirrored(C, np.ones(len(C)), space["W"])
    whole, CV = space["W"], space["V"]
    residual, u = np.empty_like(alpha), np.empty_like(alpha)
    for rows in problem.groups():
        residual[rows] = solve_block(C[rows, rows], alpha[rows])
        u[rows] = solve_block(C[rows, rows], 2 * share[rows, None] * residual[rows])
        block = u[rows] @ residual[rows].T
        CV[:, rows] = whole[:, rows] @ ((block + block.T) / 2)
    u = whole @ u
    np.matmul(CV, whole, out=C)
    return residual, u


def solve_block(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A^-1 b for a small symmetric A, of which the lower triangle is known."""
    return cho_solve(cho_factor(np.tril(A).astype(np.float64), lower=True), b)


def _loss(problem: Problem, residual: np.ndarray) -> float:
    return float(problem.shares @ (residual * residual).sum(axis=1))
