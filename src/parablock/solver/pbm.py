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
from typing import Any

import numpy as np

from parablock.devices.base import BlockRule, BlockStep
from parablock.monitor import Record
from parablock.solver.block_solvers import BlockSolver
from parablock.solver.line_search import Line, armijo_step, exact_step, plane_step
from parablock.solver.schedule import Plan, Schedule
from parablock.solver.state import State
from parablock.solver.watching import EARLY, Part, leave_to_rest, state_of_all, wake, wake_everyone

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
    rest : bool
        Whether rows that are far from moving may rest (`solver.watching`). In the paper's algorithm all are watched.
    """

    tol: float
    max_iter: int
    block_solver: BlockSolver
    line_search: str
    remember: bool
    rest: bool


@dataclass(frozen=True)
class LocalStep:
    """What local prediction needs of an iteration: the point before it and each block's own step."""

    coef: np.ndarray
    steps: Sequence[BlockStep]

    def put_back(self, order: np.ndarray) -> LocalStep:
        """The same where row i is called order[i]."""
        coef = np.empty_like(self.coef)
        coef[:, order] = self.coef
        return LocalStep(coef, [replace(step, rows=order[step.rows]) for step in self.steps])


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

    def put_back(self, order: np.ndarray) -> Solution:
        """The same where row i is called order[i]."""
        local = None if self.local is None else self.local.put_back(order)
        return replace(self, state=self.state.put_back(order), local=local)


def minimise(
    whole: Part,
    schedule: Schedule,
    options: Options,
    state: State,
    rng: np.random.Generator,
    started: float,
    on_iteration: Callable[[Record], None] = lambda record: None,
) -> Solution:
    """Run Algorithm 1 on the whole of a problem from the given state.

    A keyboard interrupt ends it early and in good order. `started` is the time from which seconds count.
    """
    run = _Run(whole, schedule, options, state, rng, started, on_iteration)
    interrupted = False
    try:
        run.descend()
        while run.part.rows is not None and run.within_limits():
            run.check()
            run.descend()
    except KeyboardInterrupt:
        interrupted = True
    state = run.whole_state()
    if interrupted:
        reason = INTERRUPTED
    elif state.violation <= options.tol:
        reason = CONVERGED
    else:
        reason = STALLED if run.idle == _IDLE_ITERATIONS else OUT_OF_ITERATIONS
    return Solution(state, run.history, reason, run.local)


class _Run:
    """Where a run stands.

    Attributes
    ----------
    part : Part
        The rows that are watched: all of them until some are left to rest.
    state : State
        Of these rows.
    history : list of Record
    local : LocalStep or None
    idle : int
        Iterations without any change since the last one with one.
    """

    def __init__(
        self,
        whole: Part,
        schedule: Schedule,
        options: Options,
        state: State,
        rng: np.random.Generator,
        started: float,
        on_iteration: Callable[[Record], None],
    ) -> None:
        self.whole, self.schedule, self.options, self.rng = whole, schedule, options, rng
        self.started, self.on_iteration = started, on_iteration
        self.part, self.state = whole, state
        self.history: list[Record] = []
        self.local: LocalStep | None = None
        self.idle = 0
        self._sampled = False
        self._early_goal = EARLY * state.violation

    def within_limits(self) -> bool:
        return self.state.iteration < self.options.max_iter and self.idle < _IDLE_ITERATIONS

    def descend(self) -> None:
        """Iterate until the watched rows have converged: well enough for a first check, or to the tolerance."""
        while self.within_limits():
            goal = self.options.tol if self.part.rows is None else max(self.options.tol, self._early_goal)
            if self.part.crew.agree(self.state.violation <= goal):
                break
            self.iterate()

    def iterate(self) -> None:
        """One outer iteration."""
        part, rng = self.part, self.rng
        plan = part.crew.agree(
            self.schedule.next(self.state.measures, lambda rows, n_blocks: part.regroup(rows, n_blocks, rng))
        )
        steps: Sequence[BlockStep] = solve(part, plan, self.options, self.state, int(rng.integers(2**62)))
        if plan.kind == "partition":
            self.local = LocalStep(self.state.coef, steps)
        if self.options.rest and self.state.iteration == 0:
            self.part, self.state, steps = leave_to_rest(self.part, self.state, steps)
            self._sampled = plan.active < self.whole.problem.n
        iteration = advance(self.part, self.options, self.state, steps)
        self.state = iteration.state
        self.schedule.learn(plan, iteration.beta)
        self.idle = 0 if iteration.changed else self.idle + 1
        self._note(
            kind=plan.kind,
            step=iteration.beta,
            blocks=len(plan.blocks),
            active=plan.active,
            changed=iteration.changed,
            updates=sum(step.updates for step in steps),
        )

    def check(self) -> None:
        """See how all rows stand, and watch from now on those that want to move too; all rows, if none do, or if only a
        sample was watched."""
        if self._sampled:
            self.part, self.state = wake_everyone(self.whole, self.part, self.state)
            self._sampled, self._early_goal, self.idle = False, 0.0, 0
            self._note(kind="check", step=0.0, blocks=0, active=0, changed=0, updates=0)
            return
        state = self.whole_state()
        if self.whole.crew.agree(state.violation <= self.options.tol):
            self.part, self.state = self.whole, state
        else:
            self.part, self.state = wake(self.whole, self.part, state, near=self.state.violation)
        self._early_goal, self.idle = 0.0, 0
        self._note(kind="check", step=0.0, blocks=0, active=0, changed=0, updates=0)

    def whole_state(self) -> State:
        """The state of all rows."""
        return state_of_all(self.whole, self.part, self.state)

    def _note(self, **what: Any) -> None:
        record = Record(
            iteration=self.state.iteration,
            seconds=time.perf_counter() - self.started,
            objective=self.state.objective,
            duality_gap=self.state.duality_gap,
            violation=self.state.violation,
            watched=self.part.problem.n,
            kernel_evaluations=self.whole.crew.kernel_evaluations(),
            **what,
        )
        self.history.append(record)
        self.on_iteration(record)


def solve(part: Part, plan: Plan, options: Options, state: State, seed: int) -> list[BlockStep]:
    """Line 4: every block on its own."""
    solver = options.block_solver
    rule = BlockRule(
        outputs=plan.outputs,
        choice=solver.choice,
        pairs=plan.pairs,
        # One block of everything is no model but the problem itself: solve it at once.
        fraction=0.0 if plan.active == part.problem.n and len(plan.blocks) == 1 else solver.fraction,
        floor=solver.floor * options.tol,
        max_updates=solver.max_updates,
        seed=seed,
        wishes=options.rest and state.iteration == 0,
    )
    point = state.coef, state.decision
    return part.crew.solve(part.problem, point, plan.blocks, rule, keep=plan.kind == "partition")


@dataclass(frozen=True)
class Advance:
    """The state after an iteration, its step size (the smallest of all outputs) and how many variables moved."""

    state: State
    beta: float
    changed: int


def advance(part: Part, options: Options, state: State, steps: Sequence[BlockStep]) -> Advance:
    """Lines 5 to 8: as far along the blocks' common direction as is best."""
    problem = part.problem
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
        return Advance(replace(state, iteration=state.iteration + 1), 0.0, 0)
    product = part.crew.product(rows, moves)
    direction = np.zeros_like(state.coef)
    direction[:, rows] = moves

    coef, decision, measures, betas = state.coef.copy(), state.decision.copy(), list(state.measures), []
    for output in np.flatnonzero(moves.any(axis=1)).tolist():
        point, step = (state.coef[output], state.decision[output]), (direction[output], product[output])
        line = Line.along(problem, output, point, step)
        beta = part.crew.agree(_step_size(line, options, len(steps)))
        betas.append(beta)
        if options.remember and state.last_step is not None:
            last = state.last_step[0][output], state.last_step[1][output]
            mixed = plane_step(problem, output, point, step, last)
            if mixed is not None:
                mixed_line = Line.along(problem, output, point, mixed)
                mixed_beta = part.crew.agree(_step_size(mixed_line, options, 1))
                if part.crew.agree(mixed_line.change(mixed_beta) < line.change(beta)):
                    line, beta, step = mixed_line, mixed_beta, mixed
        coef[output, line.rows] = line.point(beta)
        decision[output] += beta * step[1]
        measures[output] = problem.measure(output, coef[output], decision[output])
    last_step = coef - state.coef, decision - state.decision
    after = State(coef, decision, state.iteration + 1, measures, last_step)
    return Advance(after, min(betas), len(rows) if any(betas) else 0)


def _step_size(line: Line, options: Options, n_blocks: int) -> float:
    return exact_step(line) if options.line_search == "exact" else armijo_step(line, n_blocks)
