"""Machines for tables in model files: JSON and tensors of what a fit has learned, and back.

The rows are kept as numbers, before kernels see them, and what kernels see is made of them again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from parablock.models import container
from parablock.models.checked import FLOAT64, INT64, Fields, Tensors
from parablock.models.files import AnyPath
from parablock.models.labels import labels_from_json, labels_to_json
from parablock.models.parameters import parameters_from_json, parameters_to_json
from parablock.tables import AutoKernelClassifier, AutoKernelRegressor
from parablock.tables.columns import Code, Columns, Number, TwoValued, View
from parablock.tables.fitting import Fitted, Machine
from parablock.tables.intervals import Jackknife, Judge, Trial
from parablock.tables.kernels import FullKernel, LaplaceKernel, MetricKernel, PowerKernel
from parablock.tables.reading import Reader, Source

_ESTIMATORS: dict[str, type[AutoKernelClassifier | AutoKernelRegressor]] = {
    "AutoKernelClassifier": AutoKernelClassifier,
    "AutoKernelRegressor": AutoKernelRegressor,
}
_KERNELS: dict[str, type[MetricKernel]] = {
    kernel.__name__: kernel for kernel in (LaplaceKernel, PowerKernel, FullKernel)
}
_OF_CODES = ("codes.means", "codes.scales")
_REASONS = ("finished", "time", "interrupted")
_MOST = 1 << 31
_MOST_EXPONENT = 2000  # of two; that of a float is smaller


def table_to_json(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The record of a fitted estimator, and its tensors."""
    parameters, tensors = parameters_to_json(model)
    fitted: Fitted = model._fitted
    names = getattr(model, "feature_names_in_", None)
    told: dict[str, Any] = {
        "features": model.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "sources": [
            [one.name, None if one.levels is None else list(one.levels), one.exponent] for one in _sources(model)
        ],
        "rows": len(fitted.values),
        "outputs": len(fitted.mean),
        "machines": [type(machine.kernel).__name__ for machine in fitted.machines],
        "score_estimate": float(model.score_estimate_),
        "stop_reason": model.stop_reason_,
    }
    told["grouped"] = model._trial.group is not None
    told["judges"] = _trial_to_tensors(model._trial, tensors)
    tensors |= {"rows": fitted.values, "mean": fitted.mean, **_columns_to_tensors(fitted.columns)}
    for i, machine in enumerate(fitted.machines):
        tensors |= _kernel_to_tensors(f"machine {i}", machine.kernel, machine.z)
        tensors[f"machine {i}.alpha"] = machine.alpha
    if isinstance(model, AutoKernelClassifier):
        told |= {"classes": labels_to_json(model.classes_), "temperature": float(model.temperature_)}
    else:
        told["single_target"] = model._single_target
        tensors |= {
            "jackknife.place": model._jackknife.place.astype(np.int64),
            "jackknife.residual": model._jackknife.residual,
            "jackknife.weight": model._jackknife.weight,
        }
        tensors |= {"target.mean": model._mean, "target.spread": model._spread}
        tensors["target.exponent"] = np.asarray(model._exponent, dtype=np.int64)
    return {"estimator": type(model).__name__, "parameters": parameters, "fitted": told}, tensors


def table_from_json(name: str, record: Fields, tensors: Tensors) -> AutoKernelClassifier | AutoKernelRegressor:
    """The fitted estimator of a record that has been read up to its parameters."""
    parameters = parameters_from_json(record.fields("parameters"), tensors)
    try:
        model = _ESTIMATORS[name](**parameters)
        model._validate_params()
    except (TypeError, ValueError) as error:
        raise record.error(f"its parameters make no sense ({error})") from error
    told = record.fields("fitted")
    model.n_features_in_ = told.integer("features", 1, _MOST)
    names = told.take("feature_names")
    if names is not None:
        good = isinstance(names, list) and all(type(one) is str for one in names)
        told.require(good and len(names) == model.n_features_in_, "its feature names are not one text a feature")
        model.feature_names_in_ = np.array(names, dtype=object)
    model._reader = Reader(tuple(_source(told, one) for one in told.listed("sources", list)))
    told.require(len(model._reader.sources) == model.n_features_in_, "its columns are not as many as its features")
    model._fitted = _fitted_from_json(told, tensors, model._reader.n_levels)
    model._trial = _trial(told, tensors, model._fitted)
    outputs = len(model._fitted.mean)
    model.score_estimate_ = told.number("score_estimate")
    model.stop_reason_ = told.text("stop_reason", _REASONS, "reason for its end")
    if isinstance(model, AutoKernelClassifier):
        model.classes_ = labels_from_json(told.fields("classes"))
        columns = 1 if len(model.classes_) == 2 else len(model.classes_)
        told.require(columns == outputs, "its outputs are not those of its classes")
        model.temperature_ = told.number("temperature", finite=True)
    else:
        model._single_target = told.take("single_target")
        told.require(type(model._single_target) is bool, "'single_target' is neither true nor false")
        told.require(outputs == 1 or not model._single_target, "it has several outputs for a single target")
        model._mean = tensors.take("target.mean", FLOAT64, (outputs,))
        model._spread = tensors.take("target.spread", FLOAT64, (outputs,))
        model._exponent = tensors.take("target.exponent", INT64, (outputs,))
        told.require(np.abs(model._exponent).max() < _MOST_EXPONENT, "the exponent of a target is too large")
        model._jackknife = _jackknife(told, tensors, model._trial)
    told.done()
    record.done()
    tensors.done()
    return model


def describe_table(path: AnyPath, record: Fields, name: str) -> dict[str, Any]:
    """What is in the file, from its record alone."""
    fitted = record.fields("fitted")
    described = {
        "format": container.FORMAT,
        "format_version": container.VERSION,
        "library_version": record.text("library_version"),
        "estimator": name,
        "parameters": record.fields("parameters").values,
        "n_features": fitted.integer("features", 1),
        "n_outputs": fitted.integer("outputs", 1),
        "n_rows": fitted.integer("rows"),
        "machines": fitted.listed("machines", str),
        "score_estimate": fitted.number("score_estimate"),
        "stop_reason": fitted.text("stop_reason"),
        "bytes": os.path.getsize(path),
    }
    if "classes" in fitted.values:
        described["classes"] = labels_from_json(fitted.fields("classes")).tolist()
    return described


# ---------------------------------------------------------------------------------------------------------- parts


def _sources(model: Any) -> tuple[Source, ...]:
    return model._reader.sources


def _source(told: Fields, one: list[Any]) -> Source:
    told.require(len(one) == 3, "a column of it is not told by three values")
    name, levels, exponent = one
    text = levels is None or (
        isinstance(levels, list) and levels and all(level is None or type(level) is str for level in levels)
    )
    told.require(type(name) is str and text, "a column of it has no name, or levels that are not text")
    told.require(type(exponent) is int and abs(exponent) < _MOST_EXPONENT, "the exponent of a column is too large")
    return Source(name, None if levels is None else tuple(levels), exponent)


def _fitted_from_json(told: Fields, tensors: Tensors, n_levels: list[int]) -> Fitted:
    n, outputs = told.integer("rows", 1, _MOST), told.integer("outputs", 1, _MOST)
    values = tensors.take("rows", FLOAT64, (n, len(n_levels)), finite=False)
    told.require(not np.isinf(values).any(), "its rows have infinite values")
    mean = tensors.take("mean", FLOAT64, (outputs,))
    columns = _columns_from_tensors(told, tensors, n_levels, outputs)
    view = columns.view(values)
    kinds = told.listed("machines", str)
    told.require(set(kinds) <= set(_KERNELS), f"it has machines that this parablock does not know: {kinds}")
    machines = [_machine(kind, f"machine {i}", tensors, view, outputs) for i, kind in enumerate(kinds)]
    return Fitted(columns, machines, mean, values)


def _machine(kind: str, name: str, tensors: Tensors, view: View, outputs: int) -> Machine:
    kernel = _kernel(kind, name, tensors, view.X.shape[1], view.numeric)
    z = tensors.take(f"{name}.z", FLOAT64, (kernel.size,))
    return Machine(kernel, z, view, tensors.take(f"{name}.alpha", FLOAT64, (len(view), outputs)))


def _kernel(kind: str, name: str, tensors: Tensors, d: int, k: int) -> MetricKernel:
    if kind == FullKernel.__name__:
        return FullKernel(d, k, tensors.take(f"{name}.log_w", FLOAT64, (d,)))
    return (LaplaceKernel if kind == LaplaceKernel.__name__ else PowerKernel)(d, k)


def _kernel_to_tensors(name: str, kernel: MetricKernel, z: np.ndarray) -> dict[str, np.ndarray]:
    more = {f"{name}.log_w": kernel.log_w} if isinstance(kernel, FullKernel) else {}
    return {f"{name}.z": z, **more}


def _trial_to_tensors(trial: Trial, tensors: dict[str, np.ndarray]) -> list[list[str]]:
    """Gives back the kernels of each judge. The rows are the first ones of the model."""
    tensors |= {"trial.target": trial.target, "trial.weight": trial.weight}
    if trial.group is not None:
        tensors["trial.group"] = trial.group.astype(np.int64)
    for i, judge in enumerate(trial.judges):
        codes = {name: array for name, array in _columns_to_tensors(judge.columns).items() if name in _OF_CODES}
        tensors |= {f"judge {i}.{name}": array for name, array in codes.items()}
        tensors[f"judge {i}.rows"] = judge.rows.astype(np.int64)
        for k, (kernel, z) in enumerate(judge.machines):
            tensors |= _kernel_to_tensors(f"judge {i}.{k}", kernel, z)
    return [[type(kernel).__name__ for kernel, _ in judge.machines] for judge in trial.judges]


def _trial(told: Fields, tensors: Tensors, fitted: Fitted) -> Trial:
    outputs = len(fitted.mean)
    target = tensors.take("trial.target", FLOAT64, (None, outputs))
    n = len(target)
    told.require(0 < n <= len(fitted.values), "it has more rows on trial than rows")
    weight = tensors.take("trial.weight", FLOAT64, (n,))
    told.require((weight > 0).all(), "it has weights that are not positive")
    grouped = told.take("grouped")
    told.require(type(grouped) is bool, "'grouped' is neither true nor false")
    group = tensors.numbers("trial.group", n) if grouped else None
    told.require(group is None or (np.diff(group, prepend=0) >= 0).all(), "rows of its groups are not neighbours")
    judges, values = [], fitted.values[:n]
    for i, kinds in enumerate(told.listed("judges", list)):
        told.require(kinds and set(map(str, kinds)) <= set(_KERNELS), f"it has judges that are not known: {kinds}")
        columns = fitted.columns
        means = _apart(
            told, tensors, f"judge {i}.codes.means", np.array([len(one.means) for one in columns.codes], int)
        )
        scales = tensors.take(f"judge {i}.codes.scales", FLOAT64, (len(columns.codes), 3))
        codes = [
            replace(code, means=mean, overall=float(overall), middle=float(middle), scale=float(scale))
            for code, mean, (overall, middle, scale) in zip(columns.codes, means, scales, strict=True)
        ]
        machines = []
        for k, kind in enumerate(kinds):
            name = f"judge {i}.{k}"
            kernel = _kernel(kind, name, tensors, len(columns), 2 * len(columns.numbers) + len(codes))
            machines.append((kernel, tensors.take(f"{name}.z", FLOAT64, (kernel.size + 1,))))
        judges.append(Judge(replace(columns, codes=codes), machines, tensors.numbers(f"judge {i}.rows", n)))
    judged = np.sort(np.concatenate([judge.rows for judge in judges])) if judges else np.arange(n)
    told.require(np.array_equal(judged, np.arange(n)), "its judges do not judge every row once")
    return Trial(judges, values, target, weight, group)


def _jackknife(told: Fields, tensors: Tensors, trial: Trial) -> Jackknife:
    place = tensors.numbers("jackknife.place", len(trial.values))
    residual = tensors.take("jackknife.residual", FLOAT64, (len(place), trial.target.shape[1]))
    weight = tensors.take("jackknife.weight", FLOAT64, (len(place),))
    told.require((weight > 0).all(), "it has weights that are not positive")
    return Jackknife(trial, place, residual, weight)


def _columns_to_tensors(columns: Columns) -> dict[str, np.ndarray]:
    """Numbers of all columns of a kind in one tensor, and lists of several columns behind each other."""
    numbers, codes, pairs = columns.numbers, columns.codes, columns.pairs
    level = [_MOST if one.level is None else one.level for one in pairs]
    return {
        "numbers.kinds": _whole([[one.source, len(one.points)] for one in numbers], 2),
        "numbers.scales": _real([[one.median, one.scale] for one in numbers], 2),
        "numbers.points": _behind([one.points for one in numbers]),
        "numbers.places": _behind([one.places for one in numbers]),
        "codes.kinds": _whole([[one.source, one.width, one.target, len(one.means)] for one in codes], 4),
        "codes.scales": _real([[one.overall, one.middle, one.scale] for one in codes], 3),
        "codes.means": _behind([one.means for one in codes]),
        "pairs.kinds": _whole([[one.source, one_level] for one, one_level in zip(pairs, level, strict=True)], 2),
        "pairs.scales": _real([[one.low, one.high, one.missing, one.gap] for one in pairs], 4),
    }


def _columns_from_tensors(told: Fields, tensors: Tensors, n_levels: list[int], outputs: int) -> Columns:
    n = len(n_levels)
    kinds, scales = _kinds(told, tensors, "numbers", 2, 2, n)
    points, places = (_apart(told, tensors, f"numbers.{one}", kinds[:, 1]) for one in ("points", "places"))
    told.require(all(len(one) and (np.diff(one) > 0).all() for one in points), "values of a column are not in order")
    numbers = [
        Number(int(source), float(median), float(scale), *both)
        for (source, _), (median, scale), *both in zip(kinds, scales, points, places, strict=True)
    ]
    kinds, scales = _kinds(told, tensors, "codes", 4, 3, n)
    fits = (kinds[:, 1] >= 0) & (kinds[:, :2].sum(axis=1) <= n) & (kinds[:, 2] >= 0) & (kinds[:, 2] < outputs)
    fits &= (kinds[:, 1] == 0) | (kinds[:, 1] == kinds[:, 3])
    told.require(fits.all() and (kinds[:, 3] > 0).all(), "codes of its categories are of no columns that it has")
    means = _apart(told, tensors, "codes.means", kinds[:, 3])
    codes = [
        Code(int(source), int(width), int(target), mean, *map(float, scale))
        for (source, width, target, _), mean, scale in zip(kinds, means, scales, strict=True)
    ]
    kinds, scales = _kinds(told, tensors, "pairs", 2, 4, n)
    told.require((scales[:, 0] < scales[:, 1]).all(), "two values of a column are not in order")
    pairs = [
        TwoValued(int(source), None if level == _MOST else int(level), *map(float, scale))
        for (source, level), scale in zip(kinds, scales, strict=True)
    ]
    return Columns(numbers, codes, pairs)


def _kinds(told: Fields, tensors: Tensors, name: str, wide: int, scales: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    kinds = tensors.take(f"{name}.kinds", INT64, (None, wide))
    told.require(((kinds[:, 0] >= 0) & (kinds[:, 0] < n)).all(), f"its {name} are of columns that it does not have")
    return kinds, tensors.take(f"{name}.scales", FLOAT64, (len(kinds), scales))


def _apart(told: Fields, tensors: Tensors, name: str, sizes: np.ndarray) -> list[np.ndarray]:
    told.require((sizes >= 0).all() and (sizes < _MOST).all(), f"the sizes of {name!r} make no sense")
    whole = tensors.take(name, FLOAT64, (int(sizes.sum()),))
    return np.split(whole, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _behind(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0)


def _whole(rows: list[list[int]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _real(rows: list[list[float]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.float64).reshape(-1, width)
