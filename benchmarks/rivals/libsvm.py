"""LIBSVM (Chang and Lin, 2011) as scikit-learn's SVC: sequential minimal optimisation on one thread, with intercept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.rivals.base import Model, Rival, Stopwatch


@dataclass
class LIBSVM(Rival):
    """scikit-learn's SVC.

    Parameters
    ----------
    tol : float
        Largest violation of the optimality conditions.
    cache_size : float
        Megabytes for kernel values.
    """

    tol: float = field(default=1e-3, kw_only=True)
    cache_size: float = field(default=2000.0, kw_only=True)

    def _train(self, X: Any, y: np.ndarray, clock: Stopwatch) -> Model:
        machine = SVC(C=self.C, gamma=self.gamma, tol=self.tol, cache_size=self.cache_size).fit(X, y)
        coef = np.zeros(len(y))
        dual = machine.dual_coef_
        coef[machine.support_] = (dual.toarray() if hasattr(dual, "toarray") else dual)[0]
        return Model(machine.decision_function, coef)
