"""Model files: parablock's own, LIBSVM's and ONNX; and models of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parablock.estimators import KernelClassifier, KernelRegressor
from parablock.models.files import LIBSVM, AnyPath, ModelFileError, kind_of
from parablock.models.libsvm import describe_libsvm, from_libsvm, to_libsvm
from parablock.models.libsvm_models import LibsvmClassifier, LibsvmOneClass, LibsvmRegressor
from parablock.models.onnx_export import to_onnx
from parablock.models.pbk import describe_pbk, load, save
from parablock.models.scikit import to_sklearn

if TYPE_CHECKING:
    from parablock.tables import AutoKernelClassifier, AutoKernelRegressor


def load_any(
    path: AnyPath,
) -> (
    KernelClassifier
    | KernelRegressor
    | AutoKernelClassifier
    | AutoKernelRegressor
    | LibsvmClassifier
    | LibsvmRegressor
    | LibsvmOneClass
):
    """The model in a file of either kind, which is told by what is in it.

    Parameters
    ----------
    path : str or path
        Of a file of `parablock.save`, or of a LIBSVM model.

    Returns
    -------
    estimator
        As from `parablock.load` or `parablock.models.from_libsvm`.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock import KernelSVC
    >>> from parablock.models import load_any, to_libsvm
    >>> model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "step")
    ...     model.save(path)
    ...     print(type(load_any(path)).__name__)
    ...     to_libsvm(model, path)
    ...     print(type(load_any(path)).__name__)
    KernelSVC
    LibsvmClassifier
    """
    return from_libsvm(path) if kind_of(path) == LIBSVM else load(path)


def describe(path: AnyPath) -> dict[str, Any]:
    """What is in a model file of either kind, without making an estimator of it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        Plain values, ready for JSON: "format", "kernel", "n_features", "n_support_vectors", "bytes"; "classes" of a
        classifier; "svm_type" of a LIBSVM model; of parablock's own files also "estimator", "parameters", "certificate"
        and more.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock import KernelSVC
    >>> from parablock.models import describe
    >>> model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "step.pbk"))
    ...     told = describe(os.path.join(folder, "step.pbk"))
    >>> told["estimator"], told["kernel"], told["classes"]
    ('KernelSVC', {'name': 'RBF', 'gamma': 1.0}, ['a', 'b'])
    """
    return describe_libsvm(path) if kind_of(path) == LIBSVM else describe_pbk(path)


__all__ = [
    "LibsvmClassifier",
    "LibsvmOneClass",
    "LibsvmRegressor",
    "ModelFileError",
    "describe",
    "from_libsvm",
    "load",
    "load_any",
    "save",
    "to_libsvm",
    "to_onnx",
    "to_sklearn",
]
