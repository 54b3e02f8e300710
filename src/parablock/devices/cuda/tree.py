"""The balanced tree of `parablock.partition.tree` on the card, all nodes of a level at once."""

from __future__ import annotations

import numpy as np
import torch

from parablock.partition.regions import LLOYD_STEPS, SAMPLE
from parablock.partition.tree import first_half

_ELEMENTS_AT_ONCE = 1 << 28  # of rows that are projected: a bound on memory


def tree(X: torch.Tensor, n_blocks: int, rng: np.random.Generator) -> list[torch.Tensor]:
    """Disjoint blocks of neighbours among the rows of X, of equal size to one row; each sorted."""
    order = torch.arange(len(X), device=X.device)  # the rows, node after node
    sizes, parts = np.array([len(X)]), np.array([n_blocks])
    while True:
        wanted = (parts > 1) & (sizes > 1)
        if not wanted.any():
            break
        starts = np.cumsum(sizes) - sizes
        direction = torch.zeros((len(sizes), X.shape[1]), device=X.device)
        chosen = np.flatnonzero(wanted)
        places = starts[chosen, None] + (rng.random((len(chosen), SAMPLE)) * sizes[chosen, None]).astype(np.int64)
        points = X[order[torch.as_tensor(places, device=X.device)]]
        direction[torch.as_tensor(chosen, device=X.device)] = _directions(points)
        node = _numbers(sizes, X.device)
        along = _along(X, order, node, direction).double()
        # By node, and inside a node along its direction; a node that is not cut has the direction zero, and stays.
        order = order[torch.argsort(node + 0.5 * along / along.abs().max().clamp(min=1e-300), stable=True)]
        sizes, parts = _halved(sizes, parts, wanted)
    leaf = _numbers(sizes, X.device)
    rows = (leaf * len(X) + order).sort().values - leaf * len(X)  # each leaf in itself
    return list(torch.split(rows, sizes.tolist()))


def _numbers(sizes: np.ndarray, device: torch.device) -> torch.Tensor:
    """The node of every place."""
    nodes = torch.arange(len(sizes), device=device)
    return torch.repeat_interleave(nodes, torch.as_tensor(sizes, device=device), output_size=int(sizes.sum()))


def _directions(points: torch.Tensor) -> torch.Tensor:
    """Of each node, from one centre to the other of two, by 2-means on its points (nodes, sample, features)."""
    first = points[:, 0]
    farthest = (points - first[:, None]).square().sum(dim=2).argmax(dim=1)
    second = points[torch.arange(len(points), device=points.device), farthest]
    total = points.sum(dim=1)
    for _ in range(LLOYD_STEPS):
        middle = 0.5 * (first.square().sum(dim=1) - second.square().sum(dim=1))
        side = torch.einsum("nsf,nf->ns", points, first - second) > middle[:, None]
        count = side.sum(dim=1, keepdim=True)
        own = torch.einsum("ns,nsf->nf", side.to(points.dtype), points)
        both = (count > 0) & (count < points.shape[1])
        first = torch.where(both, own / count.clamp(min=1), first)
        second = torch.where(both, (total - own) / (points.shape[1] - count).clamp(min=1), second)
    return first - second


def _along(X: torch.Tensor, order: torch.Tensor, node: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Where each row lies along the direction of its node."""
    step = max(1, _ELEMENTS_AT_ONCE // X.shape[1])
    parts = [
        (X[order[start : start + step]] * direction[node[start : start + step]]).sum(dim=1)
        for start in range(0, len(order), step)
    ]
    return torch.cat(parts)


def _halved(sizes: np.ndarray, parts: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cut = np.array([first_half(size, count) for size, count in zip(sizes.tolist(), parts.tolist(), strict=True)])
    new_sizes = np.stack((np.where(wanted, cut, sizes), np.where(wanted, sizes - cut, 0)), axis=1)
    new_parts = np.stack((np.where(wanted, parts // 2, parts), np.where(wanted, parts - parts // 2, 0)), axis=1)
    kept = new_sizes.ravel() > 0
    return new_sizes.ravel()[kept], new_parts.ravel()[kept]
