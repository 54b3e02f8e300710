"""The balanced tree of `parablock.partition.tree` for CSR rows on the card.

A centre of two is a mean of sampled rows, so it is never written down feature by feature: with the inner products of
the sample, 2-means needs only how much of each sampled row is in a centre, and where a row lies between the two centres
is a product with the sampled rows.
"""

from __future__ import annotations

import numpy as np
import torch

from parablock.devices.cuda.sparse import INNER_PRODUCT, SparseOperand, gram, kernel_dot
from parablock.partition.regions import LLOYD_STEPS, SAMPLE
from parablock.partition.tree import first_half


def tree(rows: SparseOperand, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Disjoint blocks of neighbours among the rows, of equal size to one row; each sorted."""
    leaves: list[np.ndarray] = []
    nodes = [(np.arange(len(rows)), n_blocks)]
    while nodes:
        node, parts = nodes.pop()
        if parts <= 1 or len(node) <= 1:
            leaves.append(np.sort(node))
            continue
        order = torch.argsort(_along(rows.take(node), rng), stable=True).cpu().numpy()
        cut = first_half(len(node), parts)
        nodes.append((node[order[cut:]], parts - parts // 2))
        nodes.append((node[order[:cut]], parts // 2))
    return [leaf for leaf in leaves if len(leaf)]


def _along(rows: SparseOperand, rng: np.random.Generator) -> torch.Tensor:
    """Where each row lies along the line between two centres."""
    sample = rows.take(rng.choice(len(rows), size=min(len(rows), SAMPLE), replace=False))
    products = gram(INNER_PRODUCT, sample, sample).double().cpu().numpy()
    weights = torch.as_tensor(_between(products)[None, :], device=rows.device)
    return kernel_dot(INNER_PRODUCT, rows, sample, weights)[0]


def _between(products: np.ndarray) -> np.ndarray:
    """From one centre to the other, as a sum of the sampled rows: how much of each."""
    size = len(products)
    farthest = int(np.argmin(products[0] - 0.5 * np.diagonal(products)))
    first, second = np.eye(size)[0], np.eye(size)[farthest]
    for _ in range(LLOYD_STEPS):
        side = products @ (first - second) > 0.5 * (first @ products @ first - second @ products @ second)
        count = int(side.sum())
        if count in (0, size):
            break
        first, second = side / count, ~side / (size - count)
    return first - second
