"""All that a fit has set, as JSON and tensors, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from parablock.fingerprint import is_fingerprint
from parablock.models.centres import centres_from_json, centres_to_json
from parablock.models.checked import FLOAT64, Fields, Tensors
from parablock.models.expansions import models_from_tensors, models_to_tensors
from parablock.models.files import ModelFileError
from parablock.models.labels import labels_from_json, labels_to_json
from parablock.models.layout import Layout
from parablock.monitor.history import Record
from parablock.partition import Partition
from parablock.prediction import GlobalModel
from parablock.scaling import Scaling
from parablock.solver.pbm import REASONS

_FRACTIONS = ("dual_objective_", "duality_gap_", "violation_")
_COUNTS = ("n_iter_", "kernel_evaluations_")
_OF_CLASSES = {"n_support_": int, "class_weight_": float}
SCALINGS = ("shift and scale", "scale")
_WHOLE = {field.name for field in fields(Record) if field.type in ("int", "str")}  # texts are numbered


def fitted_to_json(estimator: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    layout = Layout.of(estimator)
    tensors: dict[str, np.ndarray] = {}
    models_to_tensors(estimator._models, layout, tensors)
    partition = estimator.partition_
    told: dict[str, Any] = {
        "data": layout.to_json(),
        "passed_rows": estimator._n_rows,
        "gamma": float(estimator._gamma),
        "outputs": len(estimator.dual_coef_),
        "support_vectors": len(estimator.support_),
        "predictions": sorted(estimator._models),
        "certificate": {
            **{name: int(getattr(estimator, name)) for name in _COUNTS},
            **{name: float(getattr(estimator, name)) for name in _FRACTIONS},
            "stop_reason_": estimator.stop_reason_,
        },
        "history": {"columns": _columns(estimator.history_), "kinds": _kinds(estimator.history_)},
        "partition": {
            "method": partition.method,
            "kernel_mass_inside": float(partition.kernel_mass_inside),
            "centres": centres_to_json(partition.centres, "partition.centres", layout, tensors),
        },
    }
    tensors["partition.rows"] = np.concatenate(partition.blocks).astype(np.int64, copy=False)
    tensors["partition.sizes"] = partition.sizes.astype(np.int64, copy=False)
    if layout.n_rows < estimator._n_rows:
        tensors["rows"] = estimator._rows.astype(np.int64, copy=False)
    if estimator._centre is not None:
        tensors["centre"] = estimator._centre.astype(np.float64, copy=False)
    if estimator._scaling is not None:
        told["scaling"] = SCALINGS[0 if estimator._scaling.shifts else 1]
        tensors["scaling.shift"], tensors["scaling.scale"] = estimator._scaling.shift, estimator._scaling.scale
    if estimator._fingerprint is not None:
        told["fingerprint"] = estimator._fingerprint
    if hasattr(estimator, "classes_"):
        told["classes"] = labels_to_json(estimator.classes_)
        if hasattr(estimator, "n_support_"):  # not of a model from a file of the first versions
            told["of_classes"] = {name: getattr(estimator, name).tolist() for name in _OF_CLASSES}
    else:
        told["single_target"] = bool(estimator._single_target)
    if hasattr(estimator, "feature_names_in_"):
        tensors["feature_names"] = np.frombuffer(json.dumps(list(estimator.feature_names_in_)).encode(), dtype=np.uint8)
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ModelFileError(f"{name} of the model has values that are nan or infinite; such a model is not saved.")
    tensors["history"] = _table(estimator.history_)
    return told, tensors


def fitted_from_json(told: Fields, tensors: Tensors, is_classifier: bool) -> dict[str, Any]:
    """The attributes to set."""
    layout = Layout.from_json(told.fields("data"))
    passed = told.integer("passed_rows", 1)
    rows = _rows(tensors, passed, layout)
    tensors.require(not layout.given or layout.n_features == passed, "it has another number of columns than of rows")
    attributes: dict[str, Any] = {"_n_rows": passed, "_rows": rows, "_dtype": layout.dtype}
    attributes |= {"_sparse": layout.sparse is not None, "n_features_in_": layout.n_features}
    known = told.text("fingerprint") if "fingerprint" in told.values else None
    told.require(known is None or is_fingerprint(known), "the fingerprint of its training data makes no sense")
    attributes["_fingerprint"] = known
    attributes["_gamma"] = told.number("gamma", finite=True)
    told.require(attributes["_gamma"] > 0, "its gamma is not positive")
    attributes["_centre"] = tensors.take("centre", FLOAT64, (layout.n_features,)) if "centre" in tensors else None
    if "scaling" in told.values:
        attributes["_scaling"] = _scaling(told.text("scaling", SCALINGS), layout, tensors)
    n_outputs = told.integer("outputs", 1)
    if is_classifier:
        attributes["classes_"] = labels_from_json(told.fields("classes"))
        n_classes = len(attributes["classes_"])
        told.require(n_outputs == (1 if n_classes == 2 else n_classes), "it has another number of outputs than classes")
    else:
        single = told.take("single_target")
        told.require(type(single) is bool and (n_outputs == 1 or not single), "it has another number of targets")
        attributes["_single_target"] = single
    if "feature_names" in tensors:
        attributes["feature_names_in_"] = _names(tensors, layout.n_features)
    partition = _partition(told.fields("partition"), layout, tensors)
    attributes["partition_"] = partition
    models = models_from_tensors(tensors, layout, n_outputs, partition.centres, len(partition.blocks))
    told.require(told.listed("predictions", str) == sorted(models), "it has other models than it says")
    whole = models["global"]
    assert isinstance(whole, GlobalModel)
    attributes |= {"_models": models, "support_": rows[whole.expansion.rows], "intercept_": whole.intercept}
    attributes |= {"support_vectors_": whole.expansion.vectors, "dual_coef_": whole.expansion.coef}
    count = told.integer("support_vectors")
    told.require(count == len(whole.expansion.rows), "it has other support vectors than it says")
    attributes |= _of_classes(told, n_classes, count) if is_classifier else {"n_support_": np.array([count])}
    certificate = told.fields("certificate")
    attributes |= {name: certificate.integer(name) for name in _COUNTS}
    attributes |= {name: certificate.number(name) for name in _FRACTIONS}
    attributes["stop_reason_"] = certificate.text("stop_reason_", REASONS, "reason for stopping")
    certificate.done()
    attributes["history_"] = _records(told.fields("history"), tensors)
    return attributes


def _of_classes(told: Fields, n_classes: int, n_support: int) -> dict[str, np.ndarray]:
    """What there is one of for each class; files of the first versions do not have it."""
    if "of_classes" not in told.values:
        return {}
    given = told.fields("of_classes")
    values: dict[str, list[Any]] = {name: given.listed(name, kind) for name, kind in _OF_CLASSES.items()}
    given.done()
    counts, weights = values.values()
    told.require(len(counts) == len(weights) == n_classes, "it has other counts and weights than classes")
    good = all(number >= 0 for number in counts) and sum(counts) == n_support
    told.require(good, "its support vectors of the classes do not add up")
    told.require(all(0 < weight < np.inf for weight in weights), "its weights of the classes are not positive numbers")
    return {name: np.array(numbers) for name, numbers in values.items()}


def _rows(tensors: Tensors, passed: int, layout: Layout) -> np.ndarray:
    """The numbers of the rows that took part among those that were passed."""
    if "rows" in tensors:
        rows = tensors.numbers("rows", passed, (layout.n_rows,))
        tensors.require(np.all(np.diff(rows) > 0), "the numbers of its rows do not ascend")
        return rows
    tensors.require(passed == layout.n_rows, "it does not say which rows took part")
    return np.arange(len(tensors.arrays.get("partition.rows", ())))  # as many as there are in the file


def _scaling(what: str, layout: Layout, tensors: Tensors) -> Scaling:
    shift, scale = (tensors.take(f"scaling.{part}", FLOAT64, (layout.n_features,)) for part in ("shift", "scale"))
    tensors.require(np.all(scale > 0), "it scales features by factors that are not positive")
    scaling = Scaling(shift, scale)
    tensors.require(what == SCALINGS[0 if scaling.shifts else 1], "its scaling is not what it says")
    return scaling


def _partition(told: Fields, layout: Layout, tensors: Tensors) -> Partition:
    rows = tensors.numbers("partition.rows", layout.n_rows, (layout.n_rows,))
    told.require(len(np.unique(rows)) == len(rows), "rows are missing in its blocks")
    sizes = tensors.numbers("partition.sizes", layout.n_rows + 1)
    told.require(len(sizes) and sizes.min() >= 1 and sizes.sum() == len(rows), "the sizes of its blocks do not add up")
    centres, count = centres_from_json(told.fields("centres"), "partition.centres", layout, tensors)
    told.require(count == len(sizes), "it has another number of block centres than of blocks")
    partition = Partition(
        told.text("method"), np.split(rows, np.cumsum(sizes)[:-1]), centres, told.number("kernel_mass_inside")
    )
    told.done()
    return partition


def _kinds(history: Sequence[Record]) -> list[str]:
    return sorted({record.kind for record in history})


def _columns(history: Sequence[Record]) -> list[str]:
    """What records have, but for the time of compilation where there was none: older versions do not know it."""
    names = [field.name for field in fields(Record)]
    return [name for name in names if name != "seconds_compiling" or any(vars(record)[name] for record in history)]


def _table(history: Sequence[Record]) -> np.ndarray:
    """One row a record; of its kind the number."""
    columns, kinds = _columns(history), _kinds(history)
    rows = [{**vars(record), "kind": kinds.index(record.kind)} for record in history]
    return np.array([[row[name] for name in columns] for row in rows], dtype=np.float64).reshape(-1, len(columns))


def _records(told: Fields, tensors: Tensors) -> list[Record]:
    columns, kinds = told.listed("columns", str), told.listed("kinds", str)
    told.done()
    known = {field.name: field.default for field in fields(Record)}
    needed = {name for name, default in known.items() if default is MISSING}  # others may have been added since
    told.require(needed <= set(columns) <= set(known), f"its history has the columns {', '.join(columns)}")
    table = tensors.take("history", FLOAT64, (None, len(columns)), finite=False)
    whole = table[:, [name in _WHOLE for name in columns]]
    told.require(np.all(np.abs(whole) < 2**53), "counts in its history are no whole numbers")
    numbers = table[:, columns.index("kind")]
    told.require(np.all((numbers >= 0) & (numbers < len(kinds))), "its history has records of no kind")
    records = []
    for row in table.tolist():
        values: dict[str, Any] = dict(zip(columns, row, strict=True))
        values |= {name: int(values[name]) for name in columns if name in _WHOLE}
        records.append(Record(**{**values, "kind": kinds[values["kind"]]}))
    return records


def _names(tensors: Tensors, count: int) -> np.ndarray:
    text = tensors.take("feature_names", (np.dtype(np.uint8),), (None,))
    try:
        names = json.loads(text.tobytes())
    except (ValueError, RecursionError) as error:
        raise tensors.error("the names of its features make no sense") from error
    good = isinstance(names, list) and len(names) == count and all(type(name) is str for name in names)
    tensors.require(good, f"it has no names for {count} features")
    return np.array(names, dtype=object)
