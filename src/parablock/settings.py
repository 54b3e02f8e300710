"""How to train: parameters of the estimators, and what follows from them for a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parablock.devices import DEVICES, Device
from parablock.devices.memory import memory_bytes
from parablock.engines import Engine, LocalEngine, make_engine
from parablock.losses import Loss, SquaredError
from parablock.mapped import is_mapped
from parablock.problem import Problem
from parablock.solver import BlockSolver, Options, evenly
from parablock.tensors import TensorRows

# Larger blocks need fewer iterations, but more time for each coordinate update. Very many blocks get into each other's
# way, so they grow with the rows, as far as their matrices can be computed at once.
_BLOCK_SIZE, _MANY_BLOCKS, _LARGEST_BLOCK = 2048, 100, 4096
# Squared error of so many rows is solved by Cholesky factorisation of their kernel matrix, which then takes 512 MB.
_DIRECT_ROWS = 8192
# Problems this small are solved far beyond the tolerance.
_TINY, _TINY_FLOOR = 512, 1e-7


@dataclass(frozen=True)
class Settings:
    """How to train; the estimators' parameters of the same names."""

    tol: float = 1e-3
    max_iter: int = 1000
    partition: Any = "tree"
    n_blocks: int | None = None
    block_solver: str | BlockSolver = "greedy"
    line_search: str = "auto"
    regroup: bool = True
    device: str = "cpu"
    engine: str | Engine = "local"
    n_jobs: int | None = None
    memory_limit: Any = None
    checkpoint: Any = None
    resume: bool | str = False
    verbose: int = 0

    def make_device(self) -> Device:
        engine = make_engine(self.engine)
        return DEVICES[self.device](engine.threads(self.n_jobs), self.memory_limit, engine.neighbours(), engine.place())

    def solves_directly(self, X: Any, problem: Problem) -> bool:
        """Whether the problem is solved at once, by Cholesky factorisation: squared error of not too many rows in
        memory, on one machine's CPU, where nothing is said of blocks."""
        if type(problem.loss) is not SquaredError or not np.all(problem.weight > 0):
            return False
        if not isinstance(make_engine(self.engine), LocalEngine) or self.make_device().name != "cpu":
            return False
        chosen = self.partition, self.n_blocks, self.block_solver, self.line_search, self.regroup
        if not isinstance(self.partition, str) or chosen != ("tree", None, "greedy", "auto", True):
            return False
        if is_mapped(X) or isinstance(X, TensorRows):
            return False
        return fits_directly(X.shape[0], self.memory_limit)

    def options(self, loss: Loss, X: Any) -> Options:
        if self.line_search == "exact" and not loss.piecewise_quadratic:
            raise ValueError(
                f"line_search='exact' needs a piecewise quadratic loss; {type(loss).__name__} is not one. Use "
                "'auto' or 'armijo'."
            )
        exact = loss.piecewise_quadratic if self.line_search == "auto" else self.line_search == "exact"
        if isinstance(self.block_solver, BlockSolver):
            solver = self.block_solver
        elif X.shape[0] <= _TINY and X.dtype == np.float64:
            # It costs nothing, and the result no longer depends on the order or repetition of rows.
            solver = BlockSolver(self.block_solver, floor=_TINY_FLOOR)
        else:
            solver = BlockSolver(self.block_solver)
        return Options(
            self.tol,
            self.max_iter,
            solver,
            "exact" if exact else "armijo",
            remember=self.regroup,
            rest=self.regroup,
        )

    def block_count(self, X: Any, machines: int) -> int:
        if self.n_blocks is not None:
            return min(self.n_blocks, X.shape[0])
        size = max(_BLOCK_SIZE, min(X.shape[0] // _MANY_BLOCKS, _LARGEST_BLOCK))
        return evenly(-(-X.shape[0] // size), machines)


def fits_directly(rows: int, memory_limit: Any) -> bool:
    """Whether a kernel matrix of so many rows is one to factorise. Without a limit that the user gave, their number
    decides, never the memory that happens to be free: the same program takes the same way tomorrow."""
    if memory_limit is None:
        return rows <= _DIRECT_ROWS
    return rows * rows * np.dtype(np.float64).itemsize <= memory_bytes(memory_limit) // 2
