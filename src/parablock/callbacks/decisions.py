"""Decisions on rows that are not trained with, brought up to date from iteration to iteration."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.callbacks.contexts import as_fitted
from parablock.callbacks.watching import Run
from parablock.devices.base import Device, Samples
from parablock.devices.memory import memory_bytes
from parablock.kernels import Kernel

_SHARE_OF_MEMORY = 4  # of what training may take for kernel values, for those of the other rows


class Decisions:
    """Of the models of one fit on the given rows.

    Each training row's kernel values with them are computed once, when its coefficient moves for the first time, and
    kept as far as there is room.

    Parameters
    ----------
    run : Run
        Of a fit that is about to begin: what is held here is held around whatever the fit itself holds.
    X : array or sparse matrix
    """

    def __init__(self, run: Run, X: Any) -> None:
        self.X = X
        settings = run.estimator._settings(None)
        room = max(1, memory_bytes(settings.memory_limit) // _SHARE_OF_MEMORY)
        self._device: Device = replace(settings, memory_limit=room).make_device()
        self._held = ExitStack()
        self._held.enter_context(self._device.session())
        self._coef: np.ndarray | None = None

    def close(self) -> None:
        self._held.close()

    def model(self, run: Run) -> Any:
        """The newest iteration's model, which knows its decisions on these rows, and on no others."""
        state = run.solution().state
        if self._coef is None:
            self._begin(run, state.coef)
        change = state.coef - self._coef
        moved = np.flatnonzero(change.any(axis=0))
        if len(moved):
            weights = np.ascontiguousarray(change[:, moved])
            self._decision += self._device.column_dot(self._kernel, self._samples, self._training, moved, weights)
        self._coef = state.coef
        known = self._decision + np.array([[measure.bias] for measure in state.measures])
        return as_fitted(self._shell, {"_decision": lambda X: known})

    def _begin(self, run: Run, coef: np.ndarray) -> None:
        self._shell = run.fitted()  # of which everything but coefficients and intercept will stay
        self._kernel = self._shell._make_kernel()
        parts = list(self._shell._like_training_data(self.X))
        rows = parts[0] if len(parts) == 1 else (sp.vstack if sp.issparse(parts[0]) else np.concatenate)(parts)
        self._samples = self._device.samples(rows, self._kernel, run.centre)
        self._training = _TrainingRows(run, self._device, self._kernel)
        self._coef, self._decision = np.zeros_like(coef), np.zeros((len(coef), len(self._samples)))


class _TrainingRows:
    """Rows that are trained with, by number."""

    def __init__(self, run: Run, device: Device, kernel: Kernel) -> None:
        self.run, self.device, self.kernel = run, device, kernel

    def __len__(self) -> int:
        return int(self.run.data.shape[0])

    def take(self, rows: Any) -> Samples:
        if len(rows) == 0:  # of which no function gives kernel values
            return self.take(np.zeros(1, dtype=np.intp)).take(rows)
        if self.kernel.overlap == "given":
            return self.device.given_columns(rows, self.run.data.dtype)
        return self.device.samples(self.run.data[rows], self.kernel, self.run.centre)
