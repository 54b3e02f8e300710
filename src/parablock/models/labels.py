"""Class labels of any type as JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.models.checked import Fields
from parablock.models.files import ModelFileError

_NUMBERS = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64",
    )
}  # fmt: skip
_PLAIN = (bool, int, float, str)


def labels_to_json(classes: np.ndarray) -> dict[str, Any]:
    """Of one type; an array of objects may hold truth values, numbers and text."""
    values = [label.item() if isinstance(label, np.generic) else label for label in classes.tolist()]
    if classes.dtype.name in _NUMBERS:
        return {"type": classes.dtype.name, "values": values}
    if all(type(value) in _PLAIN for value in values):
        return {"type": "str" if classes.dtype.kind == "U" else "object", "values": values}
    odd = next(value for value in values if type(value) not in _PLAIN)
    raise ModelFileError(
        f"A model file holds class labels that are truth values, numbers or text, not {odd!r} of type "
        f"{type(odd).__name__}. Fit with such labels, for example y.astype(str)."
    )


def labels_from_json(fields: Fields) -> np.ndarray:
    kind = fields.text("type", [*_NUMBERS, "str", "object"], "type of labels")
    values = fields.take("values")
    fields.done()
    fields.require(isinstance(values, list) and len(values) >= 2, "it has less than two classes")
    fields.require(all(type(value) in _PLAIN for value in values), "its class labels are neither numbers nor text")
    fields.require(len(set(values)) == len(values), "its class labels are not different from each other")
    if kind == "object":
        classes = np.empty(len(values), dtype=object)
        classes[:] = values
        return classes
    wanted = {"str": (str,), "bool": (bool,), "float": (float, int)}.get(kind.rstrip("0123456789"), (int,))
    fields.require(all(type(value) in wanted for value in values), f"its class labels are not of type {kind}")
    if kind == "str":
        return np.array(values)
    try:
        classes = np.array(values, dtype=_NUMBERS[kind])
    except OverflowError as error:
        raise fields.error(f"its class labels do not fit into {kind}") from error
    exact = classes.tolist() == values and np.isfinite(classes).all()
    fields.require(exact, f"its class labels are not of type {kind}")
    return classes
