"""Classifiers: the support vector machine and logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from parablock.csr import given
from parablock.estimators._bases import ClassifierMixin
from parablock.estimators._documentation import documented
from parablock.estimators._hints import WithoutProbabilities
from parablock.estimators._machine import KernelMachine, for_every_row
from parablock.estimators._types import (
    BlockSolverLike,
    CheckpointLike,
    ClassWeight,
    DeviceName,
    EngineLike,
    Gamma,
    HingeName,
    KernelLike,
    LineSearch,
    MemoryLimit,
    PartitionLike,
    Prediction,
    RandomState,
    Resume,
)
from parablock.losses import Hinge, Logistic, Loss, SquaredHinge
from parablock.tensors import on_host

if TYPE_CHECKING:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Base of the classifiers: two classes are one problem, more are one problem a class against the rest.

    Examples
    --------
    A classifier with another loss says which:

    >>> from parablock import KernelSVC
    >>> from parablock.losses import SquaredHinge
    >>> class SmoothSVC(KernelSVC):
    ...     def _make_loss(self):
    ...         return SquaredHinge()
    >>> SmoothSVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]).predict([[0.2], [2.9]])
    array(['low', 'high'], dtype='<U4')
    """

    class_weight: ClassWeight
    classes_: np.ndarray

    _parameter_constraints: dict[str, list[Any]] = {
        **KernelMachine._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _check_rows(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        X, y = self._check_samples(X, y)
        check_classification_targets(y)
        return X, y

    def _outputs(self, y: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.classes_ = np.unique(y)
        labels = np.searchsorted(self.classes_, y)
        present = np.flatnonzero(np.bincount(labels[sample_weight > 0]))
        if len(present) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes with a positive weight, got 1 class: "
                f"{self.classes_[present].tolist()}. Check y and sample_weight."
            )
        against_rest = np.arange(len(self.classes_))[1 if len(self.classes_) == 2 else 0 :]
        target = np.where(labels == against_rest[:, None], 1.0, -1.0)
        self.class_weight_ = self._class_weights(labels, sample_weight)
        return target, np.broadcast_to(sample_weight * self.class_weight_[labels], target.shape)

    def _support_counts(self, target: np.ndarray) -> np.ndarray:
        labels = target.argmax(axis=0) if len(target) > 1 else (target[0] > 0).astype(np.intp)
        return np.bincount(labels, minlength=len(self.classes_))

    def _class_weights(self, labels: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        if self.class_weight == "balanced":
            totals = np.bincount(labels, sample_weight, minlength=len(self.classes_))
            return totals.sum() / (len(totals) * np.maximum(totals, 1e-300))
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not (np.all(np.isfinite(weights)) and np.all(weights > 0)):
            raise ValueError(
                f"class_weight must be positive for every class, got {self.class_weight!r}. Leave rows out of the "
                "training data, or give them sample_weight=0, to ignore a class."
            )
        return weights

    @for_every_row
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: of shape (n_samples,) for two classes, positive for ``classes_[1]``; else one column a
        class against the rest."""
        decision = self._decision(X)
        return decision[0] if len(self.classes_) == 2 else decision.T

    @for_every_row
    def predict(self, X: Any) -> np.ndarray:
        """Class labels."""
        decision = self.decision_function(X)
        best = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples that are classified rightly."""
        return super().score(X, on_host(given(y, "y")), on_host(given(sample_weight, "sample_weight")))


@documented
class KernelSVC(KernelClassifier, WithoutProbabilities):
    """Kernel support vector classifier.

    Minimises ``1/2 |w|^2 + sum_i C_i loss(y_i f(x_i))`` exactly, with the hinge loss ``max(0, 1 - y f)`` or its
    square. Several classes: one against the rest, in one solve that computes kernel values once for all.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; infinite, every loss must be zero (the hard margin).
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a row costs whose decision f has the margin y f. "hinge", ``max(0, 1 - y f)``, is that of scikit-learn's
        SVC and LIBSVM, and leaves the fewest support vectors. "squared_hinge", ``max(0, 1 - y f)^2``, is smooth, and
        rows far on the wrong side cost much more. Neither gives probabilities: the logistic loss does, which is that
        of `KernelLogisticRegression`; or put the classifier into ``sklearn.calibration.CalibratedClassifierCV``.
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Multiplies C of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        What C was multiplied by for each class.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelSVC
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = KernelSVC(C=10, gamma=2).fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.predict(X[:5])
    array([0, 1, 1, 1, 1])
    >>> model.violation_ <= model.tol, model.duality_gap_ <= 1e-3 * model.dual_objective_
    (True, True)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **KernelClassifier._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: HingeName = "hinge",
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        partition: PartitionLike = "tree",
        n_blocks: int | None = None,
        block_solver: BlockSolverLike = "greedy",
        line_search: LineSearch = "auto",
        regroup: bool = True,
        prediction: Prediction = "global",
        device: DeviceName = "cpu",
        engine: EngineLike = "local",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        checkpoint: CheckpointLike = None,
        resume: Resume = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.partition = partition
        self.n_blocks = n_blocks
        self.block_solver = block_solver
        self.line_search = line_search
        self.regroup = regroup
        self.prediction = prediction
        self.device = device
        self.engine = engine
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.resume = resume
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    if TYPE_CHECKING:

        def to_sklearn(self) -> SVC | OneVsRestClassifier | Pipeline: ...

    def _make_loss(self) -> Loss:
        return Hinge() if self.loss == "hinge" else SquaredHinge()


@documented
class KernelLogisticRegression(KernelClassifier):
    """Kernel logistic regression.

    Minimises ``1/2 |w|^2 + sum_i C_i log(1 + exp(-y_i f(x_i)))`` exactly. Several classes: one against the rest,
    with probabilities scaled to sum to one.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser.
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Multiplies C of each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        What C was multiplied by for each class.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelLogisticRegression
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = KernelLogisticRegression(C=10, gamma=2).fit(X, y)
    >>> model.predict_proba(X[:2]).round(3)
    array([[0.991, 0.009],
           [0.137, 0.863]])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        partition: PartitionLike = "tree",
        n_blocks: int | None = None,
        block_solver: BlockSolverLike = "greedy",
        line_search: LineSearch = "auto",
        regroup: bool = True,
        prediction: Prediction = "global",
        device: DeviceName = "cpu",
        engine: EngineLike = "local",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        checkpoint: CheckpointLike = None,
        resume: Resume = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.partition = partition
        self.n_blocks = n_blocks
        self.block_solver = block_solver
        self.line_search = line_search
        self.regroup = regroup
        self.prediction = prediction
        self.device = device
        self.engine = engine
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.resume = resume
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def _make_loss(self) -> Loss:
        return Logistic()

    @for_every_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class, of shape (n_samples, n_classes)."""
        decision = self._decision(X)
        if len(self.classes_) == 2:
            return np.stack((expit(-decision[0]), expit(decision[0])), axis=1)
        probability = expit(decision).T
        total = probability.sum(axis=1, keepdims=True)
        # All against: nothing to tell the classes apart by.
        return np.where(total > 0, probability / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    @for_every_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
