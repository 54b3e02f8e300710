"""One fit, watched as options ask, and what is said of it."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from parablock.cli.failures import say
from parablock.cli.models import model_format
from parablock.cli.ranks import is_first
from parablock.cli.scaling import Scaler, save_scaling, told, wants_scaling
from parablock.datasets import Data, DataError
from parablock.kernels import make_kernel
from parablock.monitor import relative_gap
from parablock.scaling import Scaling

_ADVICE = {
    "out of iterations": "raise --max-iter or --tol, or scale the features",
    "stalled": "the numbers have no more digits to give: use --dtype float64 on the CPU, or raise --tol",
    "untrained": "there is no model to write, and the file is left as it was",
    "interrupted": "the model is usable; with --checkpoint and --resume a later run can go on",
    "stopped": "the model is usable; with --checkpoint and --resume a later run can go on",
}


def fit(model: Any, data: Data, scale: Scaler, options: argparse.Namespace, tell: Callable[[str], None]) -> None:
    """Train, with the callbacks that the options ask for. The rows that are trained with tell how to scale."""
    from parablock.callbacks import EarlyStopping, JSONLog, ProgressBar, TimeLimit

    X, y, stopping = data.X, data.y, None
    callbacks: list[Any] = []
    if options.early_stopping:
        X, X_valid, y, y_valid = held_out(model, data, options)
        stopping = EarlyStopping(X_valid, y_valid, patience=options.patience)
        callbacks.append(stopping)
    _scale(model, X, data.names, scale, options, tell)
    if options.time_limit is not None:
        callbacks.append(TimeLimit(options.time_limit))
    if options.log is not None:
        callbacks.append(JSONLog(options.log))
    if not (options.quiet or options.verbose):
        callbacks.append(ProgressBar())
    model.set_callbacks(*callbacks)
    started = time.perf_counter()
    with warnings.catch_warnings():
        # Why training ended is said below, in the words of options; what a converged model is worth is not.
        warnings.filterwarnings("ignore", ".* outer iterations: the largest violation", ConvergenceWarning)
        model.fit(X, y)
    if data.names is not None:
        model.feature_names_in_ = np.array(data.names, dtype=object)
    if not is_first(options.engine):
        return
    if not is_untrained(model):
        tell(_summary(model, time.perf_counter() - started))
    if stopping is not None and stopping.scores_:
        tell(
            f"best of {len(stopping.scores_)} scores on {len(y_valid):,} rows that were held out: "
            f"{stopping.best_score_:.4f} in iteration {stopping.best_iteration_}"
        )
    # It ended for want of something better, and not because time was up.
    waited = stopping is not None and model.n_iter_ - stopping.best_iteration_ >= options.patience
    _warn(model, stopped_early=waited)


def _scale(
    model: Any, X: Any, names: list[str] | None, scale: Scaler, options: argparse.Namespace, tell: Callable[[str], None]
) -> None:
    """Let the model scale its rows, and say so."""
    scaling = scale(X)
    if scaling is None:
        if not options.no_scaling and options.kernel != "precomputed" and wants_scaling(X):
            tell("the features are in different units, and kernels compare distances: try --scale")
        return
    if model_format(options.output, otherwise="pbk") == "libsvm":
        _refuse_what_libsvm_cannot_hold(scaling, options)
    model._scaling = scaling
    tell(told(scaling, options))
    if options.save_scaling is not None:
        save_scaling(options.save_scaling, scaling, names, options.engine)
        tell(f"{options.save_scaling} has the same scaling, for convert; predict needs no --use-scaling")


def _refuse_what_libsvm_cannot_hold(scaling: Scaling, options: argparse.Namespace) -> None:
    """Before the fit: afterwards it would have been in vain."""
    from parablock.models.libsvm_folding import folds

    if not folds(make_kernel(options.kernel), scaling):
        raise DataError(
            f"{options.output}: LIBSVM's format has no scaling, and with the {options.kernel} kernel it cannot be put "
            "into the support vectors. Write a .pbk or .onnx file, or train on the features as they are: --no-scaling"
        )


def is_untrained(model: Any) -> bool:
    """Whether a fit was interrupted before there was anything to keep."""
    return model.stop_reason_ == "interrupted" and not model.n_iter_


def held_out(model: Any, data: Data, options: argparse.Namespace) -> list[Any]:
    """Rows to train on and to validate with, then the labels of both."""
    classes = data.y if is_classifier(model) else None
    return train_test_split(data.X, data.y, test_size=options.hold_out, random_state=options.seed, stratify=classes)


def _summary(model: Any, seconds: float) -> str:
    gap = relative_gap(-model.dual_objective_, model.duality_gap_)
    return (
        f"trained {type(model).__name__} in {seconds:.1f} s: {model.n_iter_} iterations, "
        f"{len(model.support_):,} support vectors, violation {model.violation_:.1e} (tolerance {model.tol:g}), "
        f"duality gap {gap:.1e} of the objective, of the kernel matrix in the precision of the data"
    )


def _warn(model: Any, stopped_early: bool) -> None:
    reason = model.stop_reason_
    if reason == "converged" or (reason == "stopped" and stopped_early):
        return
    if reason == "stalled" and model.violation_ <= model.tol:
        return  # what seemed converged was found out in a last check, of which the fit has warned
    what = {"out of iterations": "not converged", "stopped": "stopped by --time-limit"}.get(reason, reason)
    reached = f"after {model.n_iter_} iterations, violation {model.violation_:.2g}"
    say(f"parablock: warning: {what} {reached}: {_ADVICE['untrained' if is_untrained(model) else reason]}")
