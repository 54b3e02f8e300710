"""Pipelines of scalers that end in a machine of ours, as that machine with a scaling of its own."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import sklearn  # imports its modules when they are first named
from sklearn.utils.validation import check_is_fitted

from parablock.estimators._machine import KernelMachine
from parablock.kernels import Precomputed, kernel_is
from parablock.models.files import ModelFileError
from parablock.scaling import Scaling


def is_pipeline(model: Any) -> bool:
    return isinstance(model, sklearn.pipeline.Pipeline)


def folded(pipeline: Any, machine: Any) -> Any:
    """The fitted last step of a pipeline, which does to rows what the steps before it do.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted.
    machine : estimator
        Its last step, or what that has chosen.
    """
    if not isinstance(machine, KernelMachine):
        raise ModelFileError(
            f"This Pipeline ends in {type(machine).__name__}; one that is written as a model ends in an estimator of "
            "parablock."
        )
    check_is_fitted(machine)
    steps = [(name, step) for name, step in pipeline.steps[:-1] if step is not None and not _passes(step)]
    scaling = None
    for name, step in steps:
        own = _scaling_of(name, step)
        scaling = own if scaling is None else scaling.then(own)
    if scaling is None:
        return machine
    if kernel_is(machine.kernel, Precomputed):
        raise ModelFileError(
            f"The step {steps[0][0]!r} of this Pipeline scales a kernel matrix (kernel='precomputed'), which has no "
            "features: take the step out, and scale the rows before their kernel values are computed."
        )
    made = copy(machine)
    made._fingerprint = None  # it is of the rows that the steps before gave
    made._scaling = scaling if machine._scaling is None else scaling.then(machine._scaling)
    if hasattr(made, "feature_names_in_"):
        del made.feature_names_in_
    if hasattr(steps[0][1], "feature_names_in_"):
        made.feature_names_in_ = steps[0][1].feature_names_in_
    return made


def _passes(step: Any) -> bool:
    return isinstance(step, str) and step == "passthrough"


def _scaling_of(name: str, step: Any) -> Scaling:
    kinds = _kinds()
    if type(step) not in kinds:
        raise ModelFileError(
            f"The step {name!r} of this Pipeline is a {type(step).__name__}, and only scalers are kept with a model: "
            f"{', '.join(kind.__name__ for kind in kinds)}. Save the last step, model[-1], and keep the steps before "
            "it in another way, such as skops or joblib."
        )
    check_is_fitted(step)
    if getattr(step, "clip", False):
        raise ModelFileError(
            f"The step {name!r} of this Pipeline is a {type(step).__name__} with clip=True, which does more than shift "
            "and scale. Use clip=False, or save the last step, model[-1], and keep the steps before it in another way."
        )
    shift, scale = kinds[type(step)](step)
    count = step.n_features_in_
    return Scaling(
        np.zeros(count) if shift is None else np.array(shift, dtype=np.float64),
        np.ones(count) if scale is None else np.array(scale, dtype=np.float64),
    )


def _kinds() -> dict[type, Callable[[Any], tuple[Any, Any]]]:
    """Of every scaler how its shift and factor are found; None where it has none."""
    scalers = sklearn.preprocessing
    return {
        scalers.StandardScaler: lambda step: (
            step.mean_ if step.with_mean else None,
            1.0 / step.scale_ if step.with_std else None,
        ),
        scalers.MinMaxScaler: lambda step: (-step.min_ / step.scale_, step.scale_),
        scalers.MaxAbsScaler: lambda step: (None, 1.0 / step.scale_),
        scalers.RobustScaler: lambda step: (
            step.center_ if step.with_centering else None,
            1.0 / step.scale_ if step.with_scaling else None,
        ),
    }
