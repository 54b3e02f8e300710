"""Models as fitted estimators of scikit-learn."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import scipy.sparse as sp
import sklearn  # imports its modules when they are first named

from parablock.estimators import KernelRidge, KernelSVC, KernelSVR
from parablock.kernels import RBF, Chi2, Cosine, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from parablock.models.chosen import chosen
from parablock.models.exported import Exported, exported
from parablock.models.files import ModelFileError
from parablock.scaling import Scaling

if TYPE_CHECKING:
    from sklearn import kernel_ridge as scikit
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC, SVR

_SVM: dict[type[Kernel], str] = {
    Linear: "linear", Polynomial: "poly", RBF: "rbf", Sigmoid: "sigmoid", Precomputed: "precomputed",
}  # fmt: skip
_RIDGE: dict[type[Kernel], str] = {**_SVM, Laplacian: "laplacian", Chi2: "chi2", Cosine: "cosine"}
_ELSEWHERE = "parablock.save, parablock.models.to_onnx and, for some kernels, to_libsvm take it elsewhere"


@overload
def to_sklearn(model: KernelSVC) -> SVC | OneVsRestClassifier | Pipeline: ...
@overload
def to_sklearn(model: KernelSVR) -> SVR | MultiOutputRegressor | Pipeline: ...
@overload
def to_sklearn(model: KernelRidge) -> scikit.KernelRidge | TransformedTargetRegressor | Pipeline: ...
@overload
def to_sklearn(model: Any) -> Any: ...
def to_sklearn(model: Any) -> Any:
    """A fitted estimator of scikit-learn with the same decisions, where scikit-learn has the machine.

    ============================================  ==================================================================
    `KernelSVC` with the hinge loss, two classes  ``SVC``
    ... more classes                              ``OneVsRestClassifier`` of ``SVC`` (an SVC alone compares pairs)
    `KernelSVR`                                   ``SVR``; several targets ``MultiOutputRegressor`` of ``SVR``
    `KernelRidge`                                 ``KernelRidge`` with ``alpha = 1 / (2 C)``, which has no intercept:
                                                  with one it is inside a ``TransformedTargetRegressor``
    ============================================  ==================================================================

    A model that scales rows itself becomes a ``Pipeline`` of a ``StandardScaler`` and one of these.

    Others raise an error: scikit-learn has no kernel logistic or quantile regression and no squared hinge loss with
    kernels, and its SVC has the kernels linear, polynomial, rbf, sigmoid and precomputed. What comes back computes in
    float64 and can be pickled.

    Parameters
    ----------
    model : KernelSVC, KernelSVR or KernelRidge
        Fitted; or a search, or a Pipeline of scalers, that ends in one, as `parablock.save` takes it.

    Returns
    -------
    estimator

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelSVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = KernelSVC(C=10, gamma=2).fit(X, y)
    >>> same = model.to_sklearn()
    >>> bool(np.allclose(same.decision_function(X), model.decision_function(X)))
    True
    """
    model = chosen(model)
    machine = exported(model, "to_sklearn")
    if machine.scaling is None:
        return _machine(model, machine)
    inside = copy(model)
    vars(inside).pop("feature_names_in_", None)  # which the scaler checks; what it gives has none
    return sklearn.pipeline.make_pipeline(_scaler(model, machine.scaling), _machine(inside, machine))


def _machine(model: Any, machine: Exported) -> Any:
    if isinstance(model, KernelSVC) and model.loss == "hinge":
        return _classifier(model, machine)
    if isinstance(model, KernelSVR):
        return _regressor(model, machine)
    if isinstance(model, KernelRidge):
        return _ridge(model, machine)
    loss = type(model._make_loss()).__name__
    raise ModelFileError(
        f"scikit-learn has no kernel machine with the loss {loss} ({type(model).__name__}): {_ELSEWHERE}."
    )


def _scaler(model: Any, scaling: Scaling) -> Any:
    made = sklearn.preprocessing.StandardScaler(with_mean=scaling.shifts)
    made.mean_, made.scale_ = scaling.shift.copy(), 1.0 / scaling.scale
    made.var_, made.n_samples_seen_ = made.scale_**2, model._n_rows
    return _named(made, model)


def _classifier(model: Any, machine: Exported) -> Any:
    assert machine.classes is not None
    if len(machine.classes) == 2:
        return _svc(model, machine, 0, machine.classes, model.class_weight)
    # The weights of classes have no meaning for one class against the rest.
    ones = [_svc(model, machine, output, np.array([0, 1]), None) for output in range(len(machine.coef))]
    several = sklearn.multiclass.OneVsRestClassifier(_blank(sklearn.svm.SVC, model, machine))
    several.label_binarizer_ = sklearn.preprocessing.LabelBinarizer(sparse_output=True).fit(machine.classes)
    several.estimators_ = ones
    _give(several, "classes_", machine.classes)
    return _named(several, model)


def _svc(model: Any, machine: Exported, output: int, classes: np.ndarray, class_weight: Any) -> Any:
    coef = machine.coef[output]
    # LIBSVM, inside the SVC, wants those of the first class before the others, and has it as the positive one.
    order = np.concatenate((np.flatnonzero(coef < 0), np.flatnonzero(coef > 0)))
    made = _fitted(_blank(sklearn.svm.SVC, model, machine, class_weight=class_weight), machine, classes)
    _set(made, model, machine, order, -coef[order], -machine.intercept[[output]])
    made._n_support = np.array([np.sum(coef < 0), np.sum(coef > 0)], dtype=np.int32)
    made.dual_coef_, made.intercept_ = -made._dual_coef_, -made._intercept_
    return made


def _regressor(model: Any, machine: Exported) -> Any:
    made = [_svr(model, machine, output) for output in range(len(machine.coef))]
    if model._single_target:
        return made[0]
    several = sklearn.multioutput.MultiOutputRegressor(_blank(sklearn.svm.SVR, model, machine, epsilon=model.epsilon))
    several.estimators_ = made
    return _named(several, model)


def _svr(model: Any, machine: Exported, output: int) -> Any:
    coef = machine.coef[output]
    order = np.flatnonzero(coef)
    made = _fitted(_blank(sklearn.svm.SVR, model, machine, epsilon=model.epsilon), machine, np.array([0.0, 10.0]))
    _set(made, model, machine, order, coef[order], machine.intercept[[output]])
    made._n_support = np.array([len(order), 0], dtype=np.int32)
    made.dual_coef_, made.intercept_ = made._dual_coef_, made._intercept_.copy()
    return made


def _blank(kind: type, model: Any, machine: Exported, **parameters: Any) -> Any:
    """An estimator with the parameters of the model."""
    if type(machine.kernel) not in _SVM:
        raise ModelFileError(
            f"scikit-learn's {kind.__name__} has no {type(machine.kernel).__name__} kernel; it has "
            f"{', '.join(_SVM.values())}; {_ELSEWHERE}."
        )
    gamma = getattr(machine.kernel, "gamma", model.gamma)
    return kind(
        C=model.C,
        kernel=_SVM[type(machine.kernel)],
        gamma=gamma,
        degree=getattr(machine.kernel, "degree", 3),
        coef0=getattr(machine.kernel, "coef0", 0.0),
        tol=model.tol,
        **parameters,
    )


def _fitted(made: Any, machine: Exported, targets: np.ndarray) -> Any:
    """Fitted to two rows: scikit-learn sets all that its version wants to be there, and `_set` what it shall be."""
    rows: Any = np.eye(2) if machine.kernel.overlap == "given" else np.arange(2.0)[:, None]
    made.fit(sp.csr_matrix(rows) if sp.issparse(machine.vectors) else rows, targets)
    return made


def _set(made: Any, model: Any, machine: Exported, order: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> None:
    """Support vectors and LIBSVM's own coefficients."""
    made.support_ = model.support_[order].astype(np.int32)
    made.support_vectors_ = machine.vectors[order]
    made._dual_coef_ = np.ascontiguousarray(coef[None, :])
    if sp.issparse(machine.vectors):
        vectors = machine.sparse_vectors[order]
        parts = (
            vectors.data,
            vectors.indices.astype(np.int32),
            vectors.indptr.astype(np.int32),
        )  # it knows no wider ones
        made.support_vectors_ = sp.csr_matrix(parts, shape=vectors.shape)
        made._dual_coef_ = sp.csr_matrix(made._dual_coef_)
    made._intercept_ = intercept.copy()
    made.shape_fit_ = (model._n_rows, model.n_features_in_)
    _named(made, model)


def _ridge(model: Any, machine: Exported) -> Any:
    if type(machine.kernel) not in _RIDGE:
        raise ModelFileError(
            f"scikit-learn's KernelRidge has no {type(machine.kernel).__name__} kernel under a name; it has "
            f"{', '.join(_RIDGE.values())}; {_ELSEWHERE}."
        )
    made = sklearn.kernel_ridge.KernelRidge(
        alpha=1.0 / (2.0 * model.C),
        kernel=_RIDGE[type(machine.kernel)],
        gamma=getattr(machine.kernel, "gamma", None),
        degree=getattr(machine.kernel, "degree", 3),
        coef0=getattr(machine.kernel, "coef0", 0.0),
    )
    coef, vectors = machine.coef.T, machine.vectors
    if machine.kernel.overlap == "given":  # which wants all rows
        coef = np.zeros((model._n_rows, len(machine.coef)))
        coef[model.support_], vectors = machine.coef.T, np.eye(model._n_rows)
    made.dual_coef_, made.X_fit_ = coef[:, 0] if model._single_target else coef, vectors
    _named(made, model)
    if not model.fit_intercept:
        return made
    centring = sklearn.preprocessing.StandardScaler(with_std=False)
    moved = sklearn.compose.TransformedTargetRegressor(made, transformer=centring)
    # The mean of targets is what the transformer adds to predictions; here it is the intercept.
    moved.transformer_ = sklearn.clone(centring).fit(machine.intercept[None, :])
    moved.regressor_, moved._training_dim = made, 1 if model._single_target else 2
    return _named(moved, model)


def _named(made: Any, model: Any) -> Any:
    """With the number, and where they are known the names, of the features."""
    _give(made, "n_features_in_", model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        _give(made, "feature_names_in_", model.feature_names_in_)
    return made


def _give(made: Any, name: str, value: Any) -> None:
    """Set an attribute, unless this version of scikit-learn takes it from elsewhere."""
    if not isinstance(getattr(type(made), name, None), property):
        setattr(made, name, value)
