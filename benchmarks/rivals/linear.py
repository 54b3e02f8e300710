"""Features that approximate the kernel, then a linear machine by LIBLINEAR.

RFF       random Fourier features (Rahimi and Recht, 2007): cos(w'x + b) for w drawn from the kernel's spectrum
Nystroem  kernel values with landmarks (Williams and Seeger, 2000), which are k-means centres (Zhang and Kwok, 2008)

scikit-learn's LIBLINEAR computes on one thread; the features are computed on all of them.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.rivals.base import Model, Rival, Stopwatch
from parablock.devices import DEVICES, Device
from parablock.kernels import RBF

Features = Callable[[Any], np.ndarray]
_ROWS_AT_ONCE = 8192  # of predictions
_KMEANS_SAMPLE = 20_000
_SMALL = 1e-6  # eigenvalues below this share of the largest are rounding


@dataclass
class _LinearOnFeatures(Rival):
    """A linear machine on features.

    Parameters
    ----------
    features : int
        How many.
    loss : {"hinge", "logistic"}
    tol, max_iter
        LIBLINEAR's, with its own defaults for the dual problem.
    """

    features: int = field(default=500, kw_only=True)
    loss: str = field(default="hinge", kw_only=True)
    tol: float = field(default=0.1, kw_only=True)
    max_iter: int = field(default=1000, kw_only=True)

    @abstractmethod
    def _features(self, X: Any) -> Features:
        """Find the features of the training rows."""

    def _train(self, X: Any, y: np.ndarray, clock: Stopwatch) -> Model:
        features = self._features(X)
        machine = self._machine()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # max_iter is a limit of time like any other
            machine.fit(features(X), y)

        def decision(rows: Any) -> np.ndarray:
            starts = range(0, rows.shape[0], _ROWS_AT_ONCE)
            parts = [machine.decision_function(features(rows[start : start + _ROWS_AT_ONCE])) for start in starts]
            return np.concatenate(parts) if parts else np.empty(0)

        return Model(decision)

    def _machine(self) -> Any:
        if self.loss == "hinge":
            return LinearSVC(
                C=self.C, loss="hinge", dual=True, fit_intercept=False, tol=self.tol, max_iter=self.max_iter,
                random_state=self.random_state,
            )  # fmt: skip
        if self.loss == "logistic":
            return LogisticRegression(
                C=self.C, solver="liblinear", fit_intercept=False, tol=self.tol, max_iter=self.max_iter,
                random_state=self.random_state,
            )  # fmt: skip
        raise ValueError(f"loss={self.loss!r} was given; use 'hinge' or 'logistic'.")


@dataclass
class RandomFeatures(_LinearOnFeatures):
    """Random Fourier features and a linear machine."""

    def _features(self, X: Any) -> Features:
        sampler = RBFSampler(gamma=self.gamma, n_components=self.features, random_state=self.random_state).fit(X[:1])
        return sampler.transform


@dataclass
class Nystroem(_LinearOnFeatures):
    """Kernel values with k-means landmarks and a linear machine; kernel values by parablock's tiles and threads."""

    device: str = field(default="cpu", kw_only=True)
    n_jobs: int | None = field(default=None, kw_only=True)

    def _features(self, X: Any) -> Features:
        landmarks = self._landmarks(X)
        centre = None if sp.issparse(X) else landmarks.mean(axis=0)
        kernel = RBF(self.gamma)

        def kernel_dot(rows: Any, coef: np.ndarray) -> np.ndarray:
            with self._session() as device:
                points = device.samples(landmarks, kernel, centre)
                return device.kernel_dot(kernel, device.samples(rows, kernel, centre), points, coef).T

        values, vectors = np.linalg.eigh(kernel_dot(landmarks, np.eye(landmarks.shape[0])))
        used = values > _SMALL * values[-1]
        # K(rows, landmarks) times this has the inner products K_nm K_mm^-1 K_mn.
        whitening = np.ascontiguousarray((vectors[:, used] / np.sqrt(values[used])).T)
        return lambda rows: kernel_dot(rows, whitening)

    def _landmarks(self, X: Any) -> Any:
        rng = np.random.default_rng(self.random_state)
        rows = np.sort(rng.choice(X.shape[0], size=min(X.shape[0], _KMEANS_SAMPLE), replace=False))
        count = min(self.features, len(rows))
        kmeans = KMeans(count, init="random", n_init=1, max_iter=10, random_state=self.random_state)
        with self._session(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than landmarks
            points = np.ascontiguousarray(kmeans.fit(X[rows]).cluster_centers_, dtype=X.dtype)
        return sp.csr_matrix(points) if sp.issparse(X) else points

    @contextmanager
    def _session(self) -> Iterator[Device]:
        device = DEVICES[self.device](self.n_jobs, None)
        with device.session():
            yield device
