"""The state of a run: all that is needed to go on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    """A point of the problem and where the run stands.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n)
    decision : ndarray of shape (n_outputs, n)
        ``K coef``, kept up to date.
    iteration : int
        Outer iterations done.
    last_step : pair of ndarray of shape (n_outputs, n), or None
        The last iteration's change of both.
    """

    coef: np.ndarray
    decision: np.ndarray
    iteration: int = 0
    last_step: tuple[np.ndarray, np.ndarray] | None = None
