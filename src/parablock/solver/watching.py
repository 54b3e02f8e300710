"""Rows that nobody needs to watch.

A row whose coefficients are zero takes no part in the kernel expansion; its own decision only tells whether it should
begin to. Most rows never do. So after the first step the rows that neither moved nor came near to moving in their own
block *rest*: the problem goes on as if they were not in the training set, with shorter kernel products. When the rest
of the problem has come to rest too, their decisions are computed once and checked; those that are violated are watched
from then on. The end is the same optimum of all rows, and the last check proves it.

Coordinate descent solvers know the idea as shrinking (Joachims, 1998). Here the rows are chosen by what the first
step's blocks found out about them, before a single kernel value outside the blocks is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parablock import vectors
from parablock.devices.base import BlockStep
from parablock.engines.base import Crew
from parablock.monitor import Record
from parablock.partition import Partitioner
from parablock.problem import Problem
from parablock.solver.state import State

# Rows rest that are farther from moving than this share of how far wishes are apart at the start, if enough of them do.
NEAR, ENOUGH = 0.25, 0.2
# The first check comes early, when the violation has fallen to this share of that, or two iterations have bettered the
# objective by less than this share of it: by then decisions are nearly what they will be, and rows that were wrongly
# left to rest have missed little.
EARLY, SLOWLY = 0.5, 0.02
# A sample from which training starts is watched alone until then, if it is no more than this share of the rows. It
# grows to all rows, or where columns are computed again and again by this factor, by rows that are no farther from
# moving than this share.
# A wide kernel moves the decisions of all rows, so these are looked at again after so many iterations, then twice as
# many, and so on.
SMALL_SAMPLE, SAMPLE_GROWTH, SAMPLE_NEAR, _PATIENCE = 0.3, 4, 0.1, 8
# Where columns are computed again and again, a look costs little more than an iteration, and there is one more when the
# violation is so many times `tol`: a few rows that wake up at the end would make the others converge a second time.
AGAIN = 10
_GROWTH = 1.4  # room for rows that wake up


@dataclass(frozen=True)
class Part:
    """Some rows of a problem, numbered anew.

    Attributes
    ----------
    rows : ndarray or None
        Which rows of the whole problem; None for the whole itself.
    problem, crew, partitioner
        Of these rows.
    """

    rows: np.ndarray | None
    problem: Problem
    crew: Crew
    partitioner: Partitioner

    def take(self, rows: np.ndarray, before: Part, support: np.ndarray, room: int) -> Part:
        """The given rows, of which `before` may have the first, and among these support vectors; later there may be
        more rows."""
        crew = self.crew.restricted(rows, before.crew, support, room)
        return Part(rows, self.problem.take(rows), crew, self.partitioner.restricted(rows))

    def regroup(self, rows: np.ndarray, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
        return self.crew.regroup(self.partitioner, rows, n_blocks, rng)


class Lookout:
    """When to look at the rows that rest, and which of them to wake.

    Attributes
    ----------
    spread : float
        How far apart wishes were at the start.
    nearly : float
        The violation at which to look once more before the watched rows have converged; 0 for never.
    stage : {"first", "sample", "grown", "late", "last"}
        The rows that the first step chose are watched, and soon all will be looked at; a sample of the rows is, and
        will grow; a sample that has grown is, and all are looked at now and then; the watched rows must nearly
        converge first; they must converge.
    """

    def __init__(self, spread: float, nearly: float) -> None:
        self.spread, self.nearly, self.stage = spread, nearly, "first"
        self._looked, self._patience = 0, _PATIENCE

    def is_due(self, state: State, history: Sequence[Record]) -> bool:
        """Whether to look at all rows before the watched ones have converged."""
        if self.stage == "grown":
            return state.iteration - self._looked >= self._patience
        if self.stage in ("late", "last"):
            return self.stage == "late" and state.violation <= self.nearly
        return state.violation <= EARLY * self.spread or _has_got_slow(history)

    def look(self, whole: Part, part: Part, state: State, tol: float, rng: np.random.Generator) -> tuple[Part, State]:
        """What to watch from now on: all rows, if none of them wants to move."""
        self._looked = state.iteration
        if self.stage == "sample" and _may_wake_everyone(whole, part):
            self.stage = "late"
            return wake_everyone(whole, part, state)
        everyone = state_of_all(whole, part, state)
        if whole.crew.agree(everyone.violation <= tol):
            return whole, everyone
        if self.stage == "sample":
            part, state, more = wake_some(whole, part, everyone, SAMPLE_NEAR * self.spread, rng)
            self.stage = "sample" if more else "grown"
            return part, state
        if self.stage == "grown":
            self._patience *= 2
            return wake(whole, part, everyone, SAMPLE_NEAR * self.spread)
        first = self.stage == "first"
        self.stage = "late" if first else "last"
        return wake(whole, part, everyone, EARLY * self.spread if first else state.violation)

    def memory(self) -> dict[str, Any]:
        """What it goes on from."""
        return {"spread": self.spread, "stage": self.stage, "looked": self._looked, "patience": self._patience}

    def remember(self, memory: dict[str, Any]) -> None:
        self.spread, self.stage = memory["spread"], memory["stage"]
        self._looked, self._patience = memory["looked"], memory["patience"]


def _may_wake_everyone(whole: Part, part: Part) -> bool:
    """Whether a sample grows to all rows at once: where that is not much, or costs but longer columns."""
    return whole.crew.device.keeps_columns or whole.problem.n <= SAMPLE_GROWTH * part.problem.n


def _has_got_slow(history: Sequence[Record]) -> bool:
    """Whether the last two iterations, blocks and bridge, did little for the objective of the watched rows."""
    last = history[-3:]
    if len(last) < 3 or any(record.kind == "check" for record in last):
        return False
    return last[0].objective - last[2].objective < SLOWLY * abs(last[2].objective)


def leave_to_rest(whole: Part, state: State, steps: Sequence[BlockStep]) -> tuple[Part, State, Sequence[BlockStep]]:
    """After the blocks of the first iteration: the rows to watch, and what concerns them of the state and the steps.

    Where training starts from a small sample of the rows, that sample. Otherwise those that moved in their block or
    came near to; but all of them, if nearly all did.
    """
    n = whole.problem.n
    if state.coef.any():
        return whole, state, steps
    asked = sum(len(step.rows) for step in steps)
    if asked < n:
        if asked > SMALL_SAMPLE * n:
            return whole, state, steps
        watched = [~vectors.nobody(step.rows, len(step.rows)) for step in steps]
    else:
        far = -NEAR * state.spread
        watched = [step.step.any(axis=0) | (step.wish > far).any(axis=0) for step in steps]
    rows = vectors.concatenate([step.rows[those] for step, those in zip(steps, watched, strict=True)])
    if len(steps) == 1 or len(rows) > (1.0 - ENOUGH) * n:
        return whole, state, steps
    starts = np.cumsum([0] + [int(those.sum()) for those in watched]).tolist()
    shorter = [
        replace(step, rows=vectors.numbers(rows, start, stop), step=step.step[:, those], wish=step.wish[:, those])
        for step, those, start, stop in zip(steps, watched, starts[:-1], starts[1:], strict=True)
    ]
    room = n if asked < n else int(_GROWTH * len(rows))
    part = whole.take(rows, whole, support=rows[:0], room=room)
    return part, _state_of(part, state), shorter


def state_of_all(whole: Part, part: Part, state: State) -> State:
    """The state of all rows, with the decisions of those that rested."""
    if part.rows is None:
        return state
    coef, decision = vectors.zeros_like(whole.problem.target), vectors.zeros_like(whole.problem.target)
    coef[:, part.rows], decision[:, part.rows] = state.coef, state.decision
    resting = _others(part.rows, whole.problem.n)
    if len(resting):
        support = vectors.flatnonzero(coef.any(axis=0))
        decision[:, resting] = whole.crew.decision(resting, support, vectors.columns(coef, support))
    return replace(State.at(whole.problem, coef, decision), iteration=state.iteration)


def wake(whole: Part, part: Part, state: State, near: float) -> tuple[Part, State]:
    """From the state of all rows: watch from now on also those that want to move, or are nearer to it than `near`."""
    return _woken(whole, part, state, _moving(whole, part, state, near))


def wake_some(whole: Part, part: Part, state: State, near: float, rng: np.random.Generator) -> tuple[Part, State, bool]:
    """The same where only a sample of the rows was watched: at most some times as many from now on, drawn from those
    that want to move or nearly do; and whether there were more, so that these are a sample too."""
    assert part.rows is not None
    moving = _moving(whole, part, state, near)
    most = (SAMPLE_GROWTH - 1) * len(part.rows)
    sampled = len(moving) > most
    if sampled:
        moving = moving[vectors.largest(vectors.exponential(moving, rng), most)]
    return *_woken(whole, part, state, moving), sampled


def wake_everyone(whole: Part, part: Part, state: State) -> tuple[Part, State]:
    """From the state of a sample: watch all rows from now on. Unlike the others it needs no decisions of the resting
    rows: the kept columns of the support vectors get as long as they must be, and give them."""
    assert part.rows is not None
    rows = vectors.concatenate((part.rows, _others(part.rows, whole.problem.n)))
    support = vectors.flatnonzero(state.coef.any(axis=0))
    everyone = whole.take(rows, part, support, room=len(rows))
    coef = vectors.zeros_like(whole.problem.target)
    coef[:, : len(part.rows)] = state.coef
    decision = everyone.crew.product(support, vectors.columns(coef, support))
    return everyone, replace(State.at(everyone.problem, coef, decision), iteration=state.iteration)


def _moving(whole: Part, part: Part, state: State, near: float) -> np.ndarray:
    """The resting rows that want to move, or are nearer to it than `near`."""
    moving = vectors.nobody(part.rows, whole.problem.n)
    for measure in state.measures:
        for wish in (measure.upward, measure.downward):
            moving |= wish > -near
            moving[wish.argmax()] = True  # whatever the bias
    moving[part.rows] = False
    return whole.crew.agree(vectors.flatnonzero(moving))


def _woken(whole: Part, part: Part, state: State, more: np.ndarray) -> tuple[Part, State]:
    rows = vectors.concatenate((part.rows, more))
    support = vectors.flatnonzero(state.coef[:, part.rows].any(axis=0))
    part = whole.take(rows, part, support, room=int(_GROWTH * len(rows)))
    return part, _state_of(part, state)


def _others(rows: np.ndarray, n: int) -> np.ndarray:
    """All other numbers below n."""
    chosen = vectors.nobody(rows, n)
    chosen[rows] = True
    return vectors.flatnonzero(~chosen)


def _state_of(part: Part, state: State) -> State:
    shorter = State.at(part.problem, *(vectors.columns(values, part.rows) for values in (state.coef, state.decision)))
    return replace(shorter, iteration=state.iteration)
