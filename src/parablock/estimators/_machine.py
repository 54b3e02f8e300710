"""What all kernel machines share: checks of input, fitted attributes, prediction."""

from __future__ import annotations

import os
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from parablock.callbacks.support import CallbackSupport, fit_watched, watch_of
from parablock.certificate import Certificate
from parablock.csr import given
from parablock.devices import DEVICES
from parablock.devices.digits import rows_for_float64
from parablock.devices.memory import bytes_for_rows, memory_bytes
from parablock.engines import ENGINES, Engine, LocalEngine, Shard, engine_for, fitted_attributes, make_engine, moments
from parablock.estimators._advice import warn_of
from parablock.estimators._attributes import DerivedAttributes
from parablock.estimators._bases import THREADS, validated
from parablock.estimators._hints import Hints
from parablock.estimators._infinite import train_infinite
from parablock.estimators._objects import by_place, new_objects, numbers_of, places, training_objects
from parablock.estimators._onnx import OnnxStep
from parablock.estimators._tensors import check_tensor, negative_for_chi2
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
from parablock.fingerprint import fingerprint_of_rows
from parablock.kernels import KERNELS, Chi2, Kernel, Precomputed, kernel_is, make_kernel
from parablock.losses import Loss
from parablock.mapped import data_bytes, is_mapped, some_rows, stretches
from parablock.monitor import Checkpoint
from parablock.partition import PARTITIONERS, Partitioner, make_partitioner
from parablock.prediction import Expansion, GlobalModel, LocalModel
from parablock.problem import Problem
from parablock.scaling import Scaling
from parablock.settings import Settings
from parablock.solver import CHOICES, BlockSolver
from parablock.tensors import TensorRows, is_plain, is_tensor, on_host
from parablock.training import Trained, train

Method = TypeVar("Method", bound=Callable[..., Any])
# Data of these types is exact in float32, which is twice as fast.
_SMALL_TYPES = tuple(np.dtype(name) for name in ("float16", "int8", "uint8", "int16", "uint16", "bool"))
_DENSE_ROWS = 4096
_LEAST_VARIANCE = 1e-290  # of features, from which on it has all digits


def for_every_row(method: Method) -> Method:
    """A method of a fitted machine that maps rows to rows: other machines may compute it where the data is."""

    @wraps(method)
    def wherever(self: KernelMachine, X: Any) -> Any:
        check_is_fitted(self)
        X = self._where_it_is(given(X, "X"), self._sparse)
        result = engine_for(self.engine, X).predict_elsewhere(self, method.__name__, X)
        return method(self, X) if result is None else result

    return wherever  # type: ignore[return-value]


class KernelMachine(CallbackSupport, DerivedAttributes, OnnxStep, Hints, metaclass=ABCMeta):
    """Base of all estimators. A subclass says which loss it minimises and what its targets are."""

    C: float
    kernel: KernelLike
    gamma: Gamma
    degree: int
    coef0: float
    fit_intercept: bool
    tol: float
    max_iter: int
    partition: PartitionLike
    n_blocks: int | None
    block_solver: BlockSolverLike
    line_search: LineSearch
    regroup: bool
    prediction: Prediction
    device: DeviceName
    engine: EngineLike
    n_jobs: int | None
    memory_limit: MemoryLimit
    checkpoint: CheckpointLike
    resume: Resume
    warm_start: bool
    verbose: int
    random_state: RandomState

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions(set(PARTITIONERS)), "array-like", Partitioner],
        "n_blocks": [Interval(Integral, 1, None, closed="left"), None],
        "block_solver": [StrOptions(set(CHOICES)), BlockSolver],
        "line_search": [StrOptions({"auto", "exact", "armijo"})],
        "regroup": ["boolean"],
        "prediction": [StrOptions({"global", "local"})],
        "device": [StrOptions(set(DEVICES))],
        "engine": [StrOptions(set(ENGINES)), Engine],
        "n_jobs": [*THREADS, None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), str, None],
        "checkpoint": [str, os.PathLike, Checkpoint, None],
        "resume": ["boolean", StrOptions({"auto"})],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    _fingerprint: str | None = None  # of rows, targets and weights of the fit, where they are known
    _objects: np.ndarray | None = None  # rows that are not numbers; training and prediction know them by their places
    _train = staticmethod(train)  # `path` puts one in its place that shares kernel values with other fits
    # What is done to every row that a user gives. Set before the first fit, that fit scales its rows as well.
    _scaling: Scaling | None = None

    @abstractmethod
    def _make_loss(self) -> Loss:
        """The loss to minimise."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not kernel_is(self.kernel, Precomputed)
        tags.input_tags.pairwise = kernel_is(self.kernel, Precomputed)
        tags.input_tags.positive_only = kernel_is(self.kernel, Chi2)
        return tags

    # --------------------------------------------------------------------------------------------- fitting

    @validated
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array, sparse matrix, dataframe, torch tensor, or Dask array or dataframe, shape (n_samples, n_features)
            For ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array of shape (n_samples,)
            Class labels of a classifier, real targets of a regressor; there also of shape (n_samples, n_targets).
        sample_weight : array of shape (n_samples,), optional
            Multiplies C for each sample.

        Returns
        -------
        self
        """
        self._forget_scaling()
        X, y, sample_weight = self._where_it_is(given(X, "X")), on_host(y), on_host(sample_weight)
        engine = engine_for(self.engine, X)

        def fit() -> None:
            fitted = engine.fit_elsewhere(self, X, y, sample_weight)
            if fitted is None:
                self._fit_here(X, y, sample_weight)
            else:
                for name in fitted_attributes(self):
                    delattr(self, name)
                self.__dict__.update(fitted)

        fit_watched(self, engine, X, y, sample_weight, fit)
        return self

    def _fit_here(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Train on this machine, or as one of those that all do the same."""
        X, y, sample_weight = self._checked(X, y, sample_weight)
        self._fit(X, *self._outputs(y, sample_weight), sample_weight)

    def _forget_scaling(self) -> None:
        """A fit starts anew, with the rows as they are given; where it goes on from the last one, they are scaled as
        they were then."""
        if self._scaling is not None and hasattr(self, "dual_coef_") and not self.warm_start:
            del self._scaling
            warnings.warn(
                f"This {type(self).__name__} was trained on features that it scales itself, and this fit takes them as "
                "they are given. Scale them in a pipeline, such as make_pipeline(StandardScaler(), model)."
            )

    def _scaled(self, X: Any) -> Any:
        """Checked rows as the kernel takes them."""
        if self._scaling is None:
            return X
        if isinstance(X, Shard):
            return Shard(self._scaled(X.own), X.starts, X.talk)
        X = self._scaling.apply(X)
        self._refuse_negative(X)
        return X

    def _refuse_negative(self, X: Any) -> None:
        """Of the kernel that has no meaning for them."""
        if kernel_is(self.kernel, Chi2) and (X.data if sp.issparse(X) else X).min(initial=0) < 0:
            raise negative_for_chi2()

    def _support_counts(self, target: np.ndarray) -> np.ndarray:
        """Of the support vectors with these targets, shape (n_outputs, n_support): how many there are of each class."""
        return np.array([target.shape[1]])

    @abstractmethod
    def _check_rows(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """X and y checked."""

    @abstractmethod
    def _outputs(self, y: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights, without C, of shape (n_outputs, n)."""

    def _check_samples(self, X: Any, y: Any = "no_validation", reset: bool = True, **options: Any) -> Any:
        """X (and y) checked; X as an array or CSR matrix of float32 or float64, in the precision it came in, or as rows
        of a tensor that stay on its device."""
        if isinstance(X, TensorRows):
            return check_tensor(self, X, y, reset=reset, **options)
        X = given(X, "X")
        if reset:
            self.__dict__.pop("_objects", None)
            if (objects := training_objects(self, X)) is not None:
                self._objects, X = objects, places(0, len(objects))
        precomputed = kernel_is(self.kernel, Precomputed)
        dtype: Any = np.float32 if getattr(X, "dtype", None) in _SMALL_TYPES else (np.float64, np.float32)
        formats = False if precomputed else "csr"
        order = None if is_mapped(X) else "C"  # data on disk stays as it is, and gets into order when it is read
        if is_mapped(X):
            self._refuse_a_large_copy(X, dtype)
        checked = validate_data(self, X, y, reset=reset, dtype=dtype, order=order, accept_sparse=formats, **options)
        X = checked if isinstance(y, str) else checked[0]
        if precomputed and reset and X.shape[0] != X.shape[1]:
            raise ValueError(
                "kernel='precomputed' needs the square kernel matrix of the training samples with themselves; got "
                f"shape {X.shape}. Pass K with K[i, j] = kernel(x_i, x_j)."
            )
        if self._scaling is None:
            self._refuse_negative(X)
        return checked

    def _where_it_is(self, X: Any, csr: bool = False) -> Any:
        """A torch tensor as rows that stay on its device, if that is where they are used; otherwise on the host, as an
        array. Anything else as it is."""
        if not is_tensor(X):
            return X
        local = (
            isinstance(make_engine(self.engine), LocalEngine)
            and not kernel_is(self.kernel, Precomputed)
            and not csr
            and self._scaling is None
        )
        return TensorRows(X) if local and is_plain(X) and self._settings(None).make_device().keeps(X) else on_host(X)

    def _refuse_a_large_copy(self, X: Any, dtype: Any) -> None:
        """Of data on disk that is not of one of the types that are trained with."""
        if X.dtype in (np.float32, np.float64):
            return
        converted = np.dtype(np.float32 if dtype is np.float32 else np.float64)
        size, limit = data_bytes(X) // X.dtype.itemsize * converted.itemsize, memory_bytes(self.memory_limit)
        if size > bytes_for_rows(limit):
            raise ValueError(
                f"X is on disk as {X.dtype} and would take {size / 2**20:.0f} MB of memory as {converted}, more than a "
                f"quarter of memory_limit ({limit / 2**20:.0f} MB). Data that is to stay on disk must be float32 or "
                "float64: write it as such a file, a part at a time (np.lib.format.open_memmap), or raise memory_limit."
            )

    def _check_weight(self, X: Any, sample_weight: Any) -> np.ndarray:
        weight = _check_sample_weight(given(sample_weight, "sample_weight"), X, dtype=np.float64)
        if np.any(weight < 0):
            raise ValueError(
                f"Negative values in sample_weight (smallest: {weight.min()}): weights multiply C and must be zero "
                "or positive. Rows of weight zero take no part, as those of negative weight in scikit-learn's SVC: "
                "np.maximum(sample_weight, 0) leaves them out."
            )
        return weight

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """X, y and weights of all machines, where each has checked its own."""
        engine = make_engine(self.engine)

        def own() -> tuple[Any, np.ndarray, np.ndarray]:
            rows, labels = self._check_rows(X, given(y, "y"))
            return rows, labels, self._check_weight(rows, sample_weight)

        X, y, weight = engine.gather(*engine.checked(own))
        if not np.any(weight > 0):
            raise ValueError("All sample weights are zero: there is nothing to fit. Give some sample a positive one.")
        return X, y, weight

    def _fit(self, X: Any, target: np.ndarray, weight: np.ndarray, sample_weight: np.ndarray) -> None:
        """Solve for targets and weights of shape (n_outputs, n). Rows whose sample weight is zero take no part."""
        if self.prediction == "local" and self.regroup:
            raise ValueError(
                "prediction='local' uses the blocks of a fixed partition, and regroup=True makes new ones in every "
                "iteration. Set regroup=False, or prediction='global'."
            )
        n = X.shape[0]
        fingerprint = self._fingerprint_of(X, target, sample_weight)
        make_partitioner(self.partition, n)  # complains about labels that do not fit before rows are left out
        X = self._scaled(X)
        rows = np.flatnonzero(sample_weight > 0)
        sparse = sp.issparse(X.own if isinstance(X, Shard) else X)
        start, partition = self._start(n, len(target)), self.partition
        if len(rows) < n:
            if isinstance(X, Shard):
                X = X.keep(rows)
            else:
                X = X[np.ix_(rows, rows)] if kernel_is(self.kernel, Precomputed) else some_rows(X, rows)
            target, weight, sample_weight = target[:, rows], weight[:, rows], sample_weight[rows]
            start = None if start is None else start[:, rows]
            partition = partition if isinstance(partition, (str, Partitioner)) else np.asarray(partition)[rows]
        self._gamma = self._numeric_gamma(X, sample_weight)
        loss, settings = self._make_loss(), self._settings(partition)
        problem = None if np.isinf(float(self.C)) else Problem.build(loss, target, self.C * weight, self.fit_intercept)
        seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        rng = np.random.default_rng(make_engine(self.engine).agree(seed))
        watch = watch_of(self)
        if watch is not None:
            watch.over(X, lambda data, trained: self._as_fitted(data, rows, n, sparse, target, trained, fingerprint))
        if problem is None:
            trained = train_infinite(
                self._train, X, self._make_kernel(), loss, target, self.fit_intercept, settings, rng, start, watch
            )
        else:
            trained = self._train(X, self._make_kernel(), problem, settings, rng, start, watch)
        self._n_rows, self._dtype, self._sparse, self._fingerprint = n, trained.dtype, sparse, fingerprint
        self._keep(X, rows, target, trained)
        warn_of(self, trained.solution, problem, X)

    def _as_fitted(
        self,
        X: Any,
        rows: np.ndarray,
        n: int,
        sparse: bool,
        target: np.ndarray,
        trained: Trained,
        fingerprint: str,
    ) -> dict[str, Any]:
        """The attributes of a model of what is trained by now."""
        model = copy(self)
        model._n_rows, model._dtype, model._sparse, model._fingerprint = n, trained.dtype, sparse, fingerprint
        model._keep(X, rows, target, trained)
        return fitted_attributes(model)

    @classmethod
    def path(cls, X: Any, y: Any, Cs: Any = 5, *, sample_weight: Any = None, **parameters: Any) -> list[Self]:
        """Train a model for each of several C, each from the solution before, with common kernel values.

        Parameters
        ----------
        X, y, sample_weight
            As `fit` takes them.
        Cs : int or array of float, default=5
            Values of C; or how many, from 1/4 on, each four times the one before.
        **parameters
            All others of the estimator.

        Returns
        -------
        list of fitted estimators
            In the order of `Cs`, whatever it is; trained from the smallest on. Seconds and kernel evaluations in their
            histories count from the start of the path.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from parablock import KernelSVC
        >>> X, y = make_moons(500, noise=0.1, random_state=0)
        >>> models = KernelSVC.path(X, y, Cs=[0.1, 1, 10], gamma=2)
        >>> [model.C for model in models]
        [0.1, 1.0, 10.0]
        """
        from parablock.selection.path import fitted_path  # is built on the estimators

        return fitted_path(cls, X, y, Cs, sample_weight, parameters)

    def _start(self, n: int, n_outputs: int) -> np.ndarray | None:
        """The last fit's coefficients, where there is one to start from."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        if self._n_rows != n or len(self.dual_coef_) != n_outputs:
            warnings.warn(
                f"warm_start=True, but the last fit had {self._n_rows} rows and {len(self.dual_coef_)} outputs and "
                f"this one has {n} and {n_outputs}: starting from zero."
            )
            return None
        start = np.zeros((n_outputs, n))
        start[:, self.support_] = self.dual_coef_
        return start

    def _settings(self, partition: Any) -> Settings:
        names = (
            "tol", "max_iter", "n_blocks", "block_solver", "line_search", "regroup", "device", "engine", "n_jobs",
            "memory_limit", "checkpoint", "resume",
        )  # fmt: skip
        return Settings(partition=partition, verbose=int(self.verbose), **{name: getattr(self, name) for name in names})

    def _make_kernel(self, gamma: float | None = None) -> Kernel:
        kernel = make_kernel(self.kernel, self._gamma if gamma is None else gamma, self.coef0, self.degree)
        return kernel if self._objects is None else by_place(kernel, self._objects)

    def _numeric_gamma(self, X: Any, sample_weight: np.ndarray) -> float:
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma == "scale":
            # Weighted like everything else, so that a weight of two equals the row twice.
            share = sample_weight / (sample_weight.sum() * X.shape[1])
            with np.errstate(over="ignore", invalid="ignore"):
                mean, mean_square = X.moments(share) if isinstance(X, Shard) else moments(X, share)
                variance = mean_square - mean * mean
            unused = not hasattr(make_kernel(self.kernel), "gamma") or mean == mean_square == 0.0
            if not (unused or _LEAST_VARIANCE < mean_square < 1.0 / _LEAST_VARIANCE):
                raise ValueError(
                    "gamma='scale' is 1 / (n_features * X.var()), and the squares of these features leave the range of "
                    f"float64 (their mean is {mean_square:g}). Scale the features (for instance with StandardScaler), "
                    "or give gamma as a number."
                )
            return 1.0 / (X.shape[1] * variance) if variance > 1e-12 * mean_square else 1.0
        return float(self.gamma)

    def _keep(self, X: Any, rows: np.ndarray, target: np.ndarray, trained: Trained) -> None:
        """Set the fitted attributes. `rows` are the numbers of X's rows in what the user passed; `target` is theirs."""
        solution, kernel = trained.solution, self._make_kernel()
        intercept = np.array([measure.bias for measure in solution.state.measures])
        expansion = Expansion.of(kernel, X, trained.dtype, np.arange(len(rows)), solution.state.coef)
        vectors = expansion.vectors
        if self._objects is not None:
            self._objects = vectors = self._objects[numbers_of(expansion.vectors)]
            expansion = replace(expansion, vectors=places(0, len(vectors)))
        self._rows, self._centre = rows, trained.centre
        self._models: dict[str, GlobalModel | LocalModel] = {"global": GlobalModel(expansion, intercept)}
        if self.prediction == "local" and solution.local is not None:
            centres = trained.partition.centres
            self._models["local"] = LocalModel.of(kernel, X, trained.dtype, centres, solution.local, intercept)
        self.support_ = rows[expansion.rows]
        self.n_support_ = self._support_counts(target[:, expansion.rows])
        self.support_vectors_ = vectors
        self.dual_coef_ = expansion.coef
        self.intercept_ = intercept
        self.n_iter_ = solution.state.iteration
        self.history_ = solution.history
        self.stop_reason_ = solution.reason
        self.dual_objective_ = -solution.state.objective
        self.duality_gap_ = solution.state.duality_gap
        self.violation_ = solution.state.violation
        self.kernel_evaluations_ = solution.kernel_evaluations
        self.partition_ = trained.partition

    # ------------------------------------------------------------------------------------------- certificate

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Compute anew, with a kernel matrix in float64, how good the fitted model is for its training problem.

        `duality_gap_` and its like are of the kernel matrix in the precision of the data. Here the decisions of all
        training rows are computed from the rows and the coefficients, on all threads of this machine's CPU: as many
        kernel values as there are rows times support vectors. With ``verbose=1`` a line every few seconds tells how far
        it is.

        Parameters
        ----------
        X, y, sample_weight
            What the model was trained on: the same values in the same order. Other rows, targets or weights are
            refused. Where `fit` was given rows on several machines, all of them, here.

        Returns
        -------
        Certificate
            Primal and dual value, duality gap and largest violation, of all outputs together and of each of them. The
            primal value, and with it the gap, is at the model's own intercept, so that an intercept that is off shows.
            The violation is that of the coefficients, at the intercept that suits them best. It is of the global model,
            and of the problem that the parameters of the estimator state as they are now.

        Examples
        --------
        >>> import numpy as np
        >>> from parablock import KernelSVR
        >>> X = np.linspace(0, 6, 100, dtype=np.float32)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = KernelSVR(C=10, gamma=1).fit(X, y)
        >>> certificate = model.certify(X, y)
        >>> certificate.duality_gap < 1e-2 * certificate.primal_objective
        True
        """
        from parablock.certifying import certify  # which few users need

        check_is_fitted(self)
        return certify(self, given(X, "X"), given(y, "y"), given(sample_weight, "sample_weight"))

    def _fingerprint_of(self, X: Any, target: np.ndarray, sample_weight: np.ndarray, precision: Any = None) -> str:
        """Of rows, targets and weights as they were given, and of the labels of classes."""
        labels = self.classes_.tolist() if hasattr(self, "classes_") else None
        told = labels if self._objects is None else [labels, self._objects.tolist()]
        return fingerprint_of_rows(X, target, sample_weight, told, precision)

    # ------------------------------------------------------------------------------------- files and friends

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file; see `parablock.save`."""
        from parablock.models import save

        save(self, path)

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn with the same decisions; see `parablock.models.to_sklearn`."""
        from parablock.models import to_sklearn

        return to_sklearn(self)

    # ------------------------------------------------------------------------------------------- predicting

    def _decision(self, X: Any) -> np.ndarray:
        """Decision values of shape (n_outputs, n)."""
        check_is_fitted(self)
        if self._objects is not None:
            return self._decision_of_objects(new_objects(self._objects, X))
        return np.concatenate([self._decision_of(part) for part in self._in_memory(X)], axis=1)

    def _decision_of_objects(self, objects: np.ndarray) -> np.ndarray:
        assert self._objects is not None
        kernel = by_place(make_kernel(self.kernel), np.concatenate((self._objects, objects)))
        device = self._settings(None).make_device()
        with device.session():
            rows = device.samples(places(len(self._objects), len(objects)), kernel, None)
            return self._models["global"].decision(device, kernel, rows, None)

    def _in_memory(self, X: Any) -> Iterator[Any]:
        """X in parts that may be copied; one, unless it is a large array on disk."""
        if is_mapped(X):
            # In float64 the parts must fit, whatever they are on disk.
            most = bytes_for_rows(memory_bytes(self.memory_limit)) * X.dtype.itemsize // np.dtype(np.float64).itemsize
            if data_bytes(X) > most:
                yield from (X[start:stop] for start, stop in stretches(X, most))
                return
        yield X

    def _decision_of(self, X: Any) -> np.ndarray:
        if self.prediction not in self._models:
            raise ValueError(
                "prediction='local' needs the steps of the blocks, which only a fit with prediction='local' keeps (of "
                "one finished iteration at least). Fit again, or set prediction='global'."
            )
        model, centre = self._models[self.prediction], self._centre
        kernel, device = self._make_kernel(), self._settings(None).make_device()

        def decision(part: Any) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):  # what leaves the range is found below
                samples = device.samples(part, kernel, centre)
                values = model.decision(device, kernel, samples, centre)
                far = rows_for_float64(device, kernel, samples, part, centre)
                if len(far):
                    samples = device.samples(part[far].astype(np.float64), kernel, centre)
                    values[:, far] = model.decision(device, kernel, samples, centre)
            return values

        with device.session():
            values = np.concatenate([decision(part) for part in self._like_training_data(X)], axis=1)
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"Decision values of {np.count_nonzero(~np.isfinite(values).all(axis=0))} rows are not finite numbers: "
                "their features are too large for the kernel. Scale them as the training data was."
            )
        return values

    def _like_training_data(self, X: Any) -> Iterator[Any]:
        """X checked, scaled as the model asks for, and in the format of the training data; sparse rows that become
        dense do so a few at a time."""
        X = self._check_samples(X, reset=False)
        if sp.issparse(X) and (not self._sparse or (self._scaling is not None and self._scaling.shifts)):
            starts = range(0, X.shape[0], _DENSE_ROWS)
            parts: Iterable[Any] = (X[start : start + _DENSE_ROWS].toarray() for start in starts)
        else:
            parts = [X]
        for part in parts:
            part = self._scaled(part).astype(self._dtype, copy=False)
            if kernel_is(self.kernel, Precomputed) and len(self._rows) < part.shape[1]:
                part = part[:, self._rows]  # without the columns of rows that took no part
            yield sp.csr_matrix(part) if self._sparse else part
