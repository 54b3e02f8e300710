"""Callbacks of a search: every C and gamma is a fit of its own to them, in which all folds are trained together."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from parablock.callbacks.support import fit_watched, watch_of
from parablock.callbacks.watching import Watch
from parablock.engines import LocalEngine
from parablock.estimators._machine import KernelMachine
from parablock.monitor import Record
from parablock.solver import Solution
from parablock.training import Trained


class FoldsWatch(Watch):
    """Of a fit whose outputs are folds: it has no model that predicts."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.run.has_models = False

    def end(self, record: Record, so_far: Callable[[], Solution] | None) -> bool:
        return super().end(record, None)


def train_watched(
    machine: KernelMachine, C: float, gamma: float, X: Any, y: Any, train: Callable[[Watch | None], Trained]
) -> tuple[Trained, str | None]:
    """What `train` gives, while the machine's callbacks hear of it; and why one of them has ended it, if it says."""
    fitted = copy(machine).set_params(C=C)
    if hasattr(machine._make_kernel(gamma), "gamma"):
        fitted.set_params(gamma=gamma)
    fitted._gamma = gamma
    results: list[tuple[Trained, str | None]] = []

    def fit() -> None:
        watch = watch_of(fitted)
        if watch is not None:
            watch.over(X, lambda data, trained: {})
        trained = train(watch)
        state, fitted.stop_reason_ = trained.solution.state, trained.solution.reason
        fitted.n_iter_, fitted.history_ = state.iteration, trained.solution.history
        fitted.support_ = np.flatnonzero(state.coef.any(axis=0))
        fitted.dual_objective_, fitted.duality_gap_ = -state.objective, state.duality_gap
        fitted.violation_, fitted.kernel_evaluations_ = state.violation, trained.solution.kernel_evaluations
        results.append((trained, None if watch is None else watch.run.why))

    fit_watched(fitted, LocalEngine(), X, y, None, fit, FoldsWatch)
    return results[0]
