"""Classification of tables, without settings."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length

from parablock.estimators._bases import ClassifierMixin, validated
from parablock.tables import honest
from parablock.tables.base import AutoKernel
from parablock.tables.importances import accuracy
from parablock.tensors import on_host


class AutoKernelClassifier(ClassifierMixin, AutoKernel):
    """Classification of tables, without settings: a kernel machine that learns its metric.

    As `AutoKernelRegressor`, with a target of -1 and 1 for each class. Probabilities are the softmax of the decisions
    times a temperature, which is chosen by decisions on rows that the metric was not learned on.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the rows of each class.
    max_time : float or None, default=None
        Seconds after which learning ends, with a ConvergenceWarning; the last solutions are computed after that.
    memory_limit : int, str or None, default=None
        Memory for matrices of all pairs of rows, in bytes or as "500MB" or "2GB"; None takes half of what is free, at
        most 4 GB. A fit that needs more is refused.
    n_jobs : int or None, default=None
        Threads; None and -1 mean all cores. A fit uses up to four. The model is the same for any number.
    verbose : int, default=0
        1 writes a line to standard error for each stage of a fit.
    random_state : int, RandomState or None, default=None
        Of the division into halves on which learning begins.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    score_estimate_ : float
        What `score` is expected to be on new rows like those of the fit: the accuracy of decisions on rows that were
        left out of the fit, and that the metric was not learned on. With very few rows (less than 24) nothing is
        learned but the scale, and the plain leave-one-out decisions are taken.
    temperature_ : float
        What decisions are multiplied by before the softmax.
    feature_importances_ : ndarray of shape (n_features,)
        What the honest score loses when the values of a column are shuffled; computed when it is first asked for.
    stop_reason_ : {"finished", "time", "interrupted"}
        Why learning ended.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Of a dataframe.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import AutoKernelClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = AutoKernelClassifier(random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.9, model.predict_proba(X[150:]).shape
    (True, (50, 2))
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **AutoKernel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    _importance_score = staticmethod(accuracy)

    def __init__(
        self,
        *,
        class_weight: Any = None,
        max_time: float | None = None,
        memory_limit: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.class_weight = class_weight
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @validated
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : dataframe or array of shape (n_samples, n_features)
            Numbers, truth values, categories, text of few levels, dates; missing values where there are any.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            How much a row counts. A weight of k is the same as k equal rows; only ratios matter.
        groups : array of shape (n_samples,), optional
            Rows of one group belong together (one patient, one day): they are left out together.

        Returns
        -------
        self
        """
        values = self._read(X, y, reset=True)
        y = column_or_1d(_check_y(on_host(y), multi_output=False, estimator=self), warn=True)
        check_classification_targets(y)
        check_consistent_length(values, y)
        weight = self._weights(sample_weight, len(values))
        self.classes_, label = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        present = np.flatnonzero(np.bincount(label[weight > 0], minlength=n_classes))
        if len(present) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes with a positive weight, got 1 class: "
                f"{self.classes_[present].tolist()}. Check y and sample_weight."
            )
        columns = np.arange(n_classes)[1 if n_classes == 2 else 0 :]
        target = np.where(label[:, None] == columns, 1.0, -1.0)
        decision, _ = self._fit(values, target, weight * self._class_weights(y, weight)[label], groups)
        there = weight > 0
        self.score_estimate_ = honest.accuracy(label[there], decision, weight[there])
        self.temperature_ = honest.temperature(label[there], decision, weight[there], len(self._fitted.values))
        return self

    def _class_weights(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        options = {"sample_weight": weight} if self.class_weight == "balanced" else {}
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y, **options)
        if not (np.all(np.isfinite(weights)) and np.all(weights > 0)):
            raise ValueError(
                f"class_weight must be positive for every class, got {self.class_weight!r}. Leave rows out of the "
                "training data, or give them sample_weight=0, to ignore a class."
            )
        return weights

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: of shape (n_samples,) for two classes, positive for ``classes_[1]``; else one column a
        class."""
        decision = self._decide(X)
        return decision[:, 0] if len(self.classes_) == 2 else decision

    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        decision = self._decide(X)
        return self.classes_[honest.labels(decision)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``."""
        decision = self._decide(X)
        return softmax(self.temperature_ * honest.logits(decision), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples that are classified rightly."""
        return super().score(X, on_host(y), on_host(sample_weight))
