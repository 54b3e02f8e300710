"""Certificates of fitted models, computed anew with a kernel matrix in float64.

Nothing here rests on what the fit has said: decisions are computed from the rows and the coefficients, a stretch of
rows at a time, and coefficients are checked against their bounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from parablock import kernels
from parablock.certificate import Certificate, CertificateError
from parablock.devices.base import Samples
from parablock.devices.cpu import CpuDevice
from parablock.devices.cpu.differences import DenseDifferences, SparseDifferences
from parablock.devices.memory import bytes_for_rows
from parablock.engines.dask_rows import is_collection
from parablock.estimators._infinite import finite_penalty
from parablock.estimators._objects import places
from parablock.fingerprint import precision_of
from parablock.mapped import MappedRows, stretches
from parablock.monitor import Progress
from parablock.prediction import Expansion
from parablock.problem import Problem
from parablock.solver.units import Units
from parablock.tensors import on_host

_SEMI_DEFINITE = (
    kernels.RBF, kernels.Laplacian, kernels.Chi2, kernels.Matern32, kernels.Matern52, kernels.Linear, kernels.Cosine,
)  # fmt: skip
_DISTANCES = _SEMI_DEFINITE[:5]
_CHUNK = 64 << 20  # bytes of rows in float64 at a time, where memory_limit allows as many
_NEGLIGIBLE = 1e-12  # error of a kernel value of a distance that comes from overlaps
_SECONDS = 2.0  # between two lines of progress
_ROUNDING = 1e-8  # what infeasible coefficients may change, as a share of the objective: as much as rounding
_SAMPLE, _NEGATIVE = 256, 1e-7  # rows whose kernel matrix is looked at, and eigenvalues that are no rounding


def certify(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """The certificate of a fitted machine for the rows that it was trained on; see `KernelMachine.certify`."""
    shell = copy(model)  # whatever the checks set is set there
    X, target, weight = _training_data(model, shell, X, y, sample_weight)
    whole, rows = model._models["global"], model._rows
    expansion, target, weight = whole.expansion, target[:, rows], weight[:, rows]
    if shell._objects is not None:  # which the kernel function finds by their places among all of them
        expansion = replace(expansion, vectors=places(0, X.shape[0])[rows[expansion.rows]])
    coef = np.zeros(target.shape)
    coef[:, expansion.rows] = expansion.coef
    loss, note = model._make_loss(), ""
    if np.isinf(float(model.C)):
        loss, weight, note = finite_penalty(loss, coef)
    else:
        weight = model.C * weight
    problem = Problem.build(loss, target, weight, bool(model.fit_intercept))
    units = Units.of(problem)
    matrix = _KernelMatrix(shell, X if len(rows) == X.shape[0] else MappedRows(X, rows))
    with matrix.device.session():
        decision = matrix.times(expansion, Progress(int(model.verbose)))
        doubt = _doubt(matrix, coef, decision)
    unit = units.scale * units.spread  # what tol counts in
    outputs = [
        _of_output(problem, i, coef[i], decision[i], float(whole.intercept[i]), float(unit[i]), not doubt)
        for i in range(len(coef))
    ]
    if len(outputs) == 1:
        certificate = outputs[0]
    else:
        named = zip(outputs, _names(model, len(coef)), strict=True)
        certificate = _together(tuple(replace(output, name=name) for output, name in named))
    return replace(certificate, note=" ".join(filter(None, (note, doubt, certificate.note))))


def _training_data(model: Any, shell: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, and targets and weights of every output, if these are what the model was trained on."""
    if is_collection(X):
        raise CertificateError(
            "certify computes on this machine alone: pass the rows as they are in memory here (X.compute())."
        )
    fingerprint = model._fingerprint
    if fingerprint is None:
        raise CertificateError(
            "This model does not know which rows it was trained on: it was written by an earlier version of parablock "
            "or by LIBSVM, or holds the scalers of a pipeline. Fit it again to certify it (a pipeline's last step, "
            "with the rows that the steps before it give)."
        )
    X, y = shell._check_rows(on_host(X), on_host(y))
    sample_weight = shell._check_weight(X, on_host(sample_weight))
    target, weight = shell._outputs(y, sample_weight)
    if shell._fingerprint_of(X, target, sample_weight, precision_of(fingerprint)) != fingerprint:
        raise CertificateError(
            "These are not the rows, targets and weights that the model was trained on: some value differs, or their "
            f"order. It was trained on {model._n_rows} rows of {model.n_features_in_} features; got {X.shape[0]} of "
            f"{X.shape[1]}."
        )
    vars(shell).pop("feature_names_in_", None)  # they have been looked at; arrays have none
    return X, target, weight


def _names(model: Any, count: int) -> list[str]:
    return (
        [f"class {label}" for label in model.classes_]
        if is_classifier(model)
        else [f"target {i}" for i in range(count)]
    )


class _KernelMatrix:
    """The kernel matrix of a model's training rows, in float64 and a piece at a time."""

    def __init__(self, model: Any, X: Any) -> None:
        self.X, self.kernel, self.device = X, model._make_kernel(), CpuDevice(model.n_jobs, model.memory_limit)
        self._model, self._centre, self._precision = model, model._centre, precision_of(model._fingerprint)
        self._most = min(_CHUNK, bytes_for_rows(self.device.memory_limit) // 2)

    def times(self, expansion: Expansion, progress: Progress) -> np.ndarray:
        """K times the coefficients of all outputs, shape (n_outputs, n)."""
        n, count = self.X.shape[0], len(expansion.rows)
        result = np.zeros((len(expansion.coef), n))
        started = said = time.monotonic()
        done = 0
        for first, last, columns in self._columns(expansion):
            weights = np.ascontiguousarray(expansion.coef[:, first:last])
            for start, rows in self._chunks():
                stop = start + rows.shape[0]
                result[:, start:stop] += self.device.kernel_dot(self.kernel, *self._pair(rows, columns), weights)
                done += (stop - start) * (last - first)
                if time.monotonic() - said >= _SECONDS:
                    said = time.monotonic()
                    progress.say(
                        f"certificate: {done / (n * count):.0%} of {n * count:,} kernel values in float64, "
                        f"{said - started:.0f} s"
                    )
        return result

    def sample(self) -> np.ndarray:
        """Of some rows."""
        numbers = np.unique(np.linspace(0, self.X.shape[0] - 1, _SAMPLE).astype(np.intp))
        rows = np.concatenate([part.toarray() if sp.issparse(part) else part for part in self._ready(self.X[numbers])])
        if self.kernel.overlap == "given":
            return rows[:, numbers]
        rows = sp.csr_matrix(rows) if self._model._sparse else rows
        return self.device.gram(self.kernel, *self._pair(rows, rows))

    def _columns(self, expansion: Expansion) -> Iterator[tuple[int, int, Any]]:
        """The support vectors in float64, as many as there is memory for at a time; of a given matrix their numbers."""
        if self.kernel.overlap == "given":
            if len(expansion.rows):
                yield 0, len(expansion.rows), self.device.given_columns(expansion.rows, np.float64)
            return
        vectors = expansion.vectors
        for start, stop in stretches(vectors, self._most * vectors.dtype.itemsize // 8):
            yield start, stop, vectors[start:stop].astype(np.float64)

    def _chunks(self) -> Iterator[tuple[int, Any]]:
        """All rows, each stretch with the number of its first one."""
        for start, stop in stretches(self.X, self._most * self.X.dtype.itemsize // 8):
            for rows in self._ready(self.X[start:stop]):
                yield start, rows
                start += rows.shape[0]

    def _ready(self, rows: Any) -> Iterator[Any]:
        """Rows as they were trained with, in float64."""
        for part in self._model._like_training_data(rows.astype(self._precision, copy=False)):
            yield part.astype(np.float64)

    def _pair(self, rows: Any, columns: Any) -> tuple[Samples, Samples]:
        """Rows and columns as samples: of a distance by differences, where overlaps would not do."""
        if isinstance(columns, Samples):
            return self.device.samples(rows, self.kernel), columns
        pair = [self.device.samples(values, self.kernel, self._centre) for values in (rows, columns)]
        if type(self.kernel) in _DISTANCES:
            largest = sum(float(samples.self_overlap.max(initial=0)) for samples in pair)
            if 4 * np.finfo(np.float64).eps * largest * self.kernel.gamma > _NEGLIGIBLE:
                make = SparseDifferences if sp.issparse(rows) else DenseDifferences
                rows, columns = (make(_ordered(values), self.kernel.overlap) for values in (rows, columns))
                return rows, columns
        return pair[0], pair[1]


def _ordered(values: Any) -> Any:
    """CSR rows with every feature once, in order; an array as it is."""
    if sp.issparse(values):
        values = sp.csr_matrix(values)
        values.sum_duplicates()
    return values


def _doubt(matrix: _KernelMatrix, coef: np.ndarray, decision: np.ndarray) -> str:
    """Why a dual value bounds nothing, if it does not."""
    kernel = matrix.kernel
    what = "without that, the dual value is no bound and there is no duality gap"
    if isinstance(kernel, kernels.Sigmoid) or (isinstance(kernel, kernels.Polynomial) and kernel.coef0 < 0):
        name = "The sigmoid kernel" if isinstance(kernel, kernels.Sigmoid) else "A polynomial kernel with coef0 < 0"
        return f"{name} is not positive semi-definite in general: {what}."
    if type(kernel) in (*_SEMI_DEFINITE, kernels.Polynomial):
        return ""
    curvature, terms = (coef * decision).sum(axis=1), np.abs(coef * decision).sum(axis=1)
    if np.any(curvature < -_NEGATIVE * terms):
        return (
            f"The kernel matrix is not positive semi-definite (along the coefficients its curvature is "
            f"{curvature.min():.3g}): {what}."
        )
    sample = matrix.sample()
    lowest, highest = np.linalg.eigvalsh(0.5 * (sample + sample.T))[[0, -1]]
    if lowest < -_NEGATIVE * max(highest, 0.0):
        return (
            f"The kernel matrix is not positive semi-definite (that of {len(sample)} rows has the eigenvalue "
            f"{lowest:.3g}): {what}."
        )
    return ""


def _of_output(
    problem: Problem,
    output: int,
    coef: np.ndarray,
    decision: np.ndarray,
    intercept: float,
    unit: float,
    bounds: bool,
) -> Certificate:
    """Of one output. `unit` is what its `tol` counts in, and `bounds` whether its dual value bounds the primal one."""
    inside = np.clip(coef, problem.lower[output], problem.upper[output])
    outside = float(np.abs(coef - inside).max(initial=0.0))
    total = abs(float(coef.sum())) if problem.intercept else 0.0
    norm, measure = 0.5 * float(coef @ decision), problem.measure(output, inside, decision, intercept)
    primal, dual = norm + problem.primal_sum(output, decision + intercept), -norm - problem.dual_sum(output, inside)
    gap: float | None = measure.duality_gap if bounds else None
    note = ""
    # The sum times the intercept is what is missing between the gap and its terms; of an intercept that is zero by
    # chance the targets tell the size that it might have.
    changed = total * (np.abs(problem.target[output]).max() + abs(intercept))
    if changed > _ROUNDING * max(abs(primal), abs(dual)) or outside > _ROUNDING * np.abs(inside).max():
        dual, gap = -np.inf, np.inf if bounds else None
        note = (
            "The coefficients are no point of the dual problem: they leave their bounds, or do not sum to zero, by "
            f"{max(outside, total):.3g}. So there is no dual value to compare with."
        )
    return Certificate(primal, dual, gap, measure.violation / unit, max(outside, total), note=note)


def _together(outputs: tuple[Certificate, ...]) -> Certificate:
    gaps = [output.duality_gap for output in outputs]
    return Certificate(
        sum(output.primal_objective for output in outputs),
        sum(output.dual_objective for output in outputs),
        None if None in gaps else sum(gap for gap in gaps if gap is not None),
        max(output.violation for output in outputs),
        max(output.infeasibility for output in outputs),
        outputs,
        note=next((output.note for output in outputs if output.note), ""),
    )
