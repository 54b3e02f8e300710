"""What can be trained: tasks and kernels by name or by LIBSVM's numbers, and the estimator that options ask for."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.cli.failures import UsageError
from parablock.datasets import DataError
from parablock.kernels import KERNELS

TASKS = {
    "svc": "KernelSVC",
    "logistic": "KernelLogisticRegression",
    "svr": "KernelSVR",
    "ridge": "KernelRidge",
    "quantile": "KernelQuantileRegressor",
}
CLASSIFIERS = ("svc", "logistic")
_SVM_TYPES = {"0": "svc", "3": "svr"}
_OTHER_SVM_TYPES = {"1": "nu-SVC", "2": "one-class SVM", "4": "nu-SVR"}
_KERNEL_TYPES = {"0": "linear", "1": "polynomial", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
# Options that belong to some tasks alone, and what their estimators call them.
_OWN = {"epsilon": ("svr",), "quantile": ("quantile",), "class_weight": CLASSIFIERS}


def task(text: str) -> str:
    name = _SVM_TYPES.get(text, text)
    if name not in TASKS:
        what = f"{text} ({_OTHER_SVM_TYPES[text]})" if text in _OTHER_SVM_TYPES else repr(text)
        raise ArgumentTypeError(f"{what} is not offered; there are svc (0), logistic, svr (3), ridge and quantile")
    return name


def kernel(text: str) -> str:
    name = _KERNEL_TYPES.get(text, text)
    if name not in KERNELS:
        numbers = ", ".join(f"{number} {name}" for number, name in _KERNEL_TYPES.items())
        raise ArgumentTypeError(f"{text!r} is no kernel; there are {', '.join(sorted(KERNELS))}, or {numbers}")
    return name


def class_weight(text: str) -> str | tuple[str, float]:
    """LABEL=WEIGHT, or "balanced"."""
    label, equals, weight = text.rpartition("=")
    try:
        value = float(weight) if equals else 0.0
    except ValueError:
        value = 0.0
    if text == "balanced" or (label and 0 < value < float("inf")):
        return text if text == "balanced" else (label, value)
    raise ArgumentTypeError(f"{text!r} is neither LABEL=WEIGHT, with a positive weight, nor balanced")


def with_weights_spelled_out(arguments: Sequence[str]) -> list[str]:
    """svm-train's options ``-w1 5`` and ``-w-1 2`` as ``--class-weight 1=5`` and ``--class-weight=-1=2``."""
    spelled, rest = [], list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument.startswith("-w"):
            if len(argument) == 2 or not rest:
                raise UsageError(f"{argument!r} should be -wLABEL WEIGHT, such as -w1 5")
            spelled.append(f"--class-weight={argument[2:]}={rest.pop(0)}")
        else:
            spelled.append(argument)
    return spelled


def make_model(options: argparse.Namespace, y: np.ndarray) -> Any:
    """The estimator for the labels y."""
    import parablock
    from parablock import Checkpoint

    own = {name: getattr(options, name) for name in _OWN if getattr(options, name) is not None}
    if "class_weight" in own:
        own["class_weight"] = _weights(own["class_weight"], np.unique(y))
    checkpoint = options.checkpoint
    return getattr(parablock, TASKS[options.task])(
        C=options.C,
        kernel=options.kernel,
        gamma=options.gamma,
        degree=options.degree,
        coef0=options.coef0,
        fit_intercept=options.intercept,
        tol=options.tol,
        max_iter=options.max_iter,
        device=options.device,
        engine=options.engine,
        n_jobs=options.jobs,
        memory_limit=options.memory_limit,
        checkpoint=None if checkpoint is None else Checkpoint(checkpoint, seconds=options.checkpoint_every),
        resume="auto" if options.resume else False,
        verbose=options.verbose,
        random_state=options.seed,
        **own,
    )


def check_task(options: argparse.Namespace) -> None:
    """Refuse options that the task does not have."""
    for name, tasks in _OWN.items():
        if getattr(options, name) is not None and options.task not in tasks:
            raise UsageError(
                f"--{name.replace('_', '-')} is an option of --task {' and '.join(tasks)}, not {options.task}"
            )
    if "balanced" in (options.class_weight or []) and len(options.class_weight) > 1:
        raise UsageError("--class-weight balanced cannot be combined with weights of single classes")


def _weights(given: list[str | tuple[str, float]], classes: np.ndarray) -> str | dict[Any, float]:
    if "balanced" in given:
        return "balanced"
    weights = {}
    for label, weight in (pair for pair in given if not isinstance(pair, str)):
        found = [known for known in classes.tolist() if _is_label(label, known)]
        if not found:
            raise DataError(
                f"a weight was given for the class {label!r}; the data has {', '.join(map(str, classes[:20]))}"
            )
        weights[found[0]] = weight
    return weights


def _is_label(text: str, label: Any) -> bool:
    try:
        return bool(float(text) == label) if not isinstance(label, str) else text == label
    except ValueError:
        return False
