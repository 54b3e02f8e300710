"""Regressors: support vector, ridge and quantile regression."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval

from parablock.csr import given
from parablock.estimators._bases import RegressorMixin
from parablock.estimators._documentation import documented
from parablock.estimators._machine import KernelMachine, for_every_row
from parablock.estimators._types import (
    BlockSolverLike,
    CheckpointLike,
    DeviceName,
    EngineLike,
    Gamma,
    KernelLike,
    LineSearch,
    MemoryLimit,
    PartitionLike,
    Prediction,
    RandomState,
    Resume,
)
from parablock.losses import EpsilonInsensitive, Loss, Quantile, SquaredError
from parablock.tensors import on_host

if TYPE_CHECKING:
    from sklearn import kernel_ridge
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVR


class KernelRegressor(RegressorMixin, KernelMachine):
    """Base of the regressors. Several targets are several problems that share kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelRegressor, KernelRidge
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = KernelRidge(C=100, gamma=1).fit(X, np.hstack((np.sin(X), np.cos(X))))
    >>> isinstance(model, KernelRegressor), model.predict([[1.5], [3.0]]).round(1)
    (True, array([[ 1. ,  0.1],
           [ 0.1, -1. ]]))
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def _check_rows(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        return self._check_samples(X, y, multi_output=True, y_numeric=True)

    def _outputs(self, y: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._single_target = y.ndim == 1
        target = np.atleast_2d(np.asarray(y, dtype=np.float64).T)
        return target, np.broadcast_to(sample_weight, target.shape)

    @for_every_row
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, in the shape that y had."""
        decision = self._decision(X)
        return decision[0] if self._single_target else decision.T

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination, R squared."""
        return super().score(X, on_host(given(y, "y")), on_host(given(sample_weight, "sample_weight")))


@documented
class KernelSVR(KernelRegressor):
    """Kernel support vector regression.

    Minimises ``1/2 |w|^2 + sum_i C_i max(0, |y_i - f(x_i)| - epsilon)`` exactly.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; infinite, every loss must be zero.
    epsilon : float, default=0.1
        Errors up to this size cost nothing.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelSVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = KernelSVR(C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.15)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **KernelRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
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
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
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

        def to_sklearn(self) -> SVR | MultiOutputRegressor | Pipeline: ...

    def _make_loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)


@documented
class KernelRidge(KernelRegressor):
    """Kernel ridge regression.

    Minimises ``1/2 |w|^2 + sum_i C_i (y_i - f(x_i))^2`` exactly. Equals scikit-learn's KernelRidge with
    ``alpha = 1 / (2 C)`` and ``fit_intercept=False``.

    Up to 8,192 rows in memory, or more where their kernel matrix in float64 takes no more than half of a `memory_limit`
    that is given, the solution is computed at once by Cholesky factorisation, whatever the penalty, if nothing is said
    of blocks (`partition`, `n_blocks`, `block_solver`, `line_search`, `regroup`). Larger problems, GPUs and several
    processes are trained in blocks, without ever storing the kernel matrix. See "Least squares at once" in
    docs/guide.md.

    `tol` counts in the spread of the targets: the deviation from their median that four of five do not exceed. So s
    times the targets give s times the predictions.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; infinite, every loss must be zero.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelRidge
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = KernelRidge(C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.15)
    True
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

        def to_sklearn(self) -> kernel_ridge.KernelRidge | TransformedTargetRegressor | Pipeline: ...

    def _make_loss(self) -> Loss:
        return SquaredError()


@documented
class KernelQuantileRegressor(KernelRegressor):
    """Kernel quantile regression.

    Minimises ``1/2 |w|^2 + sum_i C_i pinball(y_i - f(x_i))`` exactly, with ``pinball(e) = max(q e, (q - 1) e)``.

    `tol` counts in the spread of the targets: the deviation from their median that four of five do not exceed. C does
    not: s times the targets with s times C give s times the predictions.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser; infinite, every loss must be zero.
    quantile : float, default=0.5
        Which conditional quantile of the target to predict; 0.5 is the median.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelQuantileRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(size=100)
    >>> model = KernelQuantileRegressor(C=10, quantile=0.9).fit(X, y)
    >>> float(np.mean(y <= model.predict(X)).round(1))
    0.9
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **KernelRegressor._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        quantile: float = 0.5,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
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
        self.quantile = quantile
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
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
        return Quantile(self.quantile)
