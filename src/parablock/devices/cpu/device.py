"""The CPU: BLAS for inner products, Numba for everything else, one thread a core.

Each tile and each block is the work of one thread, with BLAS held to one thread (`threads.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from math import isqrt
from typing import Any, TypeVar

import numpy as np

from parablock.devices.base import BlockRule, BlockStep, Device, Rows, Samples, in_turn
from parablock.devices.cpu.blocks import solve_block
from parablock.devices.cpu.columns import AT_ONCE, Columns
from parablock.devices.cpu.kernel_system import KernelSystem
from parablock.devices.cpu.samples import CpuSamples, GivenSamples, make_samples, narrow, used_features
from parablock.devices.cpu.store import Chunk, ColumnStore
from parablock.devices.cpu.stored import stored_samples
from parablock.devices.cpu.threads import limited_threads, thread_count
from parablock.devices.cpu.tiles import TILE_ROWS, TileMaker, panels, row_tiles, tiles
from parablock.devices.memory import bytes_for_rows, memory_bytes
from parablock.kernels import Kernel
from parablock.mapped import is_mapped
from parablock.problem import Problem

T = TypeVar("T")
_CHUNK_ROWS = 2048  # the most rows that one task of a kernel product takes
_TASKS_A_THREAD = 8  # at least, so that none of them waits long for the last
_LARGER_BLOCKS = 4  # a bridge's matrix is so much larger than that of a first block


class CpuDevice(Device):
    name = "cpu"

    def __init__(self, n_jobs: int | None, memory_limit: Any = None, sharers: int = 1, place: int = 0) -> None:
        self.n_threads = thread_count(n_jobs)
        self.memory_limit = memory_bytes(memory_limit) // (sharers if memory_limit is None else 1)
        self.kernel_evaluations = 0
        self._pool: ThreadPoolExecutor | None = None
        self._kept: dict[int, Columns] = {}
        self._store: ColumnStore | None = None
        self._for_blocks = 0  # bytes that are set aside for block matrices

    @contextmanager
    def session(self) -> Iterator[CpuDevice]:
        with limited_threads(openmp=self.n_threads):
            self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None
            try:
                yield self
            finally:
                if self._pool is not None:
                    self._pool.shutdown(cancel_futures=True)
                    self._pool = None
                self._kept.clear()
                self._store = None

    def samples(self, X: Any, kernel: Kernel, centre: np.ndarray | None = None) -> CpuSamples:
        if is_mapped(X) and kernel.overlap != "given":  # which reads from its matrix what it needs anyway
            return stored_samples(X, kernel, centre, bytes_for_rows(self.memory_limit))
        return make_samples(X, kernel, centre)

    def given_columns(self, numbers: np.ndarray, dtype: Any) -> CpuSamples:
        return GivenSamples.columns_only(numbers, dtype)

    def gram(self, kernel: Kernel, rows: Samples, columns: Samples) -> np.ndarray:
        assert isinstance(rows, CpuSamples) and isinstance(columns, CpuSamples)
        out = np.empty((len(rows), len(columns)), dtype=rows.dtype)
        for start, stop, first, last, tile in tiles(kernel, rows, columns):
            out[start:stop, first:last] = tile
        self.kernel_evaluations += out.size
        return out

    def system(self, kernel: Kernel, samples: Samples) -> KernelSystem:
        """The kernel matrix of all samples, to solve linear systems with."""
        assert isinstance(samples, CpuSamples)
        system = KernelSystem(kernel, samples, self.map)
        self.kernel_evaluations += system.kernel_evaluations
        return system

    def largest_given(self, dtype: Any) -> int:
        return min(AT_ONCE, isqrt(self.memory_limit // (2 * np.dtype(dtype).itemsize)))

    def kernel_dot(self, kernel: Kernel, rows: Samples, columns: Samples, coef: np.ndarray) -> np.ndarray:
        assert isinstance(rows, CpuSamples) and isinstance(columns, CpuSamples)
        order = rows.reading_order
        if order is not None:
            out = np.empty((coef.shape[0], len(rows)))
            out[:, order] = self.kernel_dot(kernel, rows.take(order), columns, coef)
            return out
        features = used_features(columns)
        rows, columns = narrow(rows, features), narrow(columns, features)
        weights = np.ascontiguousarray(coef.T, dtype=rows.dtype)
        out = np.zeros((len(rows), coef.shape[0]))
        ready: list[tuple[int, int, Any]] = []

        size = _stretch(len(rows) // (_TASKS_A_THREAD * self.n_threads), TILE_ROWS, _CHUNK_ROWS)

        def chunk(start: int) -> None:
            maker = TileMaker(kernel, rows, columns)
            for top, bottom in row_tiles(start, min(start + size, len(rows))):
                for first, last, panel in ready:
                    out[top:bottom] += maker.tile(top, bottom, first, last, panel) @ weights[first:last]

        for panel in panels(columns):
            ready.append(panel)
            if len(ready) == columns.panels_at_once or panel[1] == len(columns):
                self.map(chunk, range(0, len(rows), size))
                ready.clear()
        self.kernel_evaluations += len(rows) * len(columns)
        return np.ascontiguousarray(out.T)

    def column_dot(
        self,
        kernel: Kernel,
        samples: Samples,
        sources: Rows,
        rows: np.ndarray,
        coef: np.ndarray,
        more: Iterable[Samples] = (),
    ) -> np.ndarray:
        assert isinstance(samples, CpuSamples)
        if isinstance(samples, GivenSamples):  # is its own store
            return self.forgetful_dot(kernel, samples, sources.take(rows), coef, more)
        store = self._store_of(kernel, samples, sources)

        def dot(kept: np.ndarray, fresh: np.ndarray, growing: Iterable[tuple[int, Samples]]) -> np.ndarray:
            """Of columns that are kept, by their positions in `rows`, and of those that are to be from now on."""
            places, place, unknown = store.slot[rows[kept]], store.used - len(fresh), sources.take(rows[fresh])
            known, new = coef[:, kept], coef[:, fresh]

            def of(start: int, samples: Samples) -> np.ndarray:
                assert isinstance(samples, CpuSamples)
                if samples is not store.samples:
                    store.watch(samples)
                out, columns = np.zeros((len(coef), len(samples))), store.narrowed(unknown)

                def chunk(pieces: Chunk) -> None:
                    store.dot(places, known, pieces[0][0], pieces[-1][1], out)
                    for first, last in pieces:
                        store.fill(columns, place, first, last, new, out)

                self._for_chunks(store, chunk, start)
                self.kernel_evaluations += (len(samples) - start) * len(fresh)
                return out[:, start:]

            return np.concatenate([of(start, longer) for start, longer in growing], axis=1)

        kept, fresh, homeless = store.plan(rows, sources)
        out = dot(kept, fresh, in_turn(samples, more))
        while len(homeless) and len(fresh):  # columns that are mostly zero leave room for others
            _, fresh, left = store.plan(rows[homeless], sources)
            out += dot(fresh[:0], homeless[fresh], [(0, store.samples)])
            homeless = homeless[left]
        unkept = sources.take(rows[homeless])
        for first, last in store.stretches() if len(unkept) else ():
            some = store.samples.take(slice(first, last))
            out[:, first:last] += self.kernel_dot(kernel, some, unkept, coef[:, homeless])
        return out

    def prefetch(
        self, kernel: Kernel, samples: Samples, sources: Rows, rows: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        assert isinstance(samples, CpuSamples)
        if isinstance(samples, GivenSamples):
            return
        store = self._store_of(kernel, samples, sources)
        _, fresh, _ = store.plan(rows, sources)
        if values is not None:
            store.put(values[: len(fresh)], store.used - len(fresh))
            return
        columns, place = store.narrowed(sources.take(rows[fresh])), store.used - len(fresh)

        def chunk(pieces: Chunk) -> None:
            for first, last in pieces:
                store.fill(columns, place, first, last)

        self._for_chunks(store, chunk)
        self.kernel_evaluations += len(samples) * len(fresh)

    def missing(self, samples: Samples, rows: np.ndarray) -> np.ndarray:
        if isinstance(samples, GivenSamples):
            return rows[:0]
        store = self._store
        return rows if store is None or store.samples is not samples else rows[~store.holds(rows)]

    def column_values(
        self,
        kernel: Kernel,
        samples: Samples,
        ends: Sequence[int],
        columns: Samples,
        turns: Iterator[bool],
        out: np.ndarray,
    ) -> None:
        assert isinstance(samples, CpuSamples) and isinstance(columns, CpuSamples)
        features = used_features(samples)
        samples, columns = narrow(samples, features), narrow(columns, features)
        for begin, end in pairwise((0, *ends)):
            for start, stop, first, last, tile in tiles(kernel, columns, samples.take(slice(begin, end)), turns):
                out[start:stop, begin + first : begin + last] = tile
                self.kernel_evaluations += tile.size

    def extend(
        self,
        kernel: Kernel,
        samples: Samples,
        more: Iterable[Samples],
        sources: Rows,
        useful: np.ndarray,
        room: tuple[int, int],
    ) -> None:
        columns: Samples | None = None
        for longer in more:
            assert isinstance(longer, CpuSamples)
            store = self._store
            if store is None or store.samples is not samples or len(longer) > store.length:
                self._store = self._new_store(kernel, longer, *room)
            else:
                if columns is None:
                    store.keep_only(useful)
                    columns = sources.take(store.rows())
                store.extend(longer, columns, self.map)
                self.kernel_evaluations += store.used * (len(longer) - len(samples))
            samples = longer

    def has_room(self, columns: int, samples: int, dtype: Any) -> bool:
        return columns * samples * np.dtype(dtype).itemsize <= self._room_for_columns()

    def solve_blocks(
        self,
        kernel: Kernel,
        samples: Samples,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool = False,
        matrix: np.ndarray | None = None,
    ) -> list[BlockStep]:
        assert isinstance(samples, CpuSamples)
        bytes_a_row = [len(rows) * samples.dtype.itemsize for rows in blocks]
        matrices = [size * len(rows) for size, rows in zip(bytes_a_row, blocks, strict=True)]
        room = self.memory_limit // 2  # the other half, at least, is the store's
        keep = keep and sum(matrices) + samples.bytes_on_disk <= room  # every block keeps its rows too
        largest = self.n_threads * _LARGER_BLOCKS * max(matrices)
        self._for_blocks = max(self._for_blocks, min(room, sum(matrices) if keep else largest))
        share = room if keep else room // min(self.n_threads, len(blocks))

        store = self._store if self._store is not None and self._store.samples is samples else None
        few = len(blocks) < self.n_threads  # then threads share the work on a block's matrix

        def columns_of(number: int) -> Columns:
            columns = self._kept.get(number) if keep else None
            if columns is None:
                capacity = share // max(1, bytes_a_row[number])
                columns = Columns(samples, blocks[number], kernel, capacity, store, matrix)
                columns.fill(self.map if few else _one_by_one)
                if keep:
                    self._kept[number] = columns
            return columns

        ready = [columns_of(number) for number in range(len(blocks))] if few else None

        def solve(number: int) -> tuple[BlockStep, int]:
            rows, columns = blocks[number], columns_of(number) if ready is None else ready[number]
            step, wish = np.zeros((problem.n_outputs, len(rows))), np.full((problem.n_outputs, len(rows)), np.nan)
            bias, updates = np.full(problem.n_outputs, np.nan), 0
            for output in rule.outputs_of(number):
                coef, wish[output], bias[output], made = solve_block(problem, output, point, rows, columns, rule)
                step[output] = coef - point[0][output, rows]
                updates += made
            return BlockStep(rows, step, wish, bias, updates), columns.count()

        order = range(len(blocks)) if rule.order is None else rule.order
        solved = dict(zip(order, self.map(solve, order), strict=True))
        self.kernel_evaluations += sum(evaluations for _, evaluations in solved.values())
        return [solved[number][0] for number in range(len(blocks))]

    def _store_of(self, kernel: Kernel, samples: CpuSamples, sources: Rows) -> ColumnStore:
        if self._store is None or self._store.samples is not samples:
            self._store = self._new_store(kernel, samples, len(sources), len(samples))
        return self._store

    def _new_store(self, kernel: Kernel, samples: CpuSamples, most: int, length: int) -> ColumnStore:
        self._store = None  # gives its memory back first
        return ColumnStore(samples, kernel, most, self._room_for_columns(), length)

    def _room_for_columns(self) -> int:
        return self.memory_limit - (self._for_blocks or self.memory_limit // 2)

    def _for_chunks(self, store: ColumnStore, work: Callable[[Chunk], None], start: int = 0) -> None:
        """Call the work with all samples of the store from start on, many at a time: kept columns are read from memory,
        which is faster in long stretches."""
        size = _stretch(len(store.samples) // (2 * self.n_threads), _CHUNK_ROWS, 8 * _CHUNK_ROWS)
        chunks = store.chunks(size, start)
        self.map(lambda number: work(chunks[number]), range(len(chunks)))

    def map(self, work: Callable[[int], T], items: Iterable[int]) -> list[T]:
        if self._pool is None:
            return super().map(work, items)
        futures = [self._pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _stretch(length: int, least: int, most: int) -> int:
    """A multiple of the least that is about as long: so tiles are the same ones however many threads there are, and
    with them the last digits of every sum."""
    return min(most, max(1, -(-length // least)) * least)


def _one_by_one(work: Callable[[int], T], items: Iterable[int]) -> list[T]:
    return [work(item) for item in items]
