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

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from parablock import vectors
from parablock.devices.base import BlockStep, ReadableRows
from parablock.engines.base import Ahead, Counts
from parablock.monitor import Record, Stopwatch
from parablock.monitor.checkpoint import TERMINATED, Keeper, Snapshot, makes_no_sense
from parablock.partition.regions import Regions
from parablock.solver.iteration import Options, advance, solve
from parablock.solver.schedule import Schedule
from parablock.solver.state import State
from parablock.solver.units import Units
from parablock.solver.watching import AGAIN, Lookout, Part, leave_to_rest, state_of_all

logger = logging.getLogger("parablock")
REASONS = CONVERGED, OUT_OF_ITERATIONS, STALLED, INTERRUPTED, STOPPED = (
    "converged",
    "out of iterations",
    "stalled",
    "interrupted",
    "stopped",
)
_FAR = 0.1  # as no rounding takes decisions from those of a checkpoint
_IDLE_ITERATIONS = 4  # without any change of any output: two rounds of blocks and bridge


@dataclass(frozen=True)
class LocalStep:
    """What local prediction needs of an iteration: the point before it and each block's own step."""

    coef: np.ndarray
    steps: Sequence[BlockStep]

    def put_back(self, order: np.ndarray) -> LocalStep:
        """The same where row i is called order[i], on the host."""
        coef = np.empty(self.coef.shape)
        coef[:, order] = vectors.to_host(self.coef)
        steps = (step.on_host() for step in self.steps)
        return LocalStep(coef, [replace(step, rows=order[step.rows]) for step in steps])


@dataclass(frozen=True)
class Solution:
    """Where a run ended.

    Attributes
    ----------
    state : State
    history : list of Record
    reason : {"converged", "out of iterations", "stalled", "interrupted", "stopped"}
    kernel_evaluations : int
    local : LocalStep or None
        Of the last iteration over the fixed partition.
    doubt : str or None
        Why a solution that the solver took for the optimum is not; its reason is then "stalled".
    """

    state: State
    history: list[Record]
    reason: str
    kernel_evaluations: int
    local: LocalStep | None
    doubt: str | None = None

    def put_back(self, order: np.ndarray) -> Solution:
        """The same where row i is called order[i]."""
        local = None if self.local is None else self.local.put_back(order)
        return replace(self, state=self.state.put_back(order), local=local)


class Watcher(Protocol):
    """Who follows a run from iteration to iteration; on several machines all of them have one, and call it together."""

    def begin(self) -> None:
        """An iteration, or a check of resting rows, begins."""

    def end(self, record: Record, so_far: Callable[[], Solution]) -> bool:
        """It has ended; True ends the run, on every machine."""


def minimise(
    whole: Part,
    schedule: Schedule,
    options: Options,
    state: State,
    rng: np.random.Generator,
    stopwatch: Stopwatch,
    units: Units,
    on_iteration: Callable[[Record], None] = lambda record: None,
    keeper: Keeper | None = None,
    snapshot: Snapshot | None = None,
    watcher: Watcher | None = None,
) -> Solution:
    """Run Algorithm 1 on the whole of a problem from the given state, or go on from a snapshot of an earlier run.

    A keyboard interrupt ends it early and in good order. `stopwatch` counts the seconds. A keeper
    writes checkpoints; when the process is asked to terminate, a last one is written before SystemExit is raised.

    Problem, state and tolerance are inside the units; what records, watcher, snapshots and the solution tell is outside
    of them.
    """
    run = _Run(whole, schedule, options, state, rng, stopwatch, units, on_iteration, keeper, watcher)
    if snapshot is not None:
        run.restore(snapshot)
    interrupted = False
    try:
        run.descend()
        while run.part.rows is not None and run.within_limits():
            run.check()
            run.keep()
            run.descend()
    except KeyboardInterrupt:
        interrupted = True
    state = run.whole_state()
    run.leave_if_terminated()
    if interrupted:
        reason = INTERRUPTED
    elif state.violation <= options.tol:
        reason = CONVERGED
    elif run.stopped:
        reason = STOPPED
    else:
        reason = STALLED if run.idle == _IDLE_ITERATIONS else OUT_OF_ITERATIONS
    return Solution(units.outside(state), run.history, reason, run.kernel_evaluations(), run.local_outside())


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
    stopped : bool
        Whether the watcher wants no more.
    """

    def __init__(
        self,
        whole: Part,
        schedule: Schedule,
        options: Options,
        state: State,
        rng: np.random.Generator,
        stopwatch: Stopwatch,
        units: Units,
        on_iteration: Callable[[Record], None],
        keeper: Keeper | None,
        watcher: Watcher | None,
    ) -> None:
        self.units = units
        self.whole, self.schedule, self.options, self.rng = whole, schedule, options, rng
        self.stopwatch, self.on_iteration, self.keeper = stopwatch, on_iteration, keeper
        self.watcher, self.stopped = watcher, False
        self.part, self.state = whole, state
        self.history: list[Record] = []
        self.local: LocalStep | None = None
        self.idle = 0
        self._lookout = Lookout(state.spread, 0.0 if whole.crew.device.keeps_columns else AGAIN * options.tol)
        self._counts = whole.crew.counts()
        self._before = Counts()  # what was counted before the last checkpoint

    def within_limits(self) -> bool:
        more = self.state.iteration < self.options.max_iter and self.idle < _IDLE_ITERATIONS
        return more and not self.stopped

    def descend(self) -> None:
        """Iterate until the watched rows have converged, or it is time to look at all rows."""
        while self.within_limits() and not self.part.crew.agree(self._is_time_to_check()):
            self.iterate()
            self.keep()

    def _is_time_to_check(self) -> bool:
        if self.state.violation <= self.options.tol:
            # The paper's local prediction needs one step of its blocks, also where training starts from the optimum.
            return self.options.remember or self.local is not None
        return self.part.rows is not None and self._lookout.is_due(self.state, self.history)

    def iterate(self) -> None:
        """One outer iteration."""
        self._announce()
        part, rng = self.part, self.rng
        measures = self.state.measures
        plan = self.schedule.next(measures, lambda rows, n_blocks: part.regroup(rows, n_blocks, rng))
        plan = plan.hardest_first(measures) if part.crew.device.solves_in_turn else plan
        plan = plan.agreed(part.crew.agree)
        seed = int(rng.integers(2**62))
        ahead = self._ahead(seed) if plan.kind == "bridge" else None
        steps: Sequence[BlockStep] = solve(part, plan, self.options, self.state, seed, ahead)
        if plan.kind == "partition":
            self.local = LocalStep(self.state.coef, steps)
        if self.options.rest and self.state.iteration == 0:
            self.part, self.state, steps = leave_to_rest(self.part, self.state, steps)
            if plan.active < self.whole.problem.n:
                self._lookout.stage = "sample"
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

    def _ahead(self, seed: int) -> Ahead:
        """Where the blocks after a bridge will lie, as far as can be said before it is solved."""
        part, schedule, measures = self.part, self.schedule, self.state.measures

        def regions(samples: ReadableRows) -> Regions | None:
            rows_and_count = schedule.ahead(measures)
            if rows_and_count is None:
                return None
            return part.partitioner.regions(part.crew.device, samples, *rows_and_count, np.random.default_rng(seed))

        return regions

    def check(self) -> None:
        """See how all rows stand, and watch from now on also those that want to move; all of them, if none do."""
        self._announce()
        self.part, self.state = self._lookout.look(self.whole, self.part, self.state, self.options.tol, self.rng)
        self.idle = 0
        self._note(kind="check", step=0.0, blocks=0, active=0, changed=0, updates=0)

    def whole_state(self) -> State:
        """The state of all rows."""
        return state_of_all(self.whole, self.part, self.state)

    def kernel_evaluations(self) -> int:
        return self._before.kernel_evaluations + self.whole.crew.counts().kernel_evaluations

    def so_far(self) -> Solution:
        """What there is by now, with the coefficients of all rows; decisions and measures are of the watched ones."""
        state = self.units.outside(self.state)
        coef = state.coef
        if self.part.rows is not None:
            coef = vectors.zeros_like(self.whole.problem.target)
            coef[:, self.part.rows] = state.coef
        evaluations = self.history[-1].kernel_evaluations if self.history else 0
        return Solution(replace(state, coef=coef), list(self.history), "", evaluations, self.local_outside())

    def local_outside(self) -> LocalStep | None:
        """The local step as it is for the user."""
        if self.local is None:
            return None
        steps = [replace(step, step=self.units.multiplied(step.step)) for step in self.local.steps]
        return LocalStep(self.units.multiplied(self.local.coef), steps)

    def _announce(self) -> None:
        if self.watcher is not None:
            self.watcher.begin()

    def _note(self, **what: Any) -> None:
        counts = self.whole.crew.counts()
        objective, duality_gap, violation = self.units.certificate(self.state.measures)
        record = Record(
            iteration=self.state.iteration,
            seconds=self.stopwatch.seconds(),
            objective=objective,
            duality_gap=duality_gap,
            violation=violation,
            watched=self.part.problem.n,
            kernel_evaluations=self._before.kernel_evaluations + counts.kernel_evaluations,
            bytes_sent=counts.bytes_sent - self._counts.bytes_sent,
            seconds_waiting=counts.seconds_waiting - self._counts.seconds_waiting,
            seconds_compiling=self.stopwatch.seconds_compiling(),
            **what,
        )
        self._counts = counts
        self.history.append(record)
        self.on_iteration(record)
        if self.watcher is not None:
            self.stopped = self.watcher.end(record, self.so_far)

    # ------------------------------------------------------------------------------------------ checkpoints

    def keep(self) -> None:
        """Keep a snapshot, and write a checkpoint if it is time for one; the last one, if it is time to go."""
        keeper = self.keeper
        if keeper is None:
            return
        if keeper.shelf is not None:
            keeper.shelf.put(self.snapshot(), keeper.order)
        if keeper.checkpoint is None:
            return
        self.leave_if_terminated()
        if self.stopped or self.whole.crew.agree(keeper.is_due(self.state.iteration)):
            keeper.save(self.snapshot())

    def leave_if_terminated(self) -> None:
        """Write a last checkpoint and end the process, if someone has asked for it."""
        keeper = self.keeper
        if keeper is None or keeper.checkpoint is None or not self.whole.crew.anyone(keeper.terminated):
            return
        keeper.save(self.snapshot())
        what_is_left = self.whole.crew.agree(keeper.what_is_left())  # which the first machine knows
        logger.warning("Terminated after iteration %d; %s.", self.state.iteration, what_is_left)
        raise SystemExit(TERMINATED)

    def snapshot(self) -> Snapshot:
        """Where the run stands, in the numbering of the whole."""
        state, rows = self.state, vectors.to_host(self.part.rows)

        def of_everyone(values: np.ndarray) -> np.ndarray:
            values = self.units.multiplied(vectors.to_host(values))
            if rows is None:
                return values
            everyone = np.zeros((len(values), self.whole.problem.n))
            everyone[:, rows] = values
            return everyone

        last = None if state.last_step is None else (of_everyone(state.last_step[0]), of_everyone(state.last_step[1]))
        memory = {
            "schedule": self.schedule.memory(),
            "random": self.rng.bit_generator.state,
            "lookout": self._lookout.memory(),
            "idle": self.idle,
        }
        coef, decision = of_everyone(state.coef), of_everyone(state.decision)
        return Snapshot(
            coef, decision, last, rows, state.iteration, list(self.history), self.stopwatch.seconds(), memory
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there."""
        self.history = list(snapshot.history)
        self.stopwatch.go_on_from(snapshot.seconds)
        self._before = Counts(self.history[-1].kernel_evaluations if self.history else 0)
        self.rng.bit_generator.state = snapshot.memory["random"]
        if snapshot.memory["schedule"]["kind"] == self.schedule.memory()["kind"]:
            state = self._where_it_stood(snapshot)
        else:
            state = self._point_of(snapshot)
        self.state = replace(state, iteration=snapshot.iteration)
        if self.keeper is not None:
            self.keeper.resumed(snapshot.iteration)

    def _where_it_stood(self, snapshot: Snapshot) -> State:
        """Everything as it was."""

        def here(values: np.ndarray) -> np.ndarray:
            values = vectors.place(self.whole.problem.target, self.units.divided(values))
            return values if self.part.rows is None else vectors.columns(values, self.part.rows)

        if snapshot.watched is not None:
            rows = vectors.place(self.whole.problem.target, snapshot.watched)
            self.part = self.whole.take(rows, self.whole, support=rows[:0], room=self.whole.problem.n)
        self.schedule.remember(snapshot.memory["schedule"])
        self._lookout.remember(snapshot.memory["lookout"])
        self.idle = snapshot.memory["idle"]
        coef = here(snapshot.coef)
        state = State.at(self.part.problem, coef, self._decision_of(coef, here(snapshot.decision), snapshot.path))
        if snapshot.last_step is None:
            return state
        last_coef, last_decision = map(here, snapshot.last_step)
        last_decision = self._decision_of(last_coef, last_decision, snapshot.path)
        return replace(state, before=(coef - last_coef, state.decision - last_decision))

    def _decision_of(self, coef: np.ndarray, told: np.ndarray, path: str | None) -> np.ndarray:
        """The decisions of the watched rows, computed anew where a file tells them: with wrong ones the fit would end
        somewhere else, and say that it had converged."""
        if path is None:
            return told
        support, computed = vectors.flatnonzero(coef.any(axis=0)), vectors.zeros_like(coef)
        if len(support):
            computed = self.part.crew.product(support, vectors.columns(coef, support))
        if float(abs(computed - told).max()) > _FAR * max(float(abs(computed).max()), float(abs(told).max())):
            raise makes_no_sense(path, "decisions that are not those of its coefficients")
        return computed

    def _point_of(self, snapshot: Snapshot) -> State:
        """Its coefficients, with a schedule of another kind: the number of blocks has changed from one to several or
        back, perhaps with the number of machines. All rows are watched."""
        coef = vectors.place(self.whole.problem.target, self.units.divided(snapshot.coef))
        support = vectors.flatnonzero(coef.any(axis=0))
        decision = self.whole.crew.product(support, vectors.columns(coef, support))
        return State.at(self.whole.problem, coef, decision)
