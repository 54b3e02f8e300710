"""Machines that choose their C and gamma by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from parablock.estimators import KernelLogisticRegression, KernelSVC, KernelSVR
from parablock.estimators._bases import ClassifierMixin, RegressorMixin
from parablock.estimators._hints import WithoutProbabilities
from parablock.estimators._types import (
    ClassWeight,
    DeviceName,
    GammaName,
    HingeName,
    KernelLike,
    MemoryLimit,
    PartitionLike,
    RandomState,
)
from parablock.selection._documentation import documented
from parablock.selection._machine_cv import KernelMachineCV

Values: TypeAlias = int | Sequence[float] | np.ndarray  # or how many


class KernelClassifierCV(ClassifierMixin, KernelMachineCV):
    """Base of the classifiers."""

    score = KernelMachineCV.score  # by `scoring`, which the mixin's does not know

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of the best model."""
        return self._best().decision_function(X)


@documented
class KernelSVCCV(KernelClassifierCV, WithoutProbabilities):
    """Kernel support vector classifier that chooses C and gamma by cross-validation.

    Equals GridSearchCV over `KernelSVC`, at a fraction of the work: all folds are trained together.

    Parameters
    ----------
    {choice}
    loss : {"hinge", "squared_hinge"}, default="hinge"
        As of `KernelSVC`. For probabilities use `KernelLogisticRegressionCV`.
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Multiplies C of each class; "balanced" by the training rows of each fold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelSVCCV
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = KernelSVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1, 10]).fit(X, y)
    >>> model.best_params_
    {'C': 10.0, 'gamma': 1.0}
    >>> model.score(X, y) > 0.97
    True
    """

    best_estimator_: KernelSVC
    _machine_class = KernelSVC
    _parameter_constraints: dict[str, list[Any]] = {
        **KernelMachineCV._parameter_constraints,
        **{name: KernelSVC._parameter_constraints[name] for name in ("loss", "class_weight")},
    }

    def __init__(
        self,
        Cs: Values = 5,
        gammas: Values | GammaName = 5,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str | Callable[[Any], int] = True,
        return_train_score: bool = False,
        loss: HingeName = "hinge",
        kernel: KernelLike = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        partition: PartitionLike = "tree",
        n_blocks: int | None = None,
        device: DeviceName = "cpu",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.return_train_score = return_train_score
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.partition = partition
        self.n_blocks = n_blocks
        self.device = device
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.random_state = random_state


@documented
class KernelLogisticRegressionCV(KernelClassifierCV):
    """Kernel logistic regression that chooses C and gamma by cross-validation.

    Equals GridSearchCV over `KernelLogisticRegression`, at a fraction of the work: all folds are trained together. For
    good probabilities choose by ``scoring="neg_log_loss"``.

    Parameters
    ----------
    {choice}
    {parameters}
    class_weight : dict, "balanced" or None, default=None
        Multiplies C of each class; "balanced" by the training rows of each fold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelLogisticRegressionCV
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = KernelLogisticRegressionCV(Cs=[1, 10], gammas=[1, 10], scoring="neg_log_loss").fit(X, y)
    >>> model.best_params_["C"]
    10.0
    >>> model.predict_proba(X[:1]).shape
    (1, 2)
    """

    best_estimator_: KernelLogisticRegression
    _machine_class = KernelLogisticRegression
    _parameter_constraints: dict[str, list[Any]] = {
        **KernelMachineCV._parameter_constraints,
        "class_weight": KernelLogisticRegression._parameter_constraints["class_weight"],
    }

    def __init__(
        self,
        Cs: Values = 5,
        gammas: Values | GammaName = 5,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str | Callable[[Any], int] = True,
        return_train_score: bool = False,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        partition: PartitionLike = "tree",
        n_blocks: int | None = None,
        device: DeviceName = "cpu",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.return_train_score = return_train_score
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.partition = partition
        self.n_blocks = n_blocks
        self.device = device
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.random_state = random_state

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of every class by the best model, of shape (n_samples, n_classes)."""
        return self._best().predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the probabilities."""
        return self._best().predict_log_proba(X)


@documented
class KernelSVRCV(RegressorMixin, KernelMachineCV):
    """Kernel support vector regression that chooses C and gamma by cross-validation.

    Equals GridSearchCV over `KernelSVR`, at a fraction of the work: all folds are trained together.

    Parameters
    ----------
    {choice}
    epsilon : float, default=0.1
        Errors up to this size cost nothing.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelSVRCV
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = KernelSVRCV(Cs=[0.1, 1, 10], gammas=[0.01, 1], cv=10).fit(X, np.sin(X[:, 0]))
    >>> model.best_params_["gamma"]
    1.0
    """

    score = KernelMachineCV.score  # by `scoring`, which the mixin's does not know
    best_estimator_: KernelSVR
    _machine_class = KernelSVR
    _parameter_constraints: dict[str, list[Any]] = {
        **KernelMachineCV._parameter_constraints,
        "epsilon": KernelSVR._parameter_constraints["epsilon"],
    }

    def __init__(
        self,
        Cs: Values = 5,
        gammas: Values | GammaName = 5,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str | Callable[[Any], int] = True,
        return_train_score: bool = False,
        epsilon: float = 0.1,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        partition: PartitionLike = "tree",
        n_blocks: int | None = None,
        device: DeviceName = "cpu",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.return_train_score = return_train_score
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.partition = partition
        self.n_blocks = n_blocks
        self.device = device
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
