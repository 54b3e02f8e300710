"""Distinct rows with weights, in an order that depends on their values only.

Rows with equal features are one row that weighs as much as all of them and has their mean target, so that a weight of k
is the same as k copies. Whatever is drawn by chance later on is drawn from the order made here, so that neither the
order in which rows and columns come nor the units of a column change a fit by more than rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ROUNDS = 3  # of telling rows and columns apart by each other


@dataclass(frozen=True)
class Rows:
    """Distinct rows.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Numbers, or numbers of categories; nan where a value is missing.
    target : ndarray of shape (n_rows, n_outputs)
        Means over equal rows.
    weight : ndarray of shape (n_rows,)
        Positive, one in the mean.
    group : ndarray of shape (n_rows,) or None
        Numbers from 0, in this order, of the groups that are left out together.
    """

    values: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    group: np.ndarray | None

    def __len__(self) -> int:
        return len(self.values)

    def some(self, chosen: np.ndarray) -> Rows:
        """Some of the rows, whose weights are one in the mean again."""
        group = None if self.group is None else np.unique(self.group[chosen], return_inverse=True)[1]
        weight = self.weight[chosen]
        return Rows(self.values[chosen], self.target[chosen], weight / weight.mean(), group)


def distinct_rows(
    values: np.ndarray, target: np.ndarray, weight: np.ndarray, group: np.ndarray | None, seed: int
) -> tuple[Rows, np.ndarray]:
    """Distinct rows, and for every given row the number of the one that it is part of.

    Rows of one group are neighbours.
    """
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in values.T])  # all nan are equal
    key = ranks if group is None else np.column_stack([ranks, group])
    _, first, place = np.unique(key, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    order = _order(ranks[first], None if group is None else group[first], seed)
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.arange(len(order))
    first, place = first[order], number[place]
    # Sums are taken in an order of values too.
    sequence = np.lexsort([weight, *target.T[::-1], place])
    where, share = place[sequence], weight[sequence]
    total = np.bincount(where, share)
    means = [np.bincount(where, share * column) / total for column in target[sequence].T]
    differs = (target != target[first][place]).any(axis=1)
    mixed = np.bincount(place, differs) > 0  # the mean of equal targets needs no rounding
    mean = np.where(mixed[:, None], np.column_stack(means), target[first])
    groups = None if group is None else np.cumsum(np.diff(group[first], prepend=group[first[0]]) != 0)
    return Rows(values[first], mean, total / total.mean(), groups), place


def _order(ranks: np.ndarray, group: np.ndarray | None, seed: int) -> np.ndarray:
    """An order of distinct rows as if by chance. Rows are told by their columns' ranks, and columns by their rows, in
    turns: sums of hashed pairs, which are the same in any order. Rows that are still alike, such as those of a whole
    factorial design, are told apart by the places of the columns."""
    own = _hashed(np.full(ranks.shape[0], seed, dtype=np.uint64))
    codes = ranks.astype(np.uint64)
    for _ in range(_ROUNDS):
        column = _hashed(codes ^ own[:, None]).sum(axis=0, dtype=np.uint64)
        own = _hashed(_hashed(codes ^ column).sum(axis=1, dtype=np.uint64) ^ np.uint64(seed))
    places = _hashed(np.arange(ranks.shape[1], dtype=np.uint64))
    last = _hashed(_hashed(codes ^ places).sum(axis=1, dtype=np.uint64) ^ np.uint64(seed))
    if group is None:
        return np.lexsort([last, own])
    _, member = np.unique(group, return_inverse=True)
    of_group = np.zeros(member.max() + 1, dtype=np.uint64)
    np.add.at(of_group, member, own)
    return np.lexsort([last, own, member, _hashed(of_group)[member]])


def _hashed(x: np.ndarray) -> np.ndarray:
    """splitmix64 of every number."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
