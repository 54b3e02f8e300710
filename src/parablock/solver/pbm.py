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
from dataclasses import dataclass

import numpy as np

from parablock.devices.base import BlockRule, BlockStep
from parablock.engines.base import Engine
from parablock.monitor import Record, relative_gap
from parablock.problem import Measure, Problem
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
    measures : list of Measure
        One an output.
    history : list of Record
    reason : {"converged", "out of iterations", "stalled", "interrupted"}
    local : LocalStep or None
        Of the last iteration over the fixed partition.
    """

    state: State
    measures: list[Measure]
    history: list[Record]
    reason: str
    local: LocalStep | None

    @property
    def violation(self) -> float:
        return max(measure.violation for measure in self.measures)

    @property
    def objective(self) -> float:
        return sum(measure.objective for measure in self.measures)

    @property
    def duality_gap(self) -> float:
        return sum(measure.duality_gap for measure in self.measures)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.objective, self.duality_gap)


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
    """Run Algorithm 1 from the given state, which it updates.

    A keyboard interrupt ends it early and in good order. `started` is the time from which seconds count.
    """
    measures = [
        problem.measure(output, state.coef[output], state.decision[output]) for output in range(problem.n_outputs)
    ]
    history: list[Record] = []
    local: LocalStep | None = None
    idle = 0
    reason = OUT_OF_ITERATIONS
    try:
        while True:
            if max(measure.violation for measure in measures) <= options.tol:
                reason = CONVERGED
                break
            if idle == _IDLE_ITERATIONS:
                reason = STALLED
                break
            if state.iteration >= options.max_iter:
                break
            plan = schedule.next(measures)
            iteration = update(problem, engine, plan, options, state, measures, int(rng.integers(2**62)))
            if plan.kind == "partition":
                local = LocalStep(iteration.before, iteration.steps)
            schedule.learn(plan, iteration.beta)
            idle = 0 if iteration.changed else idle + 1
            measures = iteration.measures
            record = Record(
                iteration=state.iteration,
                kind=plan.kind,
                seconds=time.perf_counter() - started,
                objective=sum(measure.objective for measure in measures),
                duality_gap=sum(measure.duality_gap for measure in measures),
                violation=max(measure.violation for measure in measures),
                step=iteration.beta,
                blocks=len(plan.blocks),
                active=plan.active,
                changed=iteration.changed,
                updates=sum(step.updates for step in iteration.steps),
                kernel_evaluations=engine.kernel_evaluations,
            )
            history.append(record)
            on_iteration(record)
    except KeyboardInterrupt:
        reason = INTERRUPTED
    return Solution(state, measures, history, reason, local)


@dataclass(frozen=True)
class Iteration:
    """What one iteration did."""

    before: np.ndarray
    steps: list[BlockStep]
    measures: list[Measure]
    beta: float
    changed: int


def update(
    problem: Problem,
    engine: Engine,
    plan: Plan,
    options: Options,
    state: State,
    measures: Sequence[Measure],
    seed: int,
) -> Iteration:
    """One iteration: `state` moves on, or is left as it was if this is interrupted."""
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
    if len(rows) == 0:
        state.iteration += 1
        return Iteration(state.coef, steps, list(measures), 0.0, 0)
    product = engine.product(rows, moves)
    direction = np.zeros_like(state.coef)
    direction[:, rows] = moves

    coef, decision, betas, fresh = state.coef.copy(), state.decision.copy(), [], list(measures)
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
        fresh[output] = problem.measure(output, coef[output], decision[output])
    before = state.coef
    state.last_step = coef - state.coef, decision - state.decision
    state.coef, state.decision, state.iteration = coef, decision, state.iteration + 1
    return Iteration(before, steps, fresh, min(betas), len(rows) if any(betas) else 0)


def _step_size(line: Line, options: Options, n_blocks: int) -> float:
    return exact_step(line) if options.line_search == "exact" else armijo_step(line, n_blocks)
