"""Warnings about fits that have not converged, and about those that have and yet are not what their user may think."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from parablock.callbacks.support import watch_of
from parablock.devices.cpu import CpuDevice
from parablock.devices.cpu.samples import make_samples
from parablock.engines import make_engine
from parablock.losses import EpsilonInsensitive, SquaredError
from parablock.prediction import GlobalModel
from parablock.problem import Problem
from parablock.solver import Solution
from parablock.solver.units import Units, spread_of

_ROWS = 256  # whose decisions are computed again
_LARGEST = 5.0  # of very many errors, beside their root mean square
_AT_ONCE = 4096  # support vectors that are looked at
_SHARE = 0.5  # of the targets' spread, by which no prediction of least squares should be off


def rough_predictions(
    problem: Problem, solution: Solution, largest_value: Callable[[], float], tol: float
) -> str | None:
    """Of least squares in blocks, where the certificate allows predictions to be far off.

    The primal objective is quadratic. Where a function f = w + b is within `gap` of its minimum at f*,

        1/2 |w - w*|^2 + sum_i C_i (f(x_i) - f*(x_i))^2 <= gap

    so that |w(x) - w*(x)| <= sqrt(2 gap K(x, x)); and the mean over the rows of what is squared in the sum bounds what
    the intercept adds.
    """
    if type(problem.loss) is not SquaredError or (solution.history[-1:] and solution.history[-1].kind == "cholesky"):
        return None
    gap = np.array([measure.duality_gap for measure in solution.state.measures])
    spread = np.array([spread_of(problem, output) for output in range(problem.n_outputs)])
    value = largest_value()
    factor = 8.0 * value + 1.0 / problem.weight.sum(axis=1) if problem.intercept else 2.0 * value
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.sqrt(gap) * np.sqrt(factor)
        shares = np.where(spread > 0, off / spread, 0.0)
    worst = int(np.argmax(shares))
    if not shares[worst] > _SHARE:
        return None
    return (
        f"Converged to tol={tol:g}, but the duality gap of {gap[worst]:.3g} allows predictions to be off by up to "
        f"{off[worst]:.3g}, where the spread of the targets is {spread[worst]:.3g}. If that matters, fit again with "
        f"tol={tol * _SHARE / shares[worst]:.0e}, or lower C"
    )


def hidden_by_rounding(problem: Problem, decision: np.ndarray, exact: np.ndarray, tol: float) -> str | None:
    """Of kernel values in float32 whose rounding hides violations that are larger than `tol`.

    Parameters
    ----------
    problem : Problem
    decision, exact : ndarray of shape (n_outputs, some)
        Without their intercepts, of some rows: as training ended with them, and in float64.
    """
    units, error = Units.of(problem), exact - decision
    if problem.intercept:
        error -= error.mean(axis=1, keepdims=True)  # what all have in common is a matter of the intercept
    sizes = _LARGEST * np.sqrt(np.square(error).mean(axis=1))
    worst = int(np.argmax(sizes / units.scale))
    least = float(sizes[worst] / (units.scale[worst] * units.spread))
    if not least > tol:
        return None
    digit = 10.0 ** np.floor(np.log10(least))
    return (
        f"Converged to tol={tol:g}, but rounding of kernel values in float32 alone changes decision values by up to "
        f"{sizes[worst]:.1g}, so that the violation and the duality gap may be larger than they are said to be. The "
        f"smallest meaningful tol is {np.ceil(least / digit) * digit:.0e}"
    )


def some_rows_of(n: int) -> np.ndarray:
    """Those whose decisions `hidden_by_rounding` looks at."""
    return np.unique(np.linspace(0, n - 1, _ROWS).astype(np.intp))


def constant_model(problem: Problem, solution: Solution, tol: float) -> str | None:
    """Of support vector regression, where nothing but an intercept is left of the model: epsilon and `tol` hide all."""
    if type(problem.loss) is not EpsilonInsensitive:
        return None
    for output in np.flatnonzero(~solution.state.coef.any(axis=1)).tolist():
        target = problem.target[output]
        size = np.ptp(target) if problem.intercept else np.abs(target).max()
        if size > 0:
            what = "differ by at most" if problem.intercept else "are no larger than"
            of_several = f" for target {output}" if problem.n_outputs > 1 else ""
            return (
                f"The model is constant{of_several}: its targets {what} {size:.3g}, and with epsilon="
                f"{problem.loss.parameter:g} and tol={tol:g} no error of that size counts. Lower epsilon (and tol), or "
                "scale the targets."
            )
    return None


def warn_of(machine: Any, solution: Solution, problem: Problem | None, X: Any) -> None:
    """Say how a fit ended, unless it converged; and of a converged one what its model does not promise."""
    watch = watch_of(machine)
    stopped = None if watch is None else watch.run.why
    if solution.reason == "converged" and problem is not None:
        _warn_of_what_it_means(machine, solution, problem, X)
    if solution.reason == "converged" or (solution.reason == "stopped" and not stopped):
        return
    if solution.doubt is not None:
        warnings.warn(
            f"After {machine.n_iter_} outer iterations all seemed converged, but {solution.doubt}: the arithmetic has "
            f"lost its digits. Lower C={machine.C:g}, or scale the data.",
            ConvergenceWarning,
        )
        return
    reached = (
        f"the largest violation is {machine.violation_:.3g} (tol={machine.tol:g}) and the duality gap "
        f"{solution.state.relative_gap:.3g} of the objective"
    )
    better, precision = "" if machine._dtype == np.float64 else "pass float64 data, or ", str(machine._dtype)
    if machine._settings(None).make_device().name == "cuda":
        better, precision = "use device='cpu' with float64 data, or ", "float32"
    usable = "The model is usable" if machine.n_iter_ else "The model is not trained"
    text = {
        "out of iterations": f"Not converged after max_iter={machine.max_iter} outer iterations: {reached}. Raise "
        "max_iter or tol, or scale the data.",
        "stalled": f"No further progress after {machine.n_iter_} outer iterations: {reached}. This is what "
        f"{precision} allows: {better}raise tol, or scale the data.",
        "interrupted": f"Interrupted after {machine.n_iter_} outer iterations: {reached}. {usable}; "
        "fit again with warm_start=True to go on from here.",
        "stopped": f"{stopped} after {machine.n_iter_} outer iterations: {reached}. The model is usable; fit again "
        "with warm_start=True to go on from here.",
    }[solution.reason]
    warnings.warn(text, ConvergenceWarning)


def _warn_of_what_it_means(machine: Any, solution: Solution, problem: Problem, X: Any) -> None:
    constant = constant_model(problem, solution, machine.tol)
    if constant is not None:
        warnings.warn(constant, ConvergenceWarning)
    rough = rough_predictions(problem, solution, lambda: _largest_kernel_value(machine, X), machine.tol)
    if rough is not None:
        enough = replace(machine._settings(machine.partition), memory_limit=16 * len(machine._rows) ** 2)
        at_once = f", or with memory_limit={enough.memory_limit:_} or more, which solves it at once"
        warnings.warn(rough + (at_once if enough.solves_directly(X, problem) else "") + ".", ConvergenceWarning)

    if solution.history[-1:] and solution.history[-1].kind != "cholesky":
        _warn_of_rounding(machine, solution, problem, X)


def _warn_of_rounding(machine: Any, solution: Solution, problem: Problem, X: Any) -> None:
    """Where kernel values are float32: of a `tol` that is smaller than what these can show."""
    kernel, cuda = machine._make_kernel(), machine._settings(None).make_device().name == "cuda"
    if kernel.overlap in ("given", "called") or not (cuda or machine._dtype == np.float32):
        return
    model, rows = machine._models["global"], some_rows_of(len(machine._rows))
    assert isinstance(model, GlobalModel)
    device = CpuDevice(make_engine(machine.engine).threads(machine.n_jobs), machine.memory_limit)
    with device.session():
        samples = device.samples(X[rows].astype(np.float64), kernel, machine._centre)
        exact = model.expansion.values(device, kernel, samples, machine._centre)
    hidden = hidden_by_rounding(problem, solution.state.decision[:, rows], exact, machine.tol)
    if hidden is not None:
        instead = "use device='cpu' with float64 data" if cuda else "pass float64 data"
        warnings.warn(f"{hidden}; {instead} for a smaller one.", ConvergenceWarning)


def _largest_kernel_value(machine: Any, X: Any) -> float:
    """Of a training row with itself, as far as it has a coefficient."""
    kernel = machine._make_kernel()
    if kernel.overlap == "given":
        return float(np.diagonal(X).max())
    model = machine._models["global"]
    assert isinstance(model, GlobalModel)
    vectors = model.expansion.vectors
    parts = (
        make_samples(vectors[start : start + _AT_ONCE], kernel).self_overlap
        for start in range(0, len(machine.support_), _AT_ONCE)
    )
    return max((float(kernel.diagonal(part).max()) for part in parts), default=0.0)
