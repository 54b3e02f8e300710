"""Models that LIBSVM trained, predicting with parablock's kernel products."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if

from parablock.csr import given
from parablock.devices import DEVICES
from parablock.models.libsvm_file import LibsvmFile
from parablock.prediction import Expansion

_DENSE = 0.25  # from this share of features that are not zero on, dense products are faster
_ROWS_AT_ONCE = 4096
_LEAST_PROBABILITY = 1e-7  # LIBSVM's


class _LibsvmModel(BaseEstimator):
    """What all of them share.

    Parameters
    ----------
    model : LibsvmFile
        What the file said.
    device : {"cpu", "cuda", "auto"}, default="cpu"
    n_jobs : int or None, default=None
    """

    def __init__(self, model: LibsvmFile, device: str = "cpu", n_jobs: int | None = None) -> None:
        self.model = model
        self.device = device
        self.n_jobs = n_jobs

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _groups(self) -> list[slice]:
        """Which support vectors belong together."""
        return [slice(None)]

    def _sums(self, X: Any) -> list[np.ndarray]:
        """For each group ``coef @ K(support vectors, X)``."""
        X = check_array(given(X, "X"), accept_sparse="csr", dtype=np.float64)
        vectors = self.model.vectors
        # A feature that is not mentioned is zero, in the model as in the data. Those that the model alone has are
        # counted on, whatever their numbers.
        beyond = np.unique(vectors.indices[vectors.indices >= X.shape[1]])
        places = np.searchsorted(beyond, vectors.indices) + X.shape[1]
        columns = np.where(vectors.indices < X.shape[1], vectors.indices, places)
        width = X.shape[1] + len(beyond)
        vectors = sp.csr_matrix((vectors.data, columns, vectors.indptr), shape=(vectors.shape[0], width))
        dense = vectors.nnz >= _DENSE * vectors.shape[0] * width
        parts = [
            Expansion(np.arange(coef.shape[1]), own.toarray() if dense else own, np.ascontiguousarray(coef))
            for own, coef in ((vectors[group], self.model.coef[:, group]) for group in self._groups())
        ]
        device, kernel = DEVICES[self.device](self.n_jobs), self.model.kernel
        sums = []
        with device.session():
            for start in range(0, X.shape[0], _ROWS_AT_ONCE):
                rows = sp.csr_matrix(X[start : start + _ROWS_AT_ONCE])
                rows.resize(rows.shape[0], width)
                samples = device.samples(rows.toarray() if dense else rows, kernel)
                sums.append([part.values(device, kernel, samples, None) for part in parts])
        return [np.concatenate(group, axis=1) for group in zip(*sums, strict=True)]


class LibsvmRegressor(RegressorMixin, _LibsvmModel):
    """A support vector regressor (epsilon_svr, nu_svr) of LIBSVM; `parablock.models.from_libsvm` makes it.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock.models import from_libsvm
    >>> text = "svm_type nu_svr\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho -3\\nSV\\n2 1:5\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     model = from_libsvm(path)
    >>> model.predict([[1.0], [2.0]])
    array([13., 23.])
    """

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets."""
        return self._sums(X)[0][0] - self.model.rho[0]


class LibsvmOneClass(OutlierMixin, _LibsvmModel):
    """A one-class machine of LIBSVM; `parablock.models.from_libsvm` makes it.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock.models import from_libsvm
    >>> text = "svm_type one_class\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho 15\\nSV\\n2 1:5\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     model = from_libsvm(path)
    >>> model.predict([[1.0], [2.0]])
    array([-1,  1])
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Positive for rows like those of the training data."""
        return self._sums(X)[0][0] - self.model.rho[0]

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows like those of the training data, -1 for others."""
        return np.where(self.decision_function(X) > 0, 1, -1)


def _has_probabilities(classifier: LibsvmClassifier) -> bool:
    if "probA" not in classifier.model.lists:
        raise AttributeError("This model has no probabilities: train it with svm-train -b 1.")
    return True


class LibsvmClassifier(ClassifierMixin, _LibsvmModel):
    """A classifier (c_svc, nu_svc) of LIBSVM: one comparison for each pair of classes; `parablock.models.from_libsvm`
    makes it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        In ascending order; the file may have another one.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock.models import from_libsvm
    >>> text = "svm_type c_svc\\nkernel_type linear\\nnr_class 2\\ntotal_sv 2\\nrho 3\\nlabel 7 4\\nnr_sv 1 1\\n"
    >>> text += "SV\\n1 1:3\\n-1 1:1\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     model = from_libsvm(path)
    >>> model.predict([[1.0], [2.0]])
    array([4, 7])
    """

    @property
    def classes_(self) -> np.ndarray:
        return np.sort(self.model.labels)

    def _groups(self) -> list[slice]:
        ends = np.cumsum(self.model.counts)
        return [slice(end - count, end) for end, count in zip(ends, self.model.counts, strict=True)]

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The two classes of each comparison, by their places in the file."""
        return np.triu_indices(len(self.model.labels), 1)

    def _comparisons(self, X: Any) -> np.ndarray:
        """Of shape (n_pairs, n), positive for the first class of the pair."""
        sums = self._sums(X)
        pairs = zip(*self._pairs(), self.model.rho, strict=True)
        return np.stack([sums[first][second - 1] + sums[second][first] - rho for first, second, rho in pairs])

    def _ascending(self, columns: np.ndarray) -> np.ndarray:
        """One column a class, from the file's order into that of `classes_`."""
        return columns[:, np.argsort(self.model.labels)]

    def _votes(self, comparisons: np.ndarray) -> np.ndarray:
        """How many comparisons each class wins, (n, n_classes)."""
        votes = np.zeros((len(self.model.labels), comparisons.shape[1]))
        for first, second, value in zip(*self._pairs(), comparisons, strict=True):
            votes[first] += value > 0
            votes[second] += value <= 0
        return votes.T

    def predict(self, X: Any) -> np.ndarray:
        """Class labels: the class that wins most comparisons, of equals the first in the file, as in LIBSVM."""
        return np.array(self.model.labels)[self._votes(self._comparisons(X)).argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Two classes: of shape (n,), positive for ``classes_[1]``. More: one column a class, its votes and, as a
        fraction, the sum of its comparisons, as in scikit-learn's SVC."""
        comparisons = self._comparisons(X)
        if len(comparisons) == 1:
            return comparisons[0] if self.model.labels[0] > self.model.labels[1] else -comparisons[0]
        sums = np.zeros((len(self.model.labels), comparisons.shape[1]))
        for first, second, value in zip(*self._pairs(), comparisons, strict=True):
            sums[first] += value
            sums[second] -= value
        return self._ascending(self._votes(comparisons) + (sums / (3.0 * (np.abs(sums) + 1.0))).T)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class, (n, n_classes), of a model that was trained with ``-b 1``.

        More than two classes: the probabilities p that fit the comparisons best, ``sum_ij (r_ji p_i - r_ij p_j)^2``,
        which LIBSVM finds by iteration, to two digits or three.
        """
        slope, offset = (np.array(self.model.lists[name])[:, None] for name in ("probA", "probB"))
        with np.errstate(over="ignore"):
            wins = 1.0 / (1.0 + np.exp(slope * self._comparisons(X) + offset))
        wins = np.clip(wins, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
        if len(wins) == 1:
            return self._ascending(np.stack((wins[0], 1.0 - wins[0]), axis=1))
        k = len(self.model.labels)
        first, second = self._pairs()
        against = np.zeros((wins.shape[1], k, k))  # [:, i, j]: that i wins over j
        against[:, first, second], against[:, second, first] = wins.T, 1.0 - wins.T
        # The minimum on the plane of sum one: Q p + b = 0, with the multiplier b as one more unknown.
        system = np.zeros((wins.shape[1], k + 1, k + 1))
        system[:, :k, :k] = -against * against.transpose(0, 2, 1)
        system[:, range(k), range(k)] = (against**2).sum(axis=1)
        system[:, :k, k] = system[:, k, :k] = 1.0
        one = np.zeros((wins.shape[1], k + 1, 1))
        one[:, k] = 1.0
        return self._ascending(np.linalg.solve(system, one)[:, :k, 0].clip(0.0, 1.0))
