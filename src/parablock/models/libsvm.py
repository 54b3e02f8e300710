"""Models for LIBSVM, and models of LIBSVM."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from parablock.models import libsvm_file
from parablock.models.chosen import chosen
from parablock.models.exported import Exported, exported
from parablock.models.files import AnyPath, ModelFileError
from parablock.models.libsvm_file import CLASSIFIERS, LibsvmFile
from parablock.models.libsvm_folding import of_rows_as_they_are
from parablock.models.libsvm_models import LibsvmClassifier, LibsvmOneClass, LibsvmRegressor


def to_libsvm(model: Any, path: AnyPath) -> None:
    """Write a fitted estimator as a LIBSVM model, for `svm-predict` and whatever else reads those.

    LIBSVM predicts the same labels and values, up to rounding. Regressors are written as ``epsilon_svr``, and
    classifiers as ``c_svc``. LIBSVM compares classes in pairs; with more than two classes the comparison of two is
    written as the difference of their decision values, so that the class with the largest one wins all of its
    comparisons. ``svm-predict -b 1`` gives the probabilities of a `KernelLogisticRegression` of two classes.

    Parameters
    ----------
    model : estimator
        Fitted, with the kernel "linear", "polynomial", "rbf" or "sigmoid" and one target, or classes that are whole
        numbers: LIBSVM has no others; or a search, or a Pipeline of scalers, that ends in one. A scaling of features
        can be put into the support vectors of the linear kernel, of the rbf kernel where all features have the same
        factor, and of the other two where nothing is shifted.
    path : str or path

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock import KernelSVC
    >>> from parablock.models import from_libsvm, to_libsvm
    >>> model = KernelSVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "step.model")
    ...     to_libsvm(model, path)
    ...     from_libsvm(path).predict([[0.5], [2.5]])
    array([0, 1])
    """
    machine = exported(chosen(model), "LIBSVM's format")
    if libsvm_file.kernel_name(machine.kernel) is None:
        raise ModelFileError(
            f"LIBSVM has no {type(machine.kernel).__name__} kernel; it has linear, polynomial, rbf and sigmoid. "
            "parablock.save and parablock.models.to_onnx write models with any."
        )
    if machine.scaling is not None:
        machine = of_rows_as_they_are(machine, machine.scaling)
    if machine.classes is not None:
        libsvm_file.write(path, _classifier(machine, _whole_numbers(machine.classes)))
    elif len(machine.coef) == 1:
        libsvm_file.write(path, _file("epsilon_svr", machine, machine.coef, machine.sparse_vectors, -machine.intercept))
    else:
        raise ModelFileError(
            f"A LIBSVM model has one target, and this one has {len(machine.coef)}. Fit one model for each target, or "
            "use parablock.save or parablock.models.to_onnx."
        )


def from_libsvm(path: AnyPath) -> LibsvmClassifier | LibsvmRegressor | LibsvmOneClass:
    """A model that LIBSVM trained (or `to_libsvm` wrote), ready to predict.

    All of LIBSVM's machines and its kernels linear, polynomial, rbf and sigmoid. Predictions are LIBSVM's, computed
    with the kernel products of parablock: in tiles, on all cores, or with ``device="cuda"`` on a GPU.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LibsvmClassifier, LibsvmRegressor or LibsvmOneClass
        With `predict` and `score`, and as the machine has them `decision_function` and `predict_proba`.

    Raises
    ------
    ModelFileError
        For a file that is no LIBSVM model; the message tells the line.

    Examples
    --------
    >>> import os, tempfile
    >>> from parablock.models import from_libsvm
    >>> text = "svm_type epsilon_svr\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho -3\\nSV\\n2 1:5\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "line.model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     from_libsvm(path).predict([[1.0], [2.0]])
    array([13., 23.])
    """
    model = libsvm_file.read(path)
    if model.svm_type in CLASSIFIERS:
        return LibsvmClassifier(model)
    return LibsvmOneClass(model) if model.svm_type == "one_class" else LibsvmRegressor(model)


def describe_libsvm(path: AnyPath) -> dict[str, Any]:
    """What is in a LIBSVM model."""
    model = libsvm_file.read(path)
    described = {
        "format": "LIBSVM model",
        "svm_type": model.svm_type,
        "kernel": {"name": libsvm_file.kernel_name(model.kernel), **vars(model.kernel)},
        "n_features": model.vectors.shape[1],
        "n_support_vectors": model.vectors.shape[0],
        "bytes": os.path.getsize(path),
    }
    if model.labels:
        described["classes"] = sorted(model.labels)
    return described


def _classifier(machine: Exported, labels: list[int]) -> LibsvmFile:
    """Two classes: one comparison, in which LIBSVM's first class is the positive one, our second.

    More: the support vectors of class i are those with a coefficient in its own output, and the comparison of i with j
    adds up coef_i over those of i and -coef_j over those of j; LIBSVM asks for the sign by which comes first.
    """
    if len(labels) == 2:
        groups = [np.flatnonzero(machine.coef[0] > 0), np.flatnonzero(machine.coef[0] < 0)]
        coef, rho = machine.coef[:, np.concatenate(groups)], -machine.intercept
        labels = labels[::-1]
    else:
        groups = [np.flatnonzero(own) for own in machine.coef]
        signs = [np.where(np.arange(len(labels) - 1) < i, -1.0, 1.0) for i in range(len(labels))]
        parts = [np.outer(sign, own[group]) for sign, own, group in zip(signs, machine.coef, groups, strict=True)]
        coef = np.concatenate(parts, axis=1)
        first, second = np.triu_indices(len(labels), 1)
        rho = machine.intercept[second] - machine.intercept[first]
    file = _file("c_svc", machine, coef, machine.sparse_vectors[np.concatenate(groups)], rho)
    lists = {"probA": [-1.0], "probB": [0.0]} if machine.probabilities and len(labels) == 2 else {}
    return LibsvmFile(**{**vars(file), "labels": labels, "counts": [len(group) for group in groups], "lists": lists})


def _file(kind: str, machine: Exported, coef: np.ndarray, vectors: Any, rho: np.ndarray) -> LibsvmFile:
    return LibsvmFile(kind, machine.kernel, rho, coef, vectors)


def _whole_numbers(classes: np.ndarray) -> list[int]:
    whole = classes.dtype.kind in "biuf" and np.all(classes == np.rint(classes.astype(np.float64)))
    if not whole or np.abs(classes.astype(np.float64)).max() >= 2**31:
        raise ModelFileError(
            f"LIBSVM's labels are whole numbers of 32 bits; this model's are {classes.tolist()}. Fit with numbers for "
            "the classes, or use parablock.save or parablock.models.to_onnx, which write any labels."
        )
    return [int(label) for label in classes]
