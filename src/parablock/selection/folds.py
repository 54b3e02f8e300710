"""All folds as outputs of one problem.

A fold's training rows have their weights, and the rows that it holds out have weight zero: their box is a point, so
that they take no part. The folds are thus several outputs over one kernel matrix, like several classes, and share
blocks and kernel values. And `decision = K coef`, which training keeps up to date for all rows, is the prediction of
the rows that were held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from parablock.estimators._machine import KernelMachine
from parablock.kernels import Precomputed, kernel_is

Split = tuple[np.ndarray, np.ndarray]  # rows to train on, and to test on


@dataclass(frozen=True)
class Folds:
    """The folds of a cross-validation.

    Attributes
    ----------
    machine : KernelMachine
        Knows the classes or the shape of the targets; is not trained.
    splits : sequence of pairs of ndarray
        Row numbers to train on and to test on.
    target, weight : ndarray of shape (n_folds * n_outputs, n)
        Of the problem of all folds; the weight without C.
    missing : ndarray of bool, shape (n_folds, n_outputs)
        Which of several classes a fold has no training rows of.
    """

    machine: KernelMachine
    splits: Sequence[Split]
    target: np.ndarray
    weight: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, machine: KernelMachine, y: np.ndarray, sample_weight: np.ndarray, splits: Sequence[Split]) -> Folds:
        """The folds of checked targets and weights."""
        everyone = np.arange(len(sample_weight))
        try:
            splits = [(everyone[train], everyone[test]) for train, test in splits]  # numbers, where there were masks
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"cv must give pairs of arrays of row numbers, from 0 to {len(everyone) - 1}: rows to train on, and "
                f"rows to test on ({error})."
            ) from error
        targets, weights, missing = [], [], []
        for number, (train, test) in enumerate(splits):
            own = np.bincount(train, minlength=len(everyone)) * sample_weight
            if len(test) == 0 or not own.any():
                raise ValueError(
                    f"Fold {number} has {len(test)} rows to test on and {np.count_nonzero(own)} of positive weight to "
                    "train on; each needs at least one. Check cv and sample_weight."
                )
            try:
                target, weight = machine._outputs(y, own)
            except ValueError as error:
                raise ValueError(
                    f"Fold {number} cannot be trained on: {error} Use fewer folds, or a splitter that spreads the "
                    "classes over them (StratifiedKFold)."
                ) from error
            targets.append(target)
            weights.append(weight)
            several = len(target) > 1 and hasattr(machine, "classes_")
            missing.append([several and not np.any((row > 0) & (own > 0)) for row in target])
        return cls(machine, splits, np.concatenate(targets), np.concatenate(weights), np.array(missing))

    def predictions(self, decision: np.ndarray) -> list[np.ndarray]:
        """Of every fold, from those of all outputs: the decision values of all rows, (n_outputs, n)."""
        parts = np.array_split(decision, len(self.splits))
        return [np.where(missing[:, None], -np.inf, part) for part, missing in zip(parts, self.missing, strict=True)]

    def fitted(self, decision: np.ndarray) -> KernelMachine:
        """A machine whose decision values are the given ones, whatever rows it is asked for: what a scorer needs."""
        machine = copy(self.machine)
        machine.__dict__ |= {"_decision": lambda X: decision, "_sparse": False}  # whatever X is
        return machine


def rows_of(machine: KernelMachine, X: Any, rows: np.ndarray, train: np.ndarray) -> Any:
    """Some rows as a scorer sees them; of a kernel matrix with the columns of the training rows."""
    return X[np.ix_(rows, train)] if kernel_is(machine.kernel, Precomputed) else X[rows]
