"""Balanced tree: halve the rows along the line between two 2-means centres, and recurse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice

import numpy as np
import scipy.sparse as sp

from parablock.compact import squared_norms, without_unused
from parablock.devices.base import Device, ReadableRows, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Centres, Partitioner, Spread
from parablock.partition.regions import LLOYD_STEPS, SAMPLE, Regions, between_two_centres

FEW_NODES, STRETCH = 8, 2048  # so few nodes are shared by the machines, in stretches of about so many rows
WHOLE = 10_000  # rows of a node that one machine cuts into all its leaves: sooner than a message a level would be sent
Node = tuple[np.ndarray, int]  # rows in ascending order, and how many leaves they will be
Cut = np.ndarray  # which rows of a node go to its first half (bool), or to which of all its leaves (unsigned)


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
        return _leaves(samples, (np.arange(len(samples)), n_blocks), rng), None

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
        return _shared_leaves(samples, (np.arange(len(samples)), n_blocks), rng, spread), None

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
        return _shared_leaves(samples, (rows, n_blocks), rng, spread)

    def regions(
        self, device: Device, samples: ReadableRows, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> Regions | None:
        return None if device.has_own_tree else Regions.of(samples, rows, n_blocks, rng)


def _leaves(samples: ReadableRows, root: Node, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of every leaf below a node."""
    leaves: list[np.ndarray] = []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if _is_leaf(node):
            leaves.append(node[0])
        elif (near := samples.nearby(node[0])) is not None:
            leaves += [node[0][leaf] for leaf in _leaves(near, (np.arange(len(near)), node[1]), rng)]
        else:
            nodes += reversed(_children(node, _halved(samples, node, rng)))
    return [leaf for leaf in leaves if len(leaf)]


def _shared_leaves(samples: ReadableRows, root: Node, rng: np.random.Generator, spread: Spread) -> list[np.ndarray]:
    """The same on several machines: level by level, as long as nodes are large. The first few are shared by all
    machines, later ones are cut by one each."""

    def cut(item: tuple[Node, int]) -> Cut:
        (rows, parts), seed = item
        own = np.random.default_rng(seed)
        near = samples.take(rows) if len(rows) <= WHOLE else samples.nearby(rows)
        if near is None:
            return _halved(samples, (rows, parts), own)
        numbers = np.empty(len(rows), dtype=np.min_scalar_type(parts))
        for number, leaf in enumerate(_leaves(near, (np.arange(len(rows)), parts), own)):
            numbers[leaf] = number
        return numbers

    nodes = [root]
    while inner := [node for node in nodes if not _is_leaf(node)]:
        items = list(zip(inner, rng.integers(2**62, size=len(inner)).tolist(), strict=True))
        large = max(len(rows) for rows, _ in inner) > WHOLE
        shared = large and len(inner) < FEW_NODES and samples.at_hand
        cuts = iter(_shared_cuts(samples, items, spread) if shared else spread(cut, items))
        nodes = [child for node in nodes for child in ([node] if _is_leaf(node) else _children(node, next(cuts)))]
    return [rows for rows, _ in nodes if len(rows)]


def _shared_cuts(samples: ReadableRows, nodes: Sequence[tuple[Node, int]], spread: Spread) -> list[Cut]:
    """The cuts of a few large nodes, each with its seed: every machine looks at stretches of them. It tells the others
    a number for each row, where of a node that it cuts alone it tells them a byte or two."""
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


def _halved(samples: ReadableRows, node: Node, rng: np.random.Generator) -> Cut:
    """The cut of a node along the line between two centres."""
    rows, parts = node
    return _cut_along(samples.project(rows, _direction(samples, rows, rng)), parts)


def _cut_along(along: np.ndarray, leaves: int) -> np.ndarray:
    """Which rows of a node of so many leaves go to the first half, by their places along a line."""
    size = first_half(len(along), leaves)
    first = np.zeros(len(along), dtype=bool)
    first[np.argpartition(along, min(size, len(along) - 1))[:size]] = True
    return first


def _is_leaf(node: Node) -> bool:
    rows, parts = node
    return parts <= 1 or len(rows) <= 1


def _children(node: Node, cut: Cut) -> list[Node]:
    rows, parts = node
    if cut.dtype == bool:
        return [(rows[np.flatnonzero(cut)], parts // 2), (rows[np.flatnonzero(~cut)], parts - parts // 2)]
    ends = np.cumsum(np.bincount(cut))
    return [(leaf, 1) for leaf in np.split(rows[np.argsort(cut, kind="stable")], ends[:-1])]


def first_half(size: int, parts: int) -> int:
    """How many rows of a node of so many leaves go to the first half of the leaves: every leaf gets as many."""
    return round(size * (parts // 2) / parts)


def _direction(samples: ReadableRows, node: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """From one centre to the other of two, by a few steps of 2-means on a sample of the node's rows."""
    points = samples.features(node if len(node) <= SAMPLE else rng.choice(node, size=SAMPLE, replace=False))
    draw = int(rng.integers(points.shape[0]))
    if not sp.issparse(points):
        return between_two_centres(np.ascontiguousarray(points), np.arange(len(points)), draw)
    if points.nnz >= points.shape[1]:
        return _between_sparse_centres(points, draw)
    narrow, used = without_unused(points)
    direction = np.zeros(points.shape[1], dtype=points.dtype)
    direction[used] = _between_sparse_centres(narrow, draw)
    return direction


def _between_sparse_centres(points: sp.csr_matrix, draw: int) -> np.ndarray:
    first = points[draw].toarray().ravel()
    farthest = int(np.argmin(points @ first - 0.5 * squared_norms(points)))
    second = points[farthest].toarray().ravel()
    total = np.asarray(points.sum(axis=0)).ravel()
    for _ in range(LLOYD_STEPS):
        side = points @ (first - second) > 0.5 * (first @ first - second @ second)
        count = int(side.sum())
        if count in (0, len(side)):
            break
        own = side.astype(points.dtype) @ points
        first, second = own / count, (total - own) / (len(side) - count)
    return first - second
