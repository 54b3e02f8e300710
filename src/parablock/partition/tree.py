"""Balanced tree: halve the rows along the line between two 2-means centres, and recurse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.compact import squared_norms, without_unused
from parablock.devices.base import Device, ReadableRows, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Centres, Partitioner, Spread

SAMPLE = 256  # rows that a node's two centres are found on
LLOYD_STEPS = 3
FEW_NODES, STRETCH = 8, 2048  # so few nodes are shared by the machines, in stretches of about so many rows
Node = tuple[np.ndarray, int]  # rows in ascending order, and how many leaves they will be
Cut = np.ndarray | list[Node]  # which rows go to the first half; or at once all leaves


class TreePartitioner(Partitioner):
    """Blocks of equal size (to one row), neighbours in space; costs a few passes over the data.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> model = KernelSVC(partition="tree", n_blocks=4, random_state=0).fit(X, y % 2)
    >>> print(model.partition_.report())  # doctest: +ELLIPSIS
    tree partition: 4 blocks of 50 to 50 rows (mean 50), ...% of the kernel's squared mass inside
    """

    method = "tree"

    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        if device.has_own_tree:
            return device.tree(samples, n_blocks, rng), None
        leaves: list[np.ndarray] = []
        nodes = [(np.arange(len(samples)), n_blocks)]
        while nodes:
            node = nodes.pop()
            if _is_leaf(node):
                leaves.append(node[0])
            else:
                nodes += reversed(_halves(node, self._cut(device, kernel, samples, node, rng)))
        return [leaf for leaf in leaves if len(leaf)], None

    def shared_blocks(
        self,
        device: Device,
        kernel: Kernel,
        samples: Samples,
        n_blocks: int,
        rng: np.random.Generator,
        spread: Spread,
    ) -> tuple[list[np.ndarray], Centres | None]:
        if device.has_own_tree:
            return super().shared_blocks(device, kernel, samples, n_blocks, rng, spread)
        return self._shared_leaves(device, kernel, samples, (np.arange(len(samples)), n_blocks), rng, spread), None

    def shared_regroup(
        self,
        device: Device,
        kernel: Kernel,
        samples: ReadableRows,
        rows: np.ndarray,
        n_blocks: int,
        rng: np.random.Generator,
        spread: Spread,
    ) -> list[np.ndarray]:
        if device.has_own_tree:
            return super().shared_regroup(device, kernel, samples, rows, n_blocks, rng, spread)
        return self._shared_leaves(device, kernel, samples, (rows, n_blocks), rng, spread)

    def _shared_leaves(
        self,
        device: Device,
        kernel: Kernel,
        samples: ReadableRows,
        root: Node,
        rng: np.random.Generator,
        spread: Spread,
    ) -> list[np.ndarray]:
        """Level by level, so that there are several nodes for the machines to share."""

        def cut(item: tuple[Node, int]) -> Cut:
            node, seed = item
            return self._cut(device, kernel, samples, node, np.random.default_rng(seed))

        nodes = [root]
        while inner := [node for node in nodes if not _is_leaf(node)]:
            seeds = rng.integers(2**62, size=len(inner)).tolist()
            shared = len(inner) < FEW_NODES and samples.at_hand
            items = list(zip(inner, seeds, strict=True))
            cuts = iter(_shared_cuts(samples, items, spread) if shared else spread(cut, items))
            nodes = [half for node in nodes for half in ([node] if _is_leaf(node) else _halves(node, next(cuts)))]
        return [node for node, _ in nodes if len(node)]

    def _cut(self, device: Device, kernel: Kernel, samples: ReadableRows, whole: Node, rng: np.random.Generator) -> Cut:
        """Along the line between two centres; all leaves at once, of a node whose rows are better read together."""
        node, parts = whole
        near = samples.nearby(node)
        if near is not None:
            inside, _ = self.blocks(device, kernel, near, parts, rng)
            return [(node[leaf], 1) for leaf in inside]
        return _cut_along(samples.project(node, _direction(samples, node, rng)), parts)


def _shared_cuts(samples: ReadableRows, nodes: Sequence[tuple[Node, int]], spread: Spread) -> list[Cut]:
    """The cuts of a few large nodes, each with its seed: every machine looks at stretches of them. It tells the others
    a number for each row, where of a node that it cuts alone it tells them a byte."""
    stretches = [np.array_split(rows, max(1, round(len(rows) / STRETCH))) for (rows, _), _ in nodes]

    @cache
    def direction(number: int) -> np.ndarray:
        (rows, _), seed = nodes[number]
        return _direction(samples, rows, np.random.default_rng(seed))

    def along(item: tuple[int, np.ndarray]) -> np.ndarray:
        number, rows = item
        return samples.project(rows, direction(number))

    found = iter(spread(along, [(number, rows) for number, parts in enumerate(stretches) for rows in parts]))
    places = [np.concatenate(list(islice(found, len(parts)))) for parts in stretches]
    return [_cut_along(place, leaves) for place, ((_, leaves), _) in zip(places, nodes, strict=True)]


def _cut_along(along: np.ndarray, leaves: int) -> np.ndarray:
    """Which rows of a node of so many leaves go to the first half, by their places along a line."""
    size = first_half(len(along), leaves)
    first = np.zeros(len(along), dtype=bool)
    first[np.argpartition(along, min(size, len(along) - 1))[:size]] = True
    return first


def _is_leaf(node: Node) -> bool:
    rows, parts = node
    return parts <= 1 or len(rows) <= 1


def _halves(node: Node, cut: Cut) -> list[Node]:
    if isinstance(cut, list):
        return cut
    rows, parts = node
    return [(rows[np.flatnonzero(cut)], parts // 2), (rows[np.flatnonzero(~cut)], parts - parts // 2)]


def first_half(size: int, parts: int) -> int:
    """How many rows of a node of so many leaves go to the first half of the leaves: every leaf gets as many."""
    return round(size * (parts // 2) / parts)


def _direction(samples: ReadableRows, node: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """From one centre to the other of two, by a few steps of 2-means on a sample of the node's rows."""
    points = samples.features(node if len(node) <= SAMPLE else rng.choice(node, size=SAMPLE, replace=False))
    if not sp.issparse(points) or points.nnz >= points.shape[1]:
        return _between_centres(points, rng)
    narrow, used = without_unused(points)
    direction = np.zeros(points.shape[1], dtype=points.dtype)
    direction[used] = _between_centres(narrow, rng)
    return direction


def _between_centres(points: Any, rng: np.random.Generator) -> np.ndarray:
    first = _row(points, int(rng.integers(points.shape[0])))
    second = _row(points, int(np.argmin(points @ first - 0.5 * squared_norms(points))))  # the farthest from the first
    total = np.asarray(points.sum(axis=0)).ravel()
    for _ in range(LLOYD_STEPS):
        side = points @ (first - second) > 0.5 * (first @ first - second @ second)
        count = int(side.sum())
        if count in (0, len(side)):
            break
        own = side.astype(points.dtype) @ points
        first, second = own / count, (total - own) / (len(side) - count)
    return first - second


def _row(points: Any, number: int) -> np.ndarray:
    return points[number].toarray().ravel() if sp.issparse(points) else points[number]
