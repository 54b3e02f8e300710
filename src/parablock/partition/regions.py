"""Regions of space that rows can be sorted into: blocks for rows that are not known yet.

While one machine solves a bridge and the others wait for it, one of these grows a tree on a sample of the rows that can
move now. The next blocks are cut by that tree: every machine looks into which leaves some of the rows fall, and tells
the others. That is one message, where a tree that is cut exactly takes one for every level, and blocks of equal size
but for the luck of the sample and for rows that have come and gone since.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parablock.compiling import njit
from parablock.devices.base import ReadableRows
from parablock.partition.base import Spread

OF_A_LEAF, VALUES = 256, 2**21  # rows of the sample, and the most values in all: wide rows take longer
STRETCH = 1024  # rows that one machine looks at
UNEVEN = 1.5  # times the mean size that no block may exceed: many equal rows all fall into one leaf
APART = 1.5  # times as many regions as blocks, or blocks as regions, are too many
SAMPLE, LLOYD_STEPS = 256, 3  # rows that a node's two centres are found on, and steps of 2-means
_LOOP: dict[str, Any] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}


class Regions(NamedTuple):
    """The leaves of a tree. Points whose product with a node's direction is below its threshold belong to its first
    child, others to its second; children that are leaves have negative numbers, -1 for leaf 0."""

    direction: np.ndarray  # of shape (nodes, features)
    threshold: np.ndarray
    child: np.ndarray  # of shape (nodes, 2)

    @classmethod
    def of(cls, samples: ReadableRows, rows: np.ndarray, count: int, rng: np.random.Generator) -> Regions | None:
        """So many, with about as many of the rows in each; None of rows that are not dense, too few, or too wide."""
        size = min(len(rows), OF_A_LEAF * count, VALUES // samples.features(rows[:1]).shape[1])
        if count < 2 or size < 2 * count:
            return None
        points = samples.features(np.sort(rng.choice(rows, size=size, replace=False)))
        if not isinstance(points, np.ndarray):
            return None
        return cls(*_grown(np.ascontiguousarray(points), count, rng.integers(2**62, size=count)))

    def blocks(self, samples: ReadableRows, rows: np.ndarray, n_blocks: int, spread: Spread) -> list[np.ndarray] | None:
        """The rows of each region, without empty ones; None if that would be other numbers of blocks than are wanted by
        now, or blocks that are too uneven."""
        count = len(self.threshold) + 1
        if max(count, n_blocks) > APART * min(count, n_blocks):
            return None
        kind = np.min_scalar_type(count)

        def look(stretch: np.ndarray) -> np.ndarray:
            return _leaves(np.ascontiguousarray(samples.features(stretch)), *self).astype(kind)

        leaf = np.concatenate(spread(look, np.array_split(rows, -(-len(rows) // STRETCH))))
        sizes = np.bincount(leaf, minlength=count)
        if sizes.max() > UNEVEN * len(rows) / count:
            return None
        blocks = np.split(rows[np.argsort(leaf, kind="stable")], np.cumsum(sizes)[:-1])
        return [block for block in blocks if len(block)]


@njit(**_LOOP)
def _grown(points: Any, leaves: int, draws: Any) -> Any:
    """Directions, thresholds and children of a tree to each of whose leaves an equal share of the points belongs."""
    nodes, features = leaves - 1, points.shape[1]
    direction, threshold = np.zeros((nodes, features), points.dtype), np.zeros(nodes, points.dtype)
    child = np.empty((nodes, 2), np.int64)
    order, along = np.arange(len(points)), np.empty(len(points), points.dtype)
    # What is still to be cut: a stretch of `order`, for the leaves from one number to before another; and which place
    # in `child` is to know of it.
    waiting = [(0, len(points), 0, leaves, 0, 0)]
    node = 0
    while len(waiting) > 0:
        begin, end, first, last, parent, side = waiting.pop()
        if node > 0:
            child[parent, side] = node if last - first > 1 else -1 - first
        if last - first == 1:
            continue
        own, half = order[begin:end], (last - first) // 2
        direction[node] = between_two_centres(points, own, draws[node])
        for i in range(len(own)):
            along[i] = _product(points[own[i]], direction[node])
        if len(own) > 0:
            place = len(own) * half // (last - first)
            threshold[node] = np.partition(along[: len(own)], place)[place]
        middle = begin + _put_first(own, along, threshold[node])
        waiting.append((middle, end, first + half, last, node, 1))
        waiting.append((begin, middle, first, first + half, node, 0))
        node += 1
    return direction, threshold, child


@njit(**_LOOP)
def _product(one: Any, other: Any) -> Any:
    total = one.dtype.type(0)
    for f in range(len(one)):
        total += one[f] * other[f]
    return total


@njit(**_LOOP)
def _put_first(own: Any, along: Any, threshold: float) -> int:
    """Those below the threshold before the others; how many they are."""
    count, others = 0, np.empty_like(own)
    for i in range(len(own)):
        if along[i] < threshold:
            own[count] = own[i]
            count += 1
        else:
            others[i - count] = own[i]
    own[count:] = others[: len(own) - count]
    return count


@njit(**_LOOP)
def between_two_centres(points: Any, own: Any, draw: int) -> Any:
    """From one centre to the other of two, by a few steps of 2-means on some of the own points."""
    if len(own) < 2:
        return np.zeros(points.shape[1], points.dtype)
    some = own[:: -(-len(own) // SAMPLE)]
    start, second, farthest = points[some[draw % len(some)]], some[0], points.dtype.type(-1)
    for i in some:
        difference = points[i] - start
        distance = _product(difference, difference)
        if distance > farthest:
            farthest, second = distance, i
    direction, middle = start - points[second], (start + points[second]) / 2
    sums = np.empty((2, points.shape[1]), points.dtype)
    for _ in range(LLOYD_STEPS):
        offset, counts = _product(direction, middle), np.zeros(2, points.dtype)
        sums[:] = 0
        for i in some:
            side = 0 if _product(points[i], direction) > offset else 1
            counts[side] += 1
            for f in range(points.shape[1]):
                sums[side, f] += points[i, f]
        if counts.min() == 0:
            break
        one, other = sums[0] / counts[0], sums[1] / counts[1]
        direction, middle = one - other, (one + other) / 2
    return direction


@njit(**_LOOP)
def _leaves(points: Any, direction: Any, threshold: Any, child: Any) -> Any:
    """The leaf of every point."""
    leaf = np.empty(len(points), np.int64)
    for i in range(len(points)):
        node = 0
        while node >= 0:
            node = child[node, 0 if _product(points[i], direction[node]) < threshold[node] else 1]
        leaf[i] = -1 - node
    return leaf
