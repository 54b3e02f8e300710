"""parablock's own model files, .pbk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from parablock import estimators
from parablock.devices.cpu import CpuDevice
from parablock.estimators import KernelClassifier, KernelRegressor
from parablock.models import container
from parablock.models.chosen import chosen
from parablock.models.files import AnyPath, ModelFileError
from parablock.models.fitted import SCALINGS, fitted_from_json, fitted_to_json
from parablock.models.labels import labels_from_json
from parablock.models.parameters import kernel_from_json, kernel_to_json, parameters_from_json, parameters_to_json

if TYPE_CHECKING:
    from parablock.tables import AutoKernelClassifier, AutoKernelRegressor

_ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator
    for estimator in (
        estimators.KernelSVC, estimators.KernelLogisticRegression, estimators.KernelSVR, estimators.KernelRidge,
        estimators.KernelQuantileRegressor,
    )
}  # fmt: skip
_FOR_TABLES = ("AutoKernelClassifier", "AutoKernelRegressor")
_KNOWN = [*_ESTIMATORS, *_FOR_TABLES]


def _is_for_tables(model: Any) -> bool:
    """Whether it is one of the estimators of `parablock.tables`, which are imported when they are needed."""
    kind = type(model)
    return kind.__name__ in _FOR_TABLES and kind.__module__.startswith("parablock.tables.")


def save(model: Any, path: AnyPath) -> None:
    """Write a fitted estimator to a file that `load` reads.

    The file is a safetensors file (https://github.com/huggingface/safetensors) with plain JSON in its header: no
    pickle, so it can be opened from anyone, and it can be read in other languages. It takes the place of an earlier one
    at once, or not at all.

    Parameters
    ----------
    model : KernelSVC, KernelLogisticRegression, KernelSVR, KernelRidge, KernelQuantileRegressor, \
AutoKernelClassifier or AutoKernelRegressor
        Fitted. Of a search, such as KernelSVCCV or GridSearchCV, its `best_estimator_` is written. Of a Pipeline of
        scalers that ends in such an estimator (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler) an estimator
        that scales rows itself. With a kernel that is a Python function, or with a class or loss of your own, it
        cannot be saved: a file that is safe to open cannot hold programs.
    path : str or path
        Where to; the usual ending is .pbk.

    Examples
    --------
    >>> import os, tempfile
    >>> import parablock
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = parablock.KernelSVC(C=10, gamma=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "moons.pbk")
    ...     parablock.save(model, path)
    ...     same = parablock.load(path)
    >>> bool((same.decision_function(X) == model.decision_function(X)).all())
    True
    """
    from parablock import __version__

    model = chosen(model)
    name = type(model).__name__
    if _is_for_tables(model):
        from parablock.models.tables import table_to_json

        check_is_fitted(model)
        told, arrays = table_to_json(model)
        container.write(path, {"library_version": __version__, **told}, arrays)
        return
    if _ESTIMATORS.get(name) is not type(model):
        raise ModelFileError(
            f"{name} cannot be saved: a model file holds one of {', '.join(_KNOWN)}. Estimators and losses of "
            "your own are programs, which a file that is safe to open cannot hold; parablock.models.to_libsvm and "
            "to_onnx write what such an estimator predicts with."
        )
    check_is_fitted(model)
    kernel = kernel_to_json(model._make_kernel())
    parameters, arrays = parameters_to_json(model)
    fitted, tensors = fitted_to_json(model)
    record = {
        "library_version": __version__,
        "estimator": name,
        "kernel": kernel,
        "parameters": parameters,
        "fitted": fitted,
    }
    version = container.VERSION if model._scaling is None else container.WITH_SCALING
    container.write(path, record, {**tensors, **arrays}, version)


def load(path: AnyPath) -> KernelClassifier | KernelRegressor | AutoKernelClassifier | AutoKernelRegressor:
    """The fitted estimator in a file that `save` wrote.

    It predicts what the saved one predicted, to the last bit on the same device, and can be fitted again, also with
    ``warm_start=True``. It needs no GPU, whatever trained it: ``device="cuda"`` comes back as ``"auto"``, which is a
    GPU where there is one and the CPU elsewhere. ``engine``, ``checkpoint`` and ``resume`` belong to the run that
    trained it, and come back as they are by default.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    KernelSVC, KernelLogisticRegression, KernelSVR, KernelRidge, KernelQuantileRegressor, AutoKernelClassifier or \
AutoKernelRegressor
        To a type checker a `KernelClassifier`, a `KernelRegressor` or one of the last two;
        ``isinstance(model, KernelSVC)`` tells it which.

    Raises
    ------
    ModelFileError
        For a file that is damaged, of another kind, or of a version, class or kernel that this parablock does not know.

    Examples
    --------
    >>> import os, tempfile
    >>> import parablock
    >>> model = parablock.KernelRidge(C=10).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "line.pbk")
    ...     model.save(path)
    ...     parablock.load(path).get_params()["C"]
    10
    """
    record, tensors = container.read(path)
    record.text("library_version")
    name = record.text("estimator", _KNOWN)
    if name in _FOR_TABLES:
        from parablock.models.tables import table_from_json

        return table_from_json(name, record, tensors)
    kind = _ESTIMATORS[name]
    parameters = parameters_from_json(record.fields("parameters"), tensors)
    if parameters.get("device") == "cuda":
        parameters["device"] = "auto"
    try:
        model = kind(**parameters)
        model._validate_params()
        CpuDevice(model.n_jobs, model.memory_limit)  # which has its own idea of what these may be
    except (TypeError, ValueError) as error:
        raise record.error(f"its parameters make no sense ({error})") from error
    fitted = record.fields("fitted")
    vars(model).update(fitted_from_json(fitted, tensors, is_classifier(model)))
    fitted.done()
    kernel, stored = model._make_kernel(), kernel_from_json(record.fields("kernel"))
    record.require(kernel_to_json(kernel) == kernel_to_json(stored), "its kernel is not that of its parameters")
    given = kernel.overlap == "given"
    fits = given == (model.support_vectors_.shape == (0, 0))
    record.require(fits, "its support vectors are not those of its kernel")
    record.require(model._scaling is None or not given, "it scales a kernel matrix, which has no features")
    record.done()
    tensors.done()
    return model


def describe_pbk(path: AnyPath) -> dict[str, Any]:
    """What is in a model file, from its header alone."""
    record = container.read_record(path)
    name = record.text("estimator")
    if name in _FOR_TABLES:
        from parablock.models.tables import describe_table

        return describe_table(path, record, name)
    fitted = record.fields("fitted")
    data, partition = fitted.fields("data"), fitted.fields("partition")
    scaling = fitted.text("scaling", SCALINGS) if "scaling" in fitted.values else None
    certificate = fitted.fields("certificate")
    described = {
        "format": container.FORMAT,
        "format_version": container.VERSION if scaling is None else container.WITH_SCALING,
        "library_version": record.text("library_version"),
        "estimator": name,
        "kernel": record.fields("kernel").values,
        "parameters": record.fields("parameters").values,
        "n_features": data.integer("features", 1),
        "scaling": scaling,
        "n_outputs": fitted.integer("outputs", 1),
        "n_support_vectors": fitted.integer("support_vectors"),
        "data": f"{data.text('kind')} {data.text('dtype')}",
        "n_rows": fitted.integer("passed_rows", 1),
        "partition": partition.text("method"),
        "predictions": fitted.listed("predictions", str),
        "certificate": certificate.values,
        "bytes": os.path.getsize(path),
    }
    if "classes" in fitted.values:
        described["classes"] = labels_from_json(fitted.fields("classes")).tolist()
    return described
