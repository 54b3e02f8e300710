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
    """

    coef: np.ndarray
    decision: np.ndarray
    iteration: int = 0
