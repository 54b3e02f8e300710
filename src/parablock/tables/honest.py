"""What decisions on rows that nothing was learned from say of rows to come."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

_TEMPERATURES = (-3.0, 6.0)  # logarithms


def r_squared(target: np.ndarray, decision: np.ndarray, weight: np.ndarray) -> float:
    """The coefficient of determination over the rows that were judged."""
    judged = np.isfinite(decision).all(axis=1)
    if np.count_nonzero(judged) < 2:
        return float("nan")
    y, weight = target[judged], weight[judged]
    around = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    error = np.average((y - decision[judged]) ** 2, axis=0, weights=weight)
    varies = around > 0
    score = 1 - error / np.where(varies, around, 1)
    return float(np.where(varies, score, error == 0).mean())  # as scikit-learn's r2_score


def accuracy(label: np.ndarray, decision: np.ndarray, weight: np.ndarray) -> float:
    """The share of the judged rows that get their own class."""
    judged = np.isfinite(decision).all(axis=1)
    if not judged.any():
        return float("nan")
    return float(np.average(label[judged] == labels(decision[judged]), weights=weight[judged]))


def labels(decision: np.ndarray) -> np.ndarray:
    """Numbers of the classes that win."""
    if decision.shape[1] == 1:
        return (decision[:, 0] > 0).astype(np.intp)
    return decision.argmax(axis=1)


def logits(decision: np.ndarray) -> np.ndarray:
    """A column for each class."""
    return np.hstack([np.zeros_like(decision), decision]) if decision.shape[1] == 1 else decision


def temperature(label: np.ndarray, decision: np.ndarray, weight: np.ndarray, n: int) -> float:
    """What decisions are to be multiplied by before the softmax, for the least log loss; as if one of n + 2 rows had a
    label by chance, so that rows that are all classified rightly do not make it infinite."""
    judged = np.isfinite(decision).all(axis=1)
    if not judged.any():
        return 1.0
    Z, weight, label = logits(decision[judged]), weight[judged] / weight[judged].sum(), label[judged]
    chance = 1 / (n + 2)
    own = (1 - chance) * Z[np.arange(len(Z)), label] + chance * Z.mean(axis=1)

    def log_loss(log_t: float) -> float:
        t = np.exp(log_t)
        return float(weight @ (logsumexp(t * Z, axis=1) - t * own))

    return float(np.exp(minimize_scalar(log_loss, bounds=_TEMPERATURES, method="bounded").x))
