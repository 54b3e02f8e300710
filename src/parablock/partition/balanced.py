"""Give every row to a near centre without filling any block beyond its capacity.

Turning rows away from a full block would leave them in a far one, where no new row like them is looked for. So the
centres first get offsets to their squared distances (a power diagram), which shift the borders until the blocks are
about even; new rows find their block by the same offsets.
"""

from __future__ import annotations

import numpy as np

from parablock.devices.base import Device, Samples
from parablock.kernels import Kernel
from parablock.partition.base import Centres, chunks

BALANCE = 1.25  # the largest block, as a multiple of the mean
_SAMPLE_BALANCE = 1.2  # asked of a sample, so that few rows of the whole must be turned away
_ROUNDS = 200


def balancing_offsets(distances: np.ndarray) -> np.ndarray:
    """Offsets of the centres that even out the blocks of a sample, given its distances to them.

    An auction: every centre that is asked by too many raises its price just enough to send the surplus away.
    """
    n, k = distances.shape
    most = int(np.ceil(_SAMPLE_BALANCE * n / k))
    offsets = np.zeros(k)
    if k == 1:
        return offsets
    for _ in range(_ROUNDS):
        priced = distances + offsets
        two = np.partition(priced, 1, axis=1)
        choice, margin = priced.argmin(axis=1), two[:, 1] - two[:, 0]
        counts = np.bincount(choice, minlength=k)
        if counts.max() <= most:
            break
        for centre in np.flatnonzero(counts > most):
            surplus = counts[centre] - most
            offsets[centre] += np.partition(margin[choice == centre], surplus - 1)[surplus - 1] * (1 + 1e-6) + 1e-12
    return offsets


def balanced_blocks(
    device: Device, kernel: Kernel, samples: Samples, centres: Centres, n_blocks: int
) -> list[np.ndarray]:
    """Rows ask their nearest centre that has room; a centre takes the nearest that ask, the others ask again.

    Each round fills at least one centre or leaves nobody over, so it ends after at most `n_blocks` rounds.
    Blocks may be empty.
    """
    n = len(samples)
    room = np.full(n_blocks, int(np.ceil(BALANCE * n / n_blocks)))
    labels = np.full(n, -1, dtype=np.intp)
    waiting = np.arange(n)
    while len(waiting):
        closed = np.where(room > 0, 0.0, np.inf)
        choice, distance = [], []
        for part in chunks(samples if len(waiting) == n else samples.take(waiting)):
            open_distances = centres.distances(device, kernel, part) + closed
            nearest = open_distances.argmin(axis=1)
            choice.append(nearest)
            distance.append(open_distances[np.arange(len(nearest)), nearest])
        wish, cost = np.concatenate(choice), np.concatenate(distance)
        order = np.lexsort((cost, wish))
        wish, rows = wish[order], waiting[order]
        rank = np.arange(len(wish)) - np.searchsorted(wish, wish)
        accepted = rank < room[wish]
        labels[rows[accepted]] = wish[accepted]
        room -= np.bincount(wish[accepted], minlength=n_blocks)
        waiting = np.sort(rows[~accepted])
    ends = np.cumsum(np.bincount(labels, minlength=n_blocks))
    return np.split(np.argsort(labels, kind="stable"), ends[:-1])
