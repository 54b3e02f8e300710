"""What ranks do together: each block is solved by one rank, and each rank computes the kernel products of its own rows,
which is nearly all there is to do; a faster one has more of them (`engines.dealing`).

Two exchanges give everyone `K d` (the paper, section 4.1):

    gather   Everyone learns the changed coefficients; each rank computes `K d` of its own rows with all of them, and
             everyone learns the result. Rows are divided evenly, and their columns are kept.
    reduce   Each rank computes `K d` of all rows with its share of the changed coefficients; the parts are added up
             (Reduce_scatter), and everyone learns the sums. Needs replicated data.

By default the one that sends less is taken: see `bytes_to_send`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle, pairwise
from typing import Any, TypeVar

import numpy as np

from parablock.devices.base import BlockRule, BlockStep, Device, ReadableRows, Samples
from parablock.devices.digits import kernel_error
from parablock.engines.base import Ahead, Counts, Crew
from parablock.engines.dealing import SEEN_SHARE, Draws, pieces_of, with_drawn
from parablock.engines.sanity import refuse_nonsense
from parablock.engines.shares import Shares
from parablock.engines.sharing import PartRows, ShardedRows, assigned, even_parts, interleaved
from parablock.engines.talk import Talk
from parablock.kernels import Kernel
from parablock.partition import Partition, Partitioner
from parablock.partition.regions import Regions
from parablock.problem import Problem

S = TypeVar("S")
T = TypeVar("T")


class RankCrew(Crew):
    """Ranks over the rows of a problem.

    Parameters
    ----------
    rows : Samples or ShardedRows
        All rows, replicated or sharded.
    numbers : ndarray, optional
        Which of them the problem is about; all of them by default.
    shares : Shares, optional
        The rows of the problem whose products each rank computes; by default rows of its own, or an even share. Those
        that are nobody's yet, the first product deals out.
    deals : bool
        Whether work goes to whoever has time for it.
    largest_given : int
        Up to this size the matrix of a bridge is computed by all ranks of a machine.
    """

    def __init__(
        self,
        device: Device,
        kernel: Kernel,
        talk: Talk,
        rows: Samples | ShardedRows,
        exchange: str,
        numbers: np.ndarray | None = None,
        shares: Shares | None = None,
        deals: bool = False,
        largest_given: int = 0,
    ) -> None:
        self.device, self.kernel, self.talk, self.exchange = device, kernel, talk, exchange
        self.deals, self.largest_given = deals, largest_given
        self.is_first, self.size = talk.rank == 0, talk.size
        self.all_rows = rows
        self.numbers = np.arange(len(rows)) if numbers is None else numbers
        self.rows: ReadableRows = rows if numbers is None else PartRows(rows, numbers)
        self.shares = Shares(_divided(rows, self.numbers, talk.size)) if shares is None else shares
        self.samples = self.rows.take(self.shares.rows[talk.rank])
        self._everyone: Samples | None = None
        self._regions: Regions | None = None  # of the next blocks

    def _bring(self, rows: np.ndarray) -> None:
        if isinstance(self.all_rows, ShardedRows):
            self.all_rows.bring(self.numbers[rows])

    def counts(self) -> Counts:
        own = self.device.kernel_evaluations, self.talk.bytes_sent, self.talk.seconds_waiting
        evaluations, sent, waiting = zip(*self.talk.share(own), strict=True)
        return Counts(sum(evaluations), sum(sent), sum(waiting) / self.talk.size)

    def agree(self, value: T) -> T:
        return self.talk.agree(value)

    def from_first(self, work: Callable[[], T]) -> T:
        results = self.talk.together(lambda: work() if self.is_first else None)
        return results[0]  # type: ignore[return-value]

    def anyone(self, value: bool) -> bool:
        return any(self.talk.share(value))

    def kernel_error(self, X: Any, centre: np.ndarray | None) -> float:
        samples, own = self.all_rows, X
        if isinstance(samples, ShardedRows):
            samples, own = samples.own, X.own
        return max(self.talk.together(lambda: kernel_error(self.device, self.kernel, samples, own, centre)))

    def refuse_nonsense(self, rng: np.random.Generator) -> None:
        own = self.all_rows.own if isinstance(self.all_rows, ShardedRows) else self.all_rows
        mine = self._own_generator(rng)
        self.talk.each(lambda: refuse_nonsense(self.device, self.kernel, own, mine))

    def _own_generator(self, rng: np.random.Generator) -> np.random.Generator:
        """For what this rank does with its own rows; the common one must stay the same on all ranks."""
        return np.random.default_rng([int(rng.integers(2**62)), self.talk.rank])

    def partition(self, partitioner: Partitioner, n_blocks: int, rng: np.random.Generator) -> Partition:
        rows, rank = self.all_rows, self.talk.rank
        if not isinstance(rows, ShardedRows):
            return partitioner.partition(self.device, self.kernel, rows, n_blocks, rng, self._spread)
        mine = self._own_generator(rng)
        first, last = rows.starts[rank], rows.starts[rank + 1]
        own = partitioner.restricted(np.arange(first, last))
        share = max(1, round(n_blocks * (last - first) / len(rows)))
        parts = self.talk.together(lambda: own.partition(self.device, self.kernel, rows.own, share, mine))
        return Partition.joined(parts, rows.starts[:-1])

    def _spread(self, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """The work for every item, dealt out to the ranks. One rank's result is everyone's: what is close to a cut may
        fall to either side of it."""
        parts = self.talk.together(lambda: [work(item) for item in items[self.talk.rank :: self.size]])
        return [parts[number % self.size][number // self.size] for number in range(len(items))]

    def ordered(self, order: np.ndarray) -> RankCrew:
        rows = self.all_rows
        parts = self.device, self.kernel, self.talk
        if isinstance(rows, ShardedRows):
            return self.talk.each(lambda: RankCrew(*parts, rows.ordered(order), self.exchange))
        # The threads of a rank divide its work in pieces that are larger than those to be dealt out.
        alone = self.device.keeps_columns and self.device.n_threads == 1
        deals, largest = zip(*self.talk.share((alone, self.device.largest_given(rows.dtype))), strict=True)
        given = min(largest) if all(deals) and self.talk.has_common else 0
        # By number: a rank copies only the rows that it works on.
        return self.talk.each(
            lambda: RankCrew(*parts, rows, self.exchange, order, deals=all(deals), largest_given=given)
        )

    def restricted(self, rows: np.ndarray, before: Crew, support: np.ndarray, room: int) -> RankCrew:
        assert isinstance(before, RankCrew)
        numbers = self.numbers[rows]
        if before is self:
            shares = self._first_shares(numbers, room)
            draws = self._deal([])  # the pieces wait for the first product
        else:
            shares = before.shares.longer(_divided(self.all_rows, numbers[len(before.numbers) :], self.size))
            draws = self._deal(shares.pieces, shares.most - len(shares.rows[self.talk.rank]))
        old = before.samples
        parts = self.device, self.kernel, self.talk, self.all_rows, self.exchange
        made: list[RankCrew] = []

        def make() -> list[int]:
            crew = RankCrew(*parts, numbers, shares, self.deals, self.largest_given)
            crew._regions = before._regions
            made.append(crew)
            there = room, shares.most or int(len(crew.samples) * room / max(1, len(rows)))
            more = chain((crew.samples,), crew._growing(draws))
            self.device.extend(self.kernel, old, more, crew.rows, support, there)
            return draws.drawn

        drawn = self.talk.together(make)
        if before is not self:
            shares.settle(drawn)
        return made[0]

    def _first_shares(self, numbers: np.ndarray, room: int) -> Shares:
        """Dealt out, if all ranks work that way and have room for all columns."""
        count, most = len(numbers), Shares.most_of(len(numbers), room, self.size)
        if self.deals and all(self.talk.share(self.device.has_room(count, most, self.samples.dtype))):
            return Shares.dealt(count, self.size, most)
        return Shares(_divided(self.all_rows, numbers, self.size))

    # --------------------------------------------------------------------------------------------- an iteration

    def solve(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool,
        ahead: Ahead | None = None,
    ) -> list[BlockStep]:
        dealt = self.deals and not keep and len(blocks) > self.size
        order = range(len(blocks)) if rule.order is None else rule.order
        groups = ([order[place]] for place in self.talk.deal(len(blocks))) if dealt else self._assigned(blocks)
        bridge = len(blocks) == 1 and self.size > 1 and not keep
        matrix, columns = self._head_start(blocks[0]) if bridge else (None, None)
        if not (bridge and self._looks_ahead()):
            ahead = None

        def work() -> tuple[list[tuple[int, BlockStep]], Regions | None]:
            steps = list(
                chain.from_iterable(self._steps(problem, point, blocks, some, rule, keep, matrix) for some in groups)
            )
            if bridge and not self.shares.pieces:
                # Get ready for the product: most rows of a bridge will move. Also the rank that has solved it: where
                # all keep the same columns, it makes no difference to the last digit which of them has a row.
                self.device.prefetch(self.kernel, self.samples, self.rows, blocks[0], columns)
            return steps, None if ahead is None else ahead(self.rows)

        solved, regions = zip(*self.talk.together(work), strict=True)
        self._regions = next((found for found in regions if found is not None), None)
        found = dict(chain.from_iterable(solved))
        return [found[number] for number in range(len(blocks))]

    def _assigned(self, blocks: Sequence[np.ndarray]) -> list[list[int]]:
        """The numbers of the blocks that this rank solves, if there are any; their rows are here from now on."""
        rank = assigned(blocks, self._homes(blocks), self.talk.size)
        if isinstance(self.all_rows, ShardedRows):
            self._bring(self._travelling(blocks, rank))
        else:
            rank = self.shares.fastest()[rank]  # if all wait for one, it should be a fast one
        mine = np.flatnonzero(rank == self.talk.rank).tolist()
        return [mine] if mine else []

    def _looks_ahead(self) -> bool:
        """Whether this rank is the one that does so while another solves a bridge: the first that is not that other, so
        that others need not load what is compiled for it. Of sharded data it would not have the rows."""
        return not isinstance(self.all_rows, ShardedRows) and self.talk.rank == int(self.shares.fastest()[0] == 0)

    def _head_start(self, bridge: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """What the ranks of one machine compute for that one of them which solves a bridge, because all wait for it:
        the bridge's kernel matrix, and the columns with which the solver gets ready for the product. None of what the
        solver has to compute alone."""
        solver, size = self.shares.fastest()[0], len(bridge)
        if size > self.largest_given:
            return None, None
        missing, theirs = bridge[:0], self.shares.rows[solver]
        if self.shares.same_columns:
            missing = self.agree(self.device.missing(self.samples, bridge))
        if len(missing) * len(theirs) > self.largest_given**2:
            missing = bridge[:0]
        memory = self.talk.common((size * size + len(missing) * len(theirs),), self.samples.dtype)
        here = self.talk.beside(solver)
        if memory is None or self.talk.rank not in here:
            self.talk.each(lambda: None)
            return None, None
        matrix = memory[: size * size].reshape(size, size)
        columns = memory[size * size :].reshape(len(missing), len(theirs))
        place = here.index(self.talk.rank)

        def work() -> None:
            everyone, (first, last) = self.rows.take(bridge), even_parts(size, len(here))[place : place + 2]
            matrix[first:last] = self.device.gram(self.kernel, everyone.take(slice(first, last)), everyone)
            if len(missing):
                turns = (turn == place for turn in cycle(range(len(here))))
                samples, ends = self.rows.take(theirs), self.shares.ends[solver]
                self.device.column_values(self.kernel, samples, ends, self.rows.take(missing), turns, columns)

        self.talk.each(work)
        mine = self.talk.rank == solver and np.array_equal(self.device.missing(self.samples, bridge), missing)
        return matrix, columns if mine and len(missing) else None

    def _steps(
        self,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        numbers: Sequence[int],
        rule: BlockRule,
        keep: bool,
        matrix: np.ndarray | None,
    ) -> list[tuple[int, BlockStep]]:
        """The numbered blocks, solved here."""
        mine = [blocks[number] for number in numbers]
        rows = np.concatenate(mine)
        ends = np.cumsum([len(block) for block in mine])
        own = [np.arange(end - len(block), end) for block, end in zip(mine, ends, strict=True)]
        coef, decision = point
        here = np.ascontiguousarray(coef[:, rows]), np.ascontiguousarray(decision[:, rows])
        samples = self.rows.take(rows)
        own_rule = rule.take(numbers)
        steps = self.device.solve_blocks(self.kernel, samples, problem.take(rows), here, own, own_rule, keep, matrix)
        ready = [_for_sending(replace(step, rows=rows[step.rows]), rule.wishes) for step in steps]
        return list(zip(numbers, ready, strict=True))

    def _homes(self, blocks: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        if not isinstance(self.all_rows, ShardedRows):
            return None
        owners = (self.all_rows.owner(self.numbers[block]) for block in blocks)
        return [np.bincount(owner, minlength=self.talk.size) for owner in owners]

    def _travelling(self, blocks: Sequence[np.ndarray], rank: np.ndarray) -> np.ndarray:
        """Rows of blocks that are solved on another rank than theirs; of a bridge all of them, because the other ranks
        get ready for the product meanwhile."""
        assert isinstance(self.all_rows, ShardedRows)
        if len(blocks) == 1:
            return blocks[0]
        rows = [
            block[self.all_rows.owner(self.numbers[block]) != solver]
            for block, solver in zip(blocks, rank, strict=True)
        ]
        return np.concatenate(rows)

    def product(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        exchange = self.exchange
        if exchange == "auto":
            exchange = min(
                ("gather", "reduce"),
                key=lambda way: bytes_to_send(way, direction.size, len(self.numbers) * len(direction), self.size),
            )
        if exchange == "reduce":
            return self._reduced(rows, direction)
        self._bring(rows)
        draws = self._deal(self.shares.pieces, self.shares.room(self.talk.rank))

        def work() -> tuple[np.ndarray, list[int]]:
            more = self._growing(draws)
            return self.device.column_dot(self.kernel, self.samples, self.rows, rows, direction, more), draws.drawn

        values, drawn = zip(*self.talk.together(work), strict=True)
        self.shares.settle(drawn)
        return _joined(values, self.shares.rows, len(self.numbers))

    def _deal(self, pieces: Sequence[np.ndarray], room: float = np.inf) -> Draws:
        return Draws(self.talk.deal(len(pieces)) if pieces else iter(()), pieces, room)

    def _growing(self, draws: Draws) -> Iterator[Samples]:
        """The samples of this rank, with one more piece each time."""
        for _ in draws:
            own = with_drawn(self.shares.rows[self.talk.rank], self.shares.pieces, draws.drawn)
            self.samples = self.rows.take(own)
            yield self.samples

    def _reduced(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        n, outputs = len(self.numbers), len(direction)
        if self._everyone is None:
            self._everyone = self.rows.take(np.arange(n))
        everyone, mine = self._everyone, np.arange(self.talk.rank, len(rows), self.talk.size)
        part = self.talk.each(
            lambda: self.device.column_dot(self.kernel, everyone, self.rows, rows[mine], direction[:, mine])
        )
        starts = even_parts(n, self.talk.size)
        counts = (np.diff(starts) * outputs).tolist()
        sums = self.talk.add_up(np.ascontiguousarray(part.T), counts).reshape(-1, outputs).T
        stretches = [np.arange(first, last) for first, last in pairwise(starts)]
        return _joined(self.talk.share(sums), stretches, n)

    def decision(self, targets: np.ndarray, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        self._bring(rows)
        if self.deals:
            parts, pieces = pieces_of(len(targets), self.size, SEEN_SHARE)
        else:
            parts, pieces = _divided(self.all_rows, self.numbers[targets], self.size), []
        draws = self._deal(pieces)

        def work() -> tuple[np.ndarray, list[int]]:
            columns = self.rows.take(rows)
            own = [
                self.device.kernel_dot(self.kernel, self.rows.take(targets[part]), columns, coef)
                for part in chain((parts[self.talk.rank],), draws)
            ]
            return np.concatenate(own, axis=1), draws.drawn

        values, drawn = zip(*self.talk.together(work), strict=True)
        places = [with_drawn(part, pieces, numbers) for part, numbers in zip(parts, drawn, strict=True)]
        return _joined(values, places, len(targets))

    def regroup(
        self, partitioner: Partitioner, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        rows, n_blocks = self.agree((rows, n_blocks))
        regions, self._regions = self._regions, None
        if regions is not None and (blocks := regions.blocks(self.rows, rows, n_blocks, self._spread)) is not None:
            return blocks
        self._bring(rows)
        return partitioner.shared_regroup(self.device, self.kernel, self.rows, rows, n_blocks, rng, self._spread)


def bytes_to_send(exchange: str, changed: int, rows: int, ranks: int) -> int:
    """What all ranks together must contribute so that everyone knows `K d`: the cost rule of exchange="auto".

    Both exchanges end with everyone learning `K d`, one number a row, and need the changed coefficients, which every
    rank knows already because they are part of the common state. Reducing moves a partial sum for every row from
    every rank before that. So wherever there is more than one rank gathering sends less, and reducing is there for who
    asks for it, to compare with the paper.
    """
    known = 12 * changed + 8 * rows  # coefficients and their rows, then K d
    return known + (8 * rows * (ranks - 1) if exchange == "reduce" else 0)


def _joined(parts: Sequence[np.ndarray], places: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Values of shape (n_outputs, part), each in its places."""
    joined = np.empty((len(parts[0]), n))
    for place, values in zip(places, parts, strict=True):
        joined[:, place] = values
    return joined


def _divided(rows: Samples | ShardedRows, numbers: np.ndarray, ranks: int) -> list[np.ndarray]:
    """Which of the numbered rows each rank computes the products of: its own, or an even share."""
    if not isinstance(rows, ShardedRows):
        return interleaved(len(numbers), ranks)
    owner = rows.owner(numbers)
    return [np.flatnonzero(owner == rank) for rank in range(ranks)]


def _for_sending(step: BlockStep, wishes: bool) -> BlockStep:
    """Without what nobody will ask for."""
    if wishes:
        return replace(step, wish=step.wish.astype(np.float32))
    moved = np.flatnonzero(step.step.any(axis=0))
    return replace(step, rows=step.rows[moved], step=step.step[:, moved], wish=step.wish[:, :0])
