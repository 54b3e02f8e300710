"""PBM: parallel block minimisation (paper, Algorithm 1).

    minimise over coef   f(coef) = 1/2 coef' K coef + sum_i g_i(coef_i),   lower <= coef <= upper

    1  choose blocks S_1 .. S_k                                      the schedule
    4  in every block find a direction d on the block-diagonal
       model of K, in parallel                                       the engine, its devices' block solvers
    5  compute K d, in parallel                                      the engine, its devices' kernel products
    7  find the step size beta                                       the line search
    8  coef += beta d,  decision += beta K d

Several outputs share blocks and kernel values; each has its own direction and step size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parablock.devices.base import BlockRule, BlockStep
from parablock.engines.base import Engine
from parablock.monitor import Record
from parablock.problem import Problem
from parablock.solver.block_solvers import BlockSolver
from parablock.solver.line_search import Line, armijo_step, exact_step, plane_step
from parablock.solver.schedule import Plan, Schedule
from parablock.solver.state import State

CONVERGED, OUT_OF_ITERATIONS, STALLED, INTERRUPTED = (
    "converged",
    "out of iterations",
    "stalled",
    "interrupted",
)
_UNBOUNDED = 1e100  # no coefficient of a problem with a minimum gets there
_IDLE_ITERATIONS = 4  # without any change of any output: two rounds of blocks and bridge


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
    """

    tol: float
    max_iter: int
    block_solver: BlockSolver
    line_search: str
    remember: bool


@dataclass(frozen=True)
class LocalStep:
    """What local prediction needs of an iteration: the point before it and each block's own step."""

    coef: np.ndarray
    steps: Sequence[BlockStep]


@dataclass(frozen=True)
class Solution:
    """Where a run ended.

    Attributes
    ----------
    state : State
    history : list of Record
    reason : {"converged", "out of iterations", "stalled", "interrupted"}
    local : LocalStep or None
        Of the last iteration over the fixed partition.
    """

    state: State
    history: list[Record]
    reason: str
    local: LocalStep | None


@dataclass(frozen=True)
class Iteration:
    """What one iteration did: the state after it, the blocks' steps, the step size and how many variables moved."""

    state: State
    steps: list[BlockStep]
    beta: float
    changed: int


def minimise(
    problem: Problem,
    engine: Engine,
    schedule: Schedule,
    options: Options,
    state: State,
    rng: np.random.Generator,
    started: float,
    on_iteration: Callable[[Record], None] = lambda record: None,
) -> Solution:
    """Run Algorithm 1 from the given state.

    A keyboard interrupt ends it early and in good order. `started` is the time from which seconds count.
    """
    history: list[Record] = []
    local: LocalStep | None = None
    idle = 0
    reason = OUT_OF_ITERATIONS
    try:
        while state.iteration < options.max_iter and state.violation > options.tol and idle < _IDLE_ITERATIONS:
            plan = schedule.next(state.measures)
            iteration = update(problem, engine, plan, options, state, int(rng.integers(2**62)))
            if plan.kind == "partition":
                local = LocalStep(state.coef, iteration.steps)
            state = iteration.state
            schedule.learn(plan, iteration.beta)
            idle = 0 if iteration.changed else idle + 1
            history.append(_record(plan, iteration, engine, time.perf_counter() - started))
            on_iteration(history[-1])
        if state.violation <= options.tol:
            reason = CONVERGED
        elif idle == _IDLE_ITERATIONS:
            reason = STALLED
    except KeyboardInterrupt:
        reason = INTERRUPTED
    return Solution(state, history, reason, local)


def update(problem: Problem, engine: Engine, plan: Plan, options: Options, state: State, seed: int) -> Iteration:
    """One iteration."""
    solver = options.block_solver
    rule = BlockRule(
        outputs=plan.outputs,
        choice=solver.choice,
        pairs=plan.pairs,
        # One block of everything is no model but the problem itself: solve it at once.
        fraction=0.0 if plan.active == problem.n and len(plan.blocks) == 1 else solver.fraction,
        floor=solver.floor * options.tol,
        max_updates=solver.max_updates,
        seed=seed,
    )
    steps = engine.solve(problem, (state.coef, state.decision), plan.blocks, rule, keep=plan.kind == "partition")
    rows = np.concatenate([step.rows for step in steps])
    moves = np.concatenate([step.step for step in steps], axis=1)
    moving = np.flatnonzero(moves.any(axis=0))
    rows, moves = rows[moving], moves[:, moving]
    if not np.all(np.abs(moves) < _UNBOUNDED):
        raise ValueError(
            "The objective has no minimum: the kernel is not positive semi-definite on this data, and the loss sets "
            "the coefficients no bounds. Use a positive semi-definite kernel, or a loss with bounds such as the hinge."
        )
    if len(rows) == 0:
        return Iteration(replace(state, iteration=state.iteration + 1), steps, 0.0, 0)
    product = engine.product(rows, moves)
    direction = np.zeros_like(state.coef)
    direction[:, rows] = moves

    coef, decision, measures, betas = state.coef.copy(), state.decision.copy(), list(state.measures), []
    for output in np.flatnonzero(moves.any(axis=1)).tolist():
        point, step = (state.coef[output], state.decision[output]), (direction[output], product[output])
        line = Line.along(problem, output, point, step)
        beta = _step_size(line, options, len(plan.blocks))
        betas.append(beta)
        if options.remember and state.last_step is not None:
            last = state.last_step[0][output], state.last_step[1][output]
            mixed = plane_step(problem, output, point, step, last)
            if mixed is not None:
                mixed_line = Line.along(problem, output, point, mixed)
                mixed_beta = _step_size(mixed_line, options, 1)
                if mixed_line.change(mixed_beta) < line.change(beta):
                    line, beta, step = mixed_line, mixed_beta, mixed
        coef[output, line.rows] = line.point(beta)
        decision[output] += beta * step[1]
        measures[output] = problem.measure(output, coef[output], decision[output])
    last_step = coef - state.coef, decision - state.decision
    after = State(coef, decision, state.iteration + 1, measures, last_step)
    return Iteration(after, steps, min(betas), len(rows) if any(betas) else 0)


def _step_size(line: Line, options: Options, n_blocks: int) -> float:
    return exact_step(line) if options.line_search == "exact" else armijo_step(line, n_blocks)


def _record(plan: Plan, iteration: Iteration, engine: Engine, seconds: float) -> Record:
    state = iteration.state
    return Record(
        iteration=state.iteration,
        kind=plan.kind,
        seconds=seconds,
        objective=state.objective,
        duality_gap=state.duality_gap,
        violation=state.violation,
        step=iteration.beta,
        blocks=len(plan.blocks),
        active=plan.active,
        changed=iteration.changed,
        updates=sum(step.updates for step in iteration.steps),
        kernel_evaluations=engine.kernel_evaluations,
    )
