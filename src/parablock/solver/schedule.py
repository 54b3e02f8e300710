"""What the blocks of the next iteration hold.

The paper keeps one partition. Its theorem does not need that: the decrease of an iteration is proved for
whatever partition that iteration uses. So there are two schedules.

    fixed      The paper's Algorithm 1: the same blocks, all rows, in every iteration. With an intercept every
               second iteration is a bridge.
    regrouped  The first iteration solves the partition. Later ones take only the variables that can still move
               and cut them into fresh blocks of neighbours, so that the blocks get fewer and the block-diagonal
               model of the kernel better; every second iteration is a bridge.

A *bridge* is one block of the worst violators from everywhere, filled up with free variables. Blocks of
neighbours alone cannot agree on what all of them share: the intercept, and without one the common mode of a
wide kernel (its eigenvector close to the constant one), which k blocks correct k-fold because each corrects it
as if it were alone. So regrouped blocks move variables in pairs that keep the block's sum, which cannot excite
that mode, and leave it to the bridge, which being alone cannot overshoot. When all that can still move fits
into the bridge, the method has become an exact active-set solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any

import numpy as np

from parablock import vectors
from parablock.problem import Measure

MANY_MACHINES = 4  # from here on blocks are smaller where all but one would wait for it
Regroup = Callable[[np.ndarray, int], list[np.ndarray]]  # rows and number of blocks to blocks


@dataclass(frozen=True)
class Plan:
    """The blocks of one iteration.

    Attributes
    ----------
    kind : {"partition", "regrouped", "bridge"}
        The paper's partition comes again as it is; the others are made for one iteration.
    blocks : sequence of index arrays
        Disjoint.
    outputs : sequence of int
        The outputs that have not converged; the others are left alone.
    pairs : bool
        Whether each block keeps its sum.
    of_block : sequence of sequences of int, optional
        The outputs that each block is for, where each has blocks of its own; these are disjoint for each output.
    order : sequence of int, optional
        In which to begin with the blocks, where not all are solved at once.
    """

    kind: str
    blocks: Sequence[np.ndarray]
    outputs: Sequence[int]
    pairs: bool
    of_block: Sequence[Sequence[int]] | None = None
    order: Sequence[int] | None = None

    @property
    def blocks_an_output(self) -> int:
        """The most blocks that any output has."""
        if self.of_block is None:
            return len(self.blocks)
        return max(sum(output in outputs for outputs in self.of_block) for output in self.outputs)

    @property
    def active(self) -> int:
        """Number of variables that may move."""
        return sum(len(block) for block in self.blocks)

    def hardest_first(self, measures: Sequence[Measure]) -> Plan:
        """The plan that begins with the blocks that are likely to be most work: those whose worst pair of variables is
        farthest from converged, and of equal ones those in which more variables find a partner."""
        worst, partners = np.zeros(len(self.blocks)), np.zeros(len(self.blocks), dtype=np.intp)
        for output in self.outputs:
            own = [n for n in range(len(self.blocks)) if self.of_block is None or output in self.of_block[n]]
            if not own:
                continue
            rows = np.concatenate([self.blocks[number] for number in own])
            starts = np.cumsum([0] + [len(self.blocks[number]) for number in own[:-1]])
            wishes = measures[output].upward[rows], measures[output].downward[rows]
            farthest = sum(np.maximum.reduceat(wish, starts) for wish in wishes)
            movers = [np.add.reduceat(wish > 0, starts, dtype=np.intp) for wish in wishes]
            worst[own] = np.maximum(worst[own], farthest)
            partners[own] += np.minimum(*movers)
        return replace(self, order=np.lexsort((-partners, -worst)).tolist())

    def agreed(self, agree: Callable[[Plan], Plan]) -> Plan:
        """The first machine's plan. Blocks of neighbours need not be told: these all machines have found together."""
        if self.kind == "bridge":
            return agree(self)
        return replace(agree(replace(self, blocks=())), blocks=self.blocks)


class Schedule(ABC):
    """Decides on blocks, one iteration after another."""

    @abstractmethod
    def next(self, measures: Sequence[Measure], regroup: Regroup) -> Plan:
        """The blocks of the next iteration, from how the outputs stand."""

    def ahead(self, measures: Sequence[Measure]) -> tuple[np.ndarray, int] | None:
        """While a bridge is solved: the rows that the blocks after it would be cut from as the outputs stand now, and
        how many blocks; None where the next blocks are there already."""
        return None

    def learn(self, plan: Plan, step: float) -> None:
        """Take note of the step size that the plan's blocks led to."""

    @abstractmethod
    def memory(self) -> dict[str, Any]:
        """What the next blocks depend on beside the measures, and of which kind of schedule."""

    @abstractmethod
    def remember(self, memory: dict[str, Any]) -> None:
        """Go on from such a memory, of the same kind."""


class FixedSchedule(Schedule):
    """The same partition in every iteration; with an intercept a bridge every second one."""

    def __init__(self, blocks: Sequence[np.ndarray], bridge_size: int, intercept: bool, tol: float) -> None:
        self.blocks, self.bridge_size, self.intercept, self.tol = blocks, bridge_size, intercept, tol
        self._bridge_is_next = False

    def next(self, measures: Sequence[Measure], regroup: Regroup) -> Plan:
        outputs = _unfinished(measures, self.tol)
        bridge = self._bridge_is_next and bool(outputs)
        self._bridge_is_next = self.intercept and len(self.blocks) > 1 and not bridge
        if bridge:
            return Plan("bridge", [bridge_rows(Wishes.of(measures, self.tol), self.bridge_size)], outputs, True)
        # Where all outputs have converged someone wants to know what the blocks make of them.
        return Plan("partition", self.blocks, outputs or range(len(measures)), self.intercept)

    def memory(self) -> dict[str, Any]:
        return {"kind": "fixed", "bridge_is_next": int(self._bridge_is_next)}

    def remember(self, memory: dict[str, Any]) -> None:
        self._bridge_is_next = bool(memory["bridge_is_next"])


class RegroupedSchedule(Schedule):
    """Fresh blocks of what can still move, and bridges.

    The step size is the thermometer: when the line search shortens the step, the blocks have got into each
    other's way, and the next iteration has fewer of them, holding a sample of the active rows; when it does
    not, more.
    """

    SHORT, LONG = 0.5, 0.8

    def __init__(
        self,
        blocks: Sequence[np.ndarray],
        bridge_size: int,
        intercept: bool,
        tol: float,
        rng: np.random.Generator,
        most_blocks: int | None = None,
        machines: int = 1,
    ) -> None:
        self.blocks, self.bridge_size = blocks, bridge_size
        self.intercept, self.tol, self.rng = intercept, tol, rng
        self.block_size = max(len(block) for block in blocks)
        self.most_blocks = most_blocks or len(blocks)
        self.machines = machines
        self._iteration = 0

    def next(self, measures: Sequence[Measure], regroup: Regroup) -> Plan:
        self._iteration += 1
        if self._iteration == 1:
            wishes = Wishes.of(measures, self.tol)
            everyone = wishes.everyone_moves() and len(self.blocks) <= self.most_blocks
            blocks = self.blocks if everyone else self._fresh_blocks(wishes, regroup)
            return Plan("regrouped", blocks, wishes.outputs, self.intercept or len(blocks) > 1)
        # The outputs move different rows: each gets blocks of its own, which hold more of them.
        kind = "bridge" if self._iteration % 2 == 0 else "regrouped"
        blocks, of_block = [], []
        outputs = _unfinished(measures, self.tol)
        for output in outputs:
            own = Wishes.of([measures[output]], self.tol)
            fresh = [bridge_rows(own, self.bridge_size)] if kind == "bridge" else self._fresh_blocks(own, regroup)
            blocks += fresh
            of_block += [(output,)] * len(fresh)
        several = kind == "regrouped" and len(blocks) > len(outputs)
        return Plan(kind, blocks, outputs, self.intercept or several, of_block)

    def learn(self, plan: Plan, step: float) -> None:
        if plan.kind == "regrouped":
            if step < self.SHORT:
                self.most_blocks = max(1, plan.blocks_an_output // 2)
            elif step > self.LONG:
                self.most_blocks = max(self.most_blocks, 2 * plan.blocks_an_output)

    def memory(self) -> dict[str, Any]:
        return {"kind": "regrouped", "iteration": self._iteration, "most_blocks": self.most_blocks}

    def remember(self, memory: dict[str, Any]) -> None:
        self._iteration, self.most_blocks = memory["iteration"], memory["most_blocks"]

    def ahead(self, measures: Sequence[Measure]) -> tuple[np.ndarray, int] | None:
        rows = Wishes.of(measures, self.tol).active_rows()
        return rows, self._count(min(len(rows), self._room))

    def _fresh_blocks(self, wishes: Wishes, regroup: Regroup) -> list[np.ndarray]:
        rows = wishes.active_rows()
        if len(rows) > self._room:
            rows = sampled_rows(wishes, rows, self._room, self.rng)
        return regroup(rows, self._count(len(rows)))

    @property
    def _room(self) -> int:
        return self.most_blocks * self.block_size

    def _count(self, rows: int) -> int:
        """Blocks for so many rows."""
        return for_unequal(-(-rows // self.block_size), self.machines)


def evenly(blocks: int, machines: int) -> int:
    """A number of blocks close to the given one that keeps all machines equally busy: the nearest multiple of theirs,
    where that does not make blocks much smaller."""
    return blocks if 2 * blocks < machines else max(1, round(blocks / machines)) * machines


def for_unequal(blocks: int, machines: int) -> int:
    """The same for blocks that are not equally hard. Where many machines would solve one or two each, and wait for the
    hardest, there are half as many again, which are smaller; but not if they are small already."""
    even = evenly(blocks, machines)
    few = MANY_MACHINES <= machines <= even < 3 * machines
    return even + even // 2 if few and even <= 1.25 * blocks else even


@dataclass(frozen=True)
class Wishes:
    """How much each variable still wants to move: the strongest wish of the outputs that have not converged."""

    outputs: Sequence[int]
    upward: np.ndarray
    downward: np.ndarray
    free: np.ndarray
    tol: float

    @classmethod
    def of(cls, measures: Sequence[Measure], tol: float) -> Wishes:
        outputs = _unfinished(measures, tol)
        unfinished = [measures[output] for output in outputs]
        return cls(
            outputs,
            reduce(vectors.maximum, [measure.upward for measure in unfinished]),
            reduce(vectors.maximum, [measure.downward for measure in unfinished]),
            reduce(or_, [measure.free for measure in unfinished]),
            tol,
        )

    @cached_property
    def violation(self) -> np.ndarray:
        return vectors.maximum(self.upward, self.downward)

    def active_rows(self) -> np.ndarray:
        """Violators, and all free variables: these must follow when others move, converged or not."""
        return vectors.flatnonzero((self.violation > 0.5 * self.tol) | self.free)

    def everyone_moves(self) -> bool:
        return len(self.active_rows()) == len(self.free)


def _unfinished(measures: Sequence[Measure], tol: float) -> list[int]:
    """The outputs that have not converged."""
    return [output for output, measure in enumerate(measures) if measure.violation > tol]


def bridge_rows(wishes: Wishes, size: int) -> np.ndarray:
    """Half the worst upward and half the worst downward violators, filled up with the other free variables
    that are farthest from converged."""
    chosen = vectors.nobody(wishes.free, len(wishes.free))
    for wish in (wishes.upward, wishes.downward):
        chosen[vectors.largest(wish, size // 2)] = True
    chosen &= wishes.violation > 0
    others = vectors.flatnonzero(wishes.free & ~chosen)
    chosen[others[vectors.largest(wishes.violation[others], size - int(chosen.sum()))]] = True
    return vectors.flatnonzero(chosen)


def sampled_rows(wishes: Wishes, rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn with a probability that grows with the root of their violation, half upward and half downward
    movers. The worst alone would be one class in one corner, and zigzag."""
    violation = wishes.violation[rows].clip(min=1e-3 * wishes.tol)
    # The smallest of exponential draws, each divided by its row's weight, are a weighted sample without replacement.
    key = -vectors.exponential(violation, rng) * violation**-0.5
    grows = wishes.upward[rows] >= wishes.downward[rows]
    growing = int(grows.sum())
    # What one side leaves over is the other's.
    up = min(growing, max((count + 1) // 2, count - (len(rows) - growing)))
    chosen = vectors.nobody(rows, len(rows))
    for side, most in ((grows, up), (~grows, count - up)):
        own = vectors.flatnonzero(side)
        chosen[own[vectors.largest(key[own], most)]] = True
    return rows[chosen]
