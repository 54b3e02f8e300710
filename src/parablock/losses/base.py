"""What a loss is: a separable convex term of the dual problem, written as four scalar functions.

    minimise over coef   1/2 coef' K coef + sum_i g_i(coef_i),   lower_i <= coef_i <= upper_i     (paper, eq. 1)

A loss is mathematics only. It knows nothing of blocks, threads, ranks or devices.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from functools import cache
from typing import Any

from numba import cfunc, float64, types

_SCALAR = float64(float64, float64, float64, float64)
_BOUNDS = types.UniTuple(float64, 2)(float64, float64, float64)
_SLOPES = types.UniTuple(float64, 3)(float64, float64, float64, float64)


class Loss(ABC):
    """A loss of one's own is a subclass that defines the four static functions below.

    All four are plain scalar Python (``math`` is available): they are compiled by Numba the first time they
    are needed, and called from inside the solvers' loops. ``target`` is the label (-1 or +1) or the
    regression target of the sample, ``weight`` its C times its sample weight, ``parameter`` the loss's one
    free number (``epsilon``, ``quantile``, ...). A weight of zero means that the sample takes no part: both bounds are
    zero and the slopes infinite. The losses here allow it, and model selection needs it.

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
    def compiled_dual(self) -> Any:
        return _compile(_SCALAR, type(self).dual)

    @property
    def compiled_primal(self) -> Any:
        return _compile(_SCALAR, type(self).primal)

    @property
    def compiled_bounds(self) -> Any:
        return _compile(_BOUNDS, type(self).bounds)

    @property
    def compiled_slopes(self) -> Any:
        return _compile(_SLOPES, type(self).slopes)


@cache
def _compile(signature: Any, function: Any) -> Any:
    # A C callback has one Numba type whatever function it holds, so one compiled solver serves every loss and
    # can be cached on disk; functions passed as Numba dispatchers would compile the solvers once per loss.
    # Only what a later process can import again, from the same file, is worth a place in that cache.
    home = getattr(sys.modules.get(function.__module__), "__file__", None)
    return cfunc(signature, cache=home == function.__code__.co_filename)(function)
