"""One outer iteration of Algorithm 1: every block on its own (line 4), then a common step (lines 5 to 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from parablock import vectors
from parablock.devices.base import BlockRule, BlockStep
from parablock.engines.base import Ahead
from parablock.problem import Measure, Problem, not_numbers
from parablock.solver.block_solvers import BlockSolver
from parablock.solver.line_search import Line, Vectors, armijo_step, combined, exact_step, plane_step
from parablock.solver.schedule import Plan
from parablock.solver.state import State
from parablock.solver.watching import Part

_UNBOUNDED = 1e100  # no coefficient of a problem with a minimum gets there


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes
    ----------
    tol : float
        Largest violation of the optimality conditions to stop at.
    max_iter : int
        Most outer iterations.
    block_solver : BlockSolver
    line_search : {"exact", "armijo"}
    remember : bool
        Whether the last step serves as a second search direction. The paper's algorithm has none.
    rest : bool
        Whether rows that are far from moving may rest (`solver.watching`). In the paper's algorithm all are watched.
    """

    tol: float
    max_iter: int
    block_solver: BlockSolver
    line_search: str
    remember: bool
    rest: bool


def solve(
    part: Part, plan: Plan, options: Options, state: State, seed: int, ahead: Ahead | None = None
) -> list[BlockStep]:
    """Line 4: every block on its own; who has none may look ahead to the next ones."""
    solver = options.block_solver
    rule = BlockRule(
        outputs=plan.outputs,
        of_block=plan.of_block,
        choice=solver.choice,
        pairs=plan.pairs,
        # One block of everything is no model but the problem itself: solve it at once.
        fraction=0.0 if plan.active == part.problem.n and len(plan.blocks) == 1 else solver.fraction,
        floor=solver.floor * options.tol,
        max_updates=solver.max_updates,
        seed=seed,
        wishes=options.rest and state.iteration == 0,
        order=plan.order,
    )
    point = state.coef, state.decision
    return part.crew.solve(part.problem, point, plan.blocks, rule, plan.kind == "partition", ahead)


@dataclass(frozen=True)
class Advance:
    """The state after an iteration, its step size (the smallest of all outputs) and how many variables moved."""

    state: State
    beta: float
    changed: int


def advance(part: Part, options: Options, state: State, steps: Sequence[BlockStep]) -> Advance:
    """Lines 5 to 8: as far along the blocks' common direction as is best."""
    problem = part.problem
    direction = vectors.zeros_like(state.coef)
    # Blocks of different outputs may share rows.
    vectors.add_columns(direction, [step.rows for step in steps], [step.step for step in steps])
    rows = vectors.flatnonzero(direction.any(axis=0))
    moves = vectors.columns(direction, rows)
    if (moves != moves).any():
        raise not_numbers()
    if not (abs(moves) < _UNBOUNDED).all() and not (abs(moves) < _UNBOUNDED * abs(problem.target).max()).all():
        raise ValueError(
            "The objective has no minimum: the kernel is not positive semi-definite on this data, and the loss sets "
            "the coefficients no bounds. Use a positive semi-definite kernel, or a loss with bounds such as the hinge."
        )
    if len(rows) == 0:
        return Advance(replace(state, iteration=state.iteration + 1), 0.0, 0)
    product = part.crew.product(rows, moves)

    moved = vectors.flatnonzero(moves.any(axis=1)).tolist()

    def choose(output: int) -> Choice:
        return _choose(problem, output, state, (direction[output], product[output]), options, len(steps))

    choices = part.crew.agree(part.crew.map(choose, moved))

    def go(item: tuple[int, Choice]) -> tuple[np.ndarray, np.ndarray, Measure]:
        output, choice = item
        along = direction[output], product[output]
        if choice.second != 0.0:
            assert state.last_step is not None
            along = combined(along, _of(output, state.last_step), choice.first, choice.second)
        coef = problem.moved(output, state.coef[output], along[0], choice.beta)
        decision = choice.beta * along[1]
        decision += state.decision[output]
        return coef, decision, problem.measure(output, coef, decision)

    points = list(zip(state.coef, state.decision, state.measures, strict=True))
    for output, point in zip(moved, part.crew.map(go, list(zip(moved, choices, strict=True))), strict=True):
        points[output] = point
    coef, decision, measures = zip(*points, strict=True)
    before = state.coef, state.decision
    after = State(vectors.stack(coef), vectors.stack(decision), state.iteration + 1, measures, before)
    betas = [choice.step for choice in choices]
    return Advance(after, min(betas), len(rows) if any(betas) else 0)


class Choice(NamedTuple):
    """How far to go: `beta` times (`first` times the blocks' direction plus `second` times the last step), where `step`
    was the best along the blocks' direction alone."""

    first: float
    second: float
    beta: float
    step: float


def _of(output: int, everyones: Vectors) -> Vectors:
    coef, decision = everyones
    return coef[output], decision[output]


def _choose(problem: Problem, output: int, state: State, along: Vectors, options: Options, n_blocks: int) -> Choice:
    point = _of(output, (state.coef, state.decision))
    line = Line.along(problem, output, point, along)
    beta = _step_size(line, options, n_blocks)
    if options.remember and state.before is not None and line.starts_free():
        assert state.last_step is not None
        last = _of(output, state.last_step)
        mixture = plane_step(problem, output, point, along, last)
        if mixture is not None:
            mixed = Line.along(problem, output, point, combined(along, last, *mixture))
            mixed_beta = _step_size(mixed, options, 1)
            if mixed.change(mixed_beta) < line.change(beta):
                return Choice(*mixture, mixed_beta, beta)
    return Choice(1.0, 0.0, beta, beta)


def _step_size(line: Line, options: Options, n_blocks: int) -> float:
    return exact_step(line) if options.line_search == "exact" else armijo_step(line, n_blocks)
