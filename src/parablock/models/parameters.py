"""Parameters of estimators, and kernels, as JSON (and tensors where they are arrays), and back."""

from __future__ import annotations

import warnings
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from parablock import kernels
from parablock.kernels import Kernel
from parablock.models.checked import MOST_DEGREE, Fields, Tensors, short
from parablock.models.files import ModelFileError
from parablock.solver import BlockSolver

# Of the run and its machine rather than of the model. A path from a stranger's file would even be written to.
_NOT_KEPT = ("checkpoint", "engine", "resume")
_KERNELS: dict[str, type[Kernel]] = {
    kernel.__name__: kernel
    for kernel in (
        kernels.RBF, kernels.Laplacian, kernels.Chi2, kernels.Matern32, kernels.Matern52, kernels.Linear,
        kernels.Polynomial, kernels.Sigmoid, kernels.Cosine, kernels.Precomputed,
    )
}  # fmt: skip
_PLAIN = (bool, int, float, str, type(None))
_ARRAYS = "biuf"


def kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    name = type(kernel).__name__
    if _KERNELS.get(name) is not type(kernel):
        own = getattr(kernel, "function", kernel)
        raise ModelFileError(
            f"The kernel {getattr(own, '__name__', name)!r} is a program of yours, and a file that is safe to open "
            "holds no programs. Use a kernel of parablock.kernels, or kernel='precomputed' with the matrices of yours."
        )
    parts = vars(kernel)
    if parts.get("degree", 0) > MOST_DEGREE:
        raise ModelFileError(
            f"A model file takes degrees up to {MOST_DEGREE}; this kernel has degree={parts['degree']}."
        )
    return {"name": name, **parts}


def kernel_from_json(told: Fields) -> Kernel:
    kind = _KERNELS[told.text("name", list(_KERNELS), "kernel")]
    parts: dict[str, Any] = {}
    for name in list(told.values):
        parts[name] = told.integer(name, most=MOST_DEGREE) if name == "degree" else told.number(name, finite=True)
    try:
        kernel = kind(**parts)
    except TypeError as error:
        raise told.error(f"its kernel {kind.__name__} has the parameters {', '.join(parts) or 'none'}") from error
    told.require(parts.get("gamma", 1.0) > 0, "the gamma of its kernel is not positive")
    return kernel


def parameters_to_json(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """All that can be kept; what cannot, and is not needed to predict, is warned of."""
    told: dict[str, Any] = {}
    tensors: dict[str, np.ndarray] = {}
    defaults = type(estimator)().get_params()
    for name, value in estimator.get_params(deep=False).items():
        if name in _NOT_KEPT:
            continue
        plain = _scalar(value)
        if type(plain) in _PLAIN:
            told[name] = plain
        elif isinstance(plain, Kernel) or (name == "kernel" and callable(plain)):
            told[name] = {"kernel": kernel_to_json(kernels.make_kernel(plain))}
        elif isinstance(plain, BlockSolver):
            told[name] = {"block_solver": asdict(plain)}
        elif isinstance(plain, dict) and all(type(_scalar(label)) in _PLAIN for label in plain):
            told[name] = {"weights": [[_scalar(label), float(weight)] for label, weight in plain.items()]}
        elif isinstance(plain, (np.ndarray, list, tuple)) and np.asarray(plain).dtype.kind in _ARRAYS:
            told[name] = {"tensor": f"parameters.{name}"}
            tensors[f"parameters.{name}"] = np.asarray(plain)
        else:
            warnings.warn(
                f"{name}={short(plain)} is not kept in the model file, which holds numbers, text and arrays; the "
                f"loaded model will have {name}={defaults[name]!r}. It is not needed to predict."
            )
    return told, tensors


def parameters_from_json(told: Fields, tensors: Tensors) -> dict[str, Any]:
    """Of the right kinds; whether the values are allowed is the estimator's own business."""
    parameters = {}
    for name in list(told.values):
        told.require(name not in _NOT_KEPT, f"it has the parameter {name!r}, which is no part of a model")
        value = told.take(name)
        told.require(type(value) is not int or _is_plain(value), f"its parameter {name!r} is too large a number")
        parameters[name] = value if _is_plain(value) else _special(Fields(told.path, name, value), tensors)
    return parameters


def _special(told: Fields, tensors: Tensors) -> Any:
    kind = next(iter(told.values), "")
    if kind == "kernel":
        value: Any = kernel_from_json(told.fields(kind))
    elif kind == "block_solver":
        value = _block_solver(told.fields(kind))
    elif kind == "weights":
        pairs = told.listed(kind, list)
        good = all(len(pair) == 2 and all(map(_is_plain, pair)) and type(pair[1]) in (int, float) for pair in pairs)
        told.require(good, f"its {told.name} are no pairs of a label and a number")
        value = dict(pairs)
    elif kind == "tensor":
        name = told.text(kind)
        told.require(name == f"parameters.{told.name}", f"its parameter {told.name!r} is said to be elsewhere")
        types = [np.dtype(code) for code in "?bhilqBHILQefd"]
        value = tensors.take(name, types, (None,))
    else:
        raise told.error(f"its parameter {told.name!r} is of a kind that this parablock does not know: {kind!r}")
    told.done()
    return value


def _block_solver(told: Fields) -> BlockSolver:
    names = {field.name for field in fields(BlockSolver)}
    told.require(set(told.values) == names, f"its block solver is not made of {', '.join(sorted(names))}")
    choice, most = told.text("choice"), told.take("max_updates")
    told.require(
        most is None or (type(most) is int and _is_plain(most)), "max_updates of its block solver is no whole number"
    )
    try:
        return BlockSolver(choice, told.number("fraction"), told.number("floor"), most)
    except ValueError as error:
        raise told.error(f"its block solver makes no sense ({error})") from error


def _is_plain(value: Any) -> bool:
    """Whether it is of a plain type, and a whole number no longer than those of a machine."""
    return type(value) in _PLAIN and (type(value) is not int or -(2**63) <= value < 2**64)


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
