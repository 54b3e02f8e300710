"""What a loss is: a separable convex term of the dual problem, written as four scalar functions.

    minimise over coef   1/2 coef' K coef + sum_i g_i(coef_i),   lower_i <= coef_i <= upper_i     (paper, eq. 1)

A loss is mathematics only. It knows nothing of blocks, threads, ranks or devices.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import float64, types
from numba.extending import register_jitable

from parablock.compiling import cfunc

_BOUNDS = types.UniTuple(float64, 2)(float64, float64, float64)
_SLOPES = types.UniTuple(float64, 3)(float64, float64, float64, float64)
_GIVEN, _RESULT = types.Array(float64, 1, "C", readonly=True), float64[::1]
_NUMBER_A_ROW = types.void(_GIVEN, _GIVEN, _GIVEN, float64, _RESULT)
_SLOPES_A_ROW = types.void(_GIVEN, _GIVEN, _GIVEN, float64, _RESULT, _RESULT, _RESULT)


class Loss(ABC):
    """A loss of one's own is a subclass that defines the four static functions below.

    All four are plain scalar Python (``math`` is available): they are compiled by Numba the first time they
    are needed, and called from inside the solvers' loops. ``target`` is the label (-1 or +1) or the
    regression target of the sample, ``weight`` its C times its sample weight, ``parameter`` the loss's one
    free number (``epsilon``, ``quantile``, ...). A weight of zero means that the sample takes no part: both bounds are
    zero and the slopes infinite. The losses here allow it, and model selection needs it. Compiled loops cannot raise an
    exception of theirs, such as a division by zero: return a number wherever the coefficient is within its bounds.

    - ``dual(coef, target, weight, parameter)``: g(coef), finite inside the bounds.
    - ``primal(prediction, target, weight, parameter)``: the loss itself, whose convex conjugate is g:
      ``g(c) = max over z of (-c z - primal(z))``. It serves the duality gap.
    - ``bounds(target, weight, parameter)``: ``(lower, upper)``, infinite where there is no bound. Zero must
      lie between them, because training starts there.
    - ``slopes(coef, target, weight, parameter)``: ``(left, right, curvature)``: the one-sided derivatives of
      g and its second derivative. The left derivative is ``-inf`` at the lower bound and the right one
      ``+inf`` at the upper bound, so that the box needs no further mention anywhere.

    Attributes
    ----------
    parameter : float
        Passed on to the four functions.
    piecewise_quadratic : bool
        Whether g is quadratic between its kinks. The step size is then found exactly; otherwise by Armijo's
        rule.
    kink : float
        Where inside the box the derivative of g jumps; ``nan`` when it does not.
    power : int or None
        Where the loss is a function of the error y - z alone and s times the error costs s^power as much, that power:
        2 for squared error, 1 for the quantile loss. ``tol`` is then relative to the spread of the targets. None for a
        loss with a size of its own. It is not inherited.

    Examples
    --------
    Half the squared error, so that C counts as in textbooks on ridge regression:

    >>> import math
    >>> import numpy as np
    >>> from parablock import Loss, solve
    >>> from parablock.kernels import RBF
    >>> class HalfSquaredError(Loss):
    ...     piecewise_quadratic = True
    ...
    ...     @staticmethod
    ...     def dual(coef, target, weight, parameter):
    ...         return -target * coef + coef * coef / (2.0 * weight)
    ...
    ...     @staticmethod
    ...     def primal(prediction, target, weight, parameter):
    ...         return weight * (target - prediction) ** 2 / 2.0
    ...
    ...     @staticmethod
    ...     def bounds(target, weight, parameter):
    ...         return -math.inf, math.inf
    ...
    ...     @staticmethod
    ...     def slopes(coef, target, weight, parameter):
    ...         slope = -target + coef / weight
    ...         return slope, slope, 1.0 / weight
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> trained = solve(X, np.array([0.0, 1.0, 0.0]), HalfSquaredError(), RBF(1.0), fit_intercept=False)
    >>> K = np.exp(-((X - X.T) ** 2))
    >>> np.allclose(trained.solution.state.coef[0], np.linalg.solve(K + np.eye(3), [0.0, 1.0, 0.0]), atol=1e-6)
    True
    """

    parameter: float = 0.0
    piecewise_quadratic: bool = False
    kink: float = float("nan")
    power: int | None = None

    @staticmethod
    @abstractmethod
    def dual(coef: float, target: float, weight: float, parameter: float) -> float: ...

    @staticmethod
    @abstractmethod
    def primal(prediction: float, target: float, weight: float, parameter: float) -> float: ...

    @staticmethod
    @abstractmethod
    def bounds(target: float, weight: float, parameter: float) -> tuple[float, float]: ...

    @staticmethod
    @abstractmethod
    def slopes(coef: float, target: float, weight: float, parameter: float) -> tuple[float, float, float]: ...

    @property
    def compiled_bounds(self) -> Any:
        return _compile(_BOUNDS, type(self).bounds)

    @property
    def compiled_slopes(self) -> Any:
        return _compile(_SLOPES, type(self).slopes)

    # A call costs more than what most losses compute, so where every row is asked, the loop is part of what is called.

    @property
    def dual_of_rows(self) -> Any:
        return _compile_rows(_NUMBER_A_ROW, _number_a_row, type(self).dual)

    @property
    def primal_of_rows(self) -> Any:
        return _compile_rows(_NUMBER_A_ROW, _number_a_row, type(self).primal)

    @property
    def slopes_of_rows(self) -> Any:
        return _compile_rows(_SLOPES_A_ROW, _slopes_a_row, type(self).slopes)


@cache
def _compile(signature: Any, function: Any) -> Any:
    # A C callback has one Numba type whatever function it holds, so one compiled solver serves every loss and
    # can be cached on disk; functions passed as Numba dispatchers would compile the solvers once per loss.
    return cfunc(signature, cache=_can_be_cached(function))(function)


@cache
def _compile_rows(signature: Any, loop_over: Callable[[Any], Any], function: Any) -> Any:
    loop = loop_over(register_jitable(function))
    # Numba keeps what it compiles beside the source, under the function's name, until that file changes: the loss's.
    code = function.__code__
    loop.__code__ = loop.__code__.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)
    loop.__module__, loop.__qualname__ = function.__module__, f"{function.__qualname__}.{loop.__name__}"
    # Where a row divides by zero, the rows after it shall have their results.
    return cfunc(signature, cache=_can_be_cached(function), error_model="numpy")(loop)


def _can_be_cached(function: Any) -> bool:
    """Only what a later process can import again, from the same file, is worth a place in Numba's cache."""
    home = getattr(sys.modules.get(function.__module__), "__file__", None)
    return bool(home == function.__code__.co_filename)


def _number_a_row(function: Any) -> Any:
    def of_rows(
        value: np.ndarray, target: np.ndarray, weight: np.ndarray, parameter: float, result: np.ndarray
    ) -> None:
        for i in range(len(value)):
            result[i] = function(value[i], target[i], weight[i], parameter)

    return of_rows


def _slopes_a_row(function: Any) -> Any:
    def of_rows(
        coef: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        parameter: float,
        left: np.ndarray,
        right: np.ndarray,
        curvature: np.ndarray,
    ) -> None:
        for i in range(len(coef)):
            left[i], right[i], curvature[i] = function(coef[i], target[i], weight[i], parameter)

    return of_rows
