"""Least squares at once: the optimum of squared error solves a linear system.

    K coef + coef / (2 C) + bias = target      for every row
    sum of coef = 0                            with an intercept

One Cholesky factorisation of K + diag(1 / (2 C)) serves all outputs of equal weights; with an intercept the vector of
ones is one more right-hand side, whose solution eliminates the last equation (its Schur complement). A step of
iterative refinement takes back what rounding has cost.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from parablock.problem import Problem
from parablock.solver.state import State


class System(Protocol):
    """What `parablock.devices.cpu.kernel_system.KernelSystem` does."""

    def factorise(self, added: np.ndarray, /) -> bool: ...

    def solve(self, right: np.ndarray, /) -> np.ndarray: ...

    def product(self, x: np.ndarray, /) -> np.ndarray: ...


def solved_directly(system: System, problem: Problem) -> State | None:
    """The optimum of squared error with positive weights; None where the matrix is not positive definite."""
    coef = np.empty_like(problem.target)
    weights, group = np.unique(problem.weight, axis=0, return_inverse=True)
    for number, weight in enumerate(weights):
        outputs = np.flatnonzero(group.ravel() == number)
        with np.errstate(over="ignore", divide="ignore"):
            added = 1.0 / (2.0 * weight)
        if not (np.isfinite(added).all() and system.factorise(added)):
            return None
        coef[outputs] = _coefficients(system, added, problem.target[outputs].T, problem.intercept).T
    if not np.isfinite(coef).all():
        return None
    state = State.at(problem, coef, np.ascontiguousarray(system.product(coef.T).T))
    return State(state.coef, state.decision, 1, state.measures)


def _coefficients(system: System, added: np.ndarray, target: np.ndarray, intercept: bool) -> np.ndarray:
    """Of every column of the target, after the matrix has been factorised."""
    ones = system.solve(np.ones((len(target), 1))) if intercept else None

    def solution(right: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coef = system.solve(right)
        if ones is None:
            return coef, np.zeros_like(sums)
        bias = (coef.sum(axis=0) - sums) / ones.sum()
        return coef - ones * bias, bias

    coef, bias = solution(target, np.zeros(target.shape[1]))
    residual = target - system.product(coef) - added[:, None] * coef - bias
    return coef + solution(residual, -coef.sum(axis=0))[0]
