"""Partitions of the rows into blocks (paper, section 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.partition.base import Centres, Partition, Partitioner
from parablock.partition.kernel_kmeans import KernelKMeansPartitioner
from parablock.partition.kmeans import KMeansPartitioner
from parablock.partition.simple import GivenPartitioner, RandomPartitioner
from parablock.partition.tree import TreePartitioner

PARTITIONERS: dict[str, type[Partitioner]] = {
    "tree": TreePartitioner,
    "kmeans": KMeansPartitioner,
    "kernel_kmeans": KernelKMeansPartitioner,
    "random": RandomPartitioner,
}


def make_partitioner(partition: Any, n: int) -> Partitioner:
    """The partitioner of the given name, or the one that holds the given labels.

    Parameters
    ----------
    partition : str, array of shape (n,) or Partitioner
        A name of `PARTITIONERS`, or the block of every row; a partitioner is given back as it is.
    n : int
        Number of rows.

    Returns
    -------
    Partitioner

    Examples
    --------
    >>> from parablock.partition import make_partitioner
    >>> make_partitioner("tree", 100).method, make_partitioner([0, 0, 1], 3).method
    ('tree', 'given')
    """
    if isinstance(partition, Partitioner):
        return partition
    if isinstance(partition, str):
        if partition not in PARTITIONERS:
            raise ValueError(
                f"Unknown partition {partition!r}: use one of {sorted(PARTITIONERS)}, or an array with the block "
                "of every row."
            )
        return PARTITIONERS[partition]()
    labels = np.asarray(partition)
    if labels.shape != (n,):
        raise ValueError(
            f"partition must be one of {sorted(PARTITIONERS)} or hold one block label a row, so have shape ({n},); "
            f"got shape {labels.shape}."
        )
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ValueError("partition has labels that are nan or infinite; give every row the label of a block.")
    return GivenPartitioner(labels)


__all__ = ["PARTITIONERS", "Centres", "Partition", "Partitioner", "make_partitioner"]
