"""What is in a checkpoint, checked in full: a checksum says that a file is whole, not that it makes sense.

A fit that goes on from it must end at the optimum, so all that it rests on is compared with the problem: coefficients
are in their box and have the sum that they must have, rows that are not watched have none. Decisions are computed anew
by the fit itself (`solver/pbm.py`).
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from parablock.monitor.history import Record
from parablock.npy import ArrayError, Npz

# Coefficients are kept in their box, and their sum, to rounding.
_OUTSIDE, _OFF = 1e-9, 1e-8
_ARRAYS = {"coef", "decision", "told"}
_STEP, _WATCHED = {"last_coef", "last_decision"}, {"watched"}
_MOST = 1 << 62
_SECONDS = 1e12
_STAGES = ("first", "sample", "grown", "late", "last")


class WrongContent(ValueError):
    """What does not make sense."""


class Content(NamedTuple):
    """The parts of a checkpoint."""

    fingerprint: str
    coef: np.ndarray
    decision: np.ndarray
    last_step: tuple[np.ndarray, np.ndarray] | None
    watched: np.ndarray | None
    iteration: int
    history: list[Record]
    seconds: float
    memory: dict[str, Any]


def content_of(data: memoryview) -> Content:
    """The parts in the bytes of a file, each of the right type and in agreement with the others."""
    try:
        arrays = Npz(io.BytesIO(data))
        names = set(arrays)
        _require(names - _STEP - _WATCHED == _ARRAYS and names & _STEP in (set(), _STEP), f"it has {sorted(names)}")
        coef, decision = arrays["coef"], arrays["decision"]
        last_step = (arrays["last_coef"], arrays["last_decision"]) if names >= _STEP else None
        watched, text = arrays.get("watched"), arrays["told"]
    except ArrayError as error:
        raise WrongContent(str(error)) from error
    for values in (coef, decision, *(last_step or ())):
        _require(values.dtype == np.float64 and values.ndim == 2 and values.shape == coef.shape, "shapes of its arrays")
        _require(np.isfinite(values).all(), "values that are nan or infinite")
    _require(watched is None or _are_rows(watched, coef.shape[1]), "the numbers of its watched rows")
    if watched is not None:
        resting = np.ones(coef.shape[1], dtype=bool)
        resting[watched] = False
        _require(not coef[:, resting].any(), "coefficients of rows that are not watched")
    _require(text.dtype.kind == "U" and text.ndim == 0, "its record")
    try:
        told = json.loads(text.item())
    except (ValueError, RecursionError) as error:
        raise WrongContent("its record is no JSON") from error
    _require(_has(told, {"fingerprint", "iteration", "seconds", "memory", "history"}), "its record")
    _require(type(told["fingerprint"]) is str, "its fingerprint")
    _require(_is_number(told["seconds"]) and 0 <= told["seconds"] < _SECONDS, "its seconds")
    history = _records(told["history"], told["iteration"])
    _check_memory(told["memory"], coef.shape[1])
    return Content(
        told["fingerprint"], coef, decision, last_step, watched, told["iteration"], history, told["seconds"],
        told["memory"],
    )  # fmt: skip


def refuse_infeasible(coef: np.ndarray, last_coef: np.ndarray | None, problem: Any) -> None:
    """Refuse coefficients that are none of the problem, in its numbering of the rows."""
    _require(
        coef.shape == problem.target.shape, f"coefficients of shape {coef.shape} instead of {problem.target.shape}"
    )
    with np.errstate(invalid="ignore"):
        slack = _OUTSIDE * np.maximum(1e-300, np.abs(coef))
        inside = (coef >= problem.lower - slack) & (coef <= problem.upper + slack)
    _require(inside.all(), "coefficients outside of their bounds")
    if problem.intercept:
        for values in (coef, *(() if last_coef is None else (last_coef,))):
            size = np.abs(values).sum(axis=1) + np.abs(coef).sum(axis=1)
            _require(np.all(np.abs(values.sum(axis=1)) <= _OFF * size), "coefficients whose sum is not zero")


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise WrongContent(what)


def _has(values: Any, names: set[str]) -> bool:
    return isinstance(values, dict) and set(values) == names


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any, most: int = _MOST) -> bool:
    return type(value) is int and 0 <= value <= most


def _are_rows(rows: np.ndarray, n: int) -> bool:
    """Whether these are different numbers below n, one at least."""
    if rows.ndim != 1 or rows.dtype.kind != "i" or not len(rows) or rows.min() < 0 or rows.max() >= n:
        return False
    return len(np.unique(rows)) == len(rows)


def _records(told: Any, iteration: Any) -> list[Record]:
    """The history, which has a record of every iteration, and between them those of checks."""
    kinds = {field.name: field.type for field in fields(Record)}
    _require(isinstance(told, list) and _is_count(iteration), "its history")
    done = 0
    for record in told:
        _require(_has(record, set(kinds)), "a record of its history")
        for name, kind in kinds.items():
            value = record[name]
            good = type(value) is str if kind == "str" else _is_count(value) if kind == "int" else _is_float(value)
            _require(good, f"{name} in its history")
        done += record["kind"] != "check"
        _require(record["iteration"] == done, "the iterations in its history")
    _require(done == iteration, "the number of its iterations")
    return [Record(**record) for record in told]


def _is_float(value: Any) -> bool:
    """Also infinity: a gap may be."""
    return (type(value) in (int, float) and abs(value) < 1e308) or type(value) is float


def _check_memory(told: Any, n: int) -> None:
    """What schedule, random generator and run remember."""
    _require(_has(told, {"schedule", "random", "lookout", "idle"}), "its state")
    _require(_is_count(told["idle"], 100), "its idle iterations")
    schedule, lookout = told["schedule"], told["lookout"]
    if _has(schedule, {"kind", "bridge_is_next"}):
        good = schedule["kind"] == "fixed" and _is_count(schedule["bridge_is_next"], 1)
    else:
        good = _has(schedule, {"kind", "iteration", "most_blocks"}) and schedule["kind"] == "regrouped"
        good = good and _is_count(schedule["iteration"]) and _is_count(schedule["most_blocks"], 4 * n + 4)
        good = good and schedule["most_blocks"] >= 1
    _require(good, "the state of its schedule")
    good = _has(lookout, {"spread", "stage", "looked", "patience"}) and lookout["stage"] in _STAGES
    good = good and _is_number(lookout["spread"]) and lookout["spread"] >= 0
    _require(good and _is_count(lookout["looked"]) and _is_count(lookout["patience"]), "the state of its shrinking")
    try:
        np.random.default_rng(0).bit_generator.state = told["random"]
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise WrongContent("the state of its random generator") from error
