"""What targets are measured in while a problem is solved.

Squared error and the quantile loss have no size of their own: s times the targets (for the quantile loss also s times
C) have s times the solution. So their problems are solved with the targets divided by about their spread, after their
median has been subtracted where there is an intercept, and what is found is multiplied back. The divisor is a power of
two, so that neither way costs a digit and bounds stay bounds.

`tol` counts in the spread of the targets then: the deviation from their median that four of five of them do not exceed.
Other losses have a size of their own (1 for a margin, epsilon), and their targets stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parablock import vectors
from parablock.losses import Loss
from parablock.problem import Measure, Problem
from parablock.solver.state import State

_SHARE = 0.8  # of the targets, whose deviation from the median does not exceed the spread
_FINEST = 1e-10  # of the largest target, where no intercept takes an offset away: what float64 leaves to be solved for
_LARGEST = 1e150  # whose square is still a number


@dataclass(frozen=True)
class Units:
    """Of every output: target = offset + scale * what is solved for.

    Attributes
    ----------
    offset, scale : ndarray of shape (n_outputs,)
        The scale is a power of two.
    spread : float
        Of the targets that are solved for: what `tol` counts in.
    """

    offset: np.ndarray
    scale: np.ndarray
    spread: float = 1.0

    @classmethod
    def of(cls, problem: Problem) -> Units:
        ones = np.ones(problem.n_outputs)
        if _power(problem.loss) is None:
            return cls(0.0 * ones, ones)
        if np.abs(problem.target).max() > _LARGEST:
            raise ValueError(
                f"y has values up to {np.abs(problem.target).max():.3g}, whose squares are too large for a number: the "
                f"objective is of that size. Divide y by a constant, so that no value is larger than {_LARGEST:g}."
            )
        middles, spreads = np.transpose([_middle_and_spread(problem, output) for output in range(problem.n_outputs)])
        known = spreads[spreads > 0]
        if not len(known):
            return cls(0.0 * ones, ones)
        first = known[0]
        # Of s times the targets every power of two is the same multiple of the first one, to rounding.
        unit = 2.0 ** np.clip(np.floor(np.log2(first)), -1000, 1000)
        scale = unit * 2.0 ** np.round(np.log2(np.where(spreads > 0, spreads, first) / first))
        return cls(middles if problem.intercept else 0.0 * ones, scale, float(first / unit))

    def inside(self, problem: Problem) -> Problem:
        """The problem that is solved."""
        power = _power(problem.loss)
        if power is None:
            return problem
        scale = self.scale[:, None]
        return replace(
            problem,
            target=(problem.target - self.offset[:, None]) / scale,
            weight=problem.weight * scale ** (power - 2.0),
            lower=problem.lower / scale,
            upper=problem.upper / scale,
        )

    def divided(self, values: np.ndarray) -> np.ndarray:
        """Coefficients or decisions, as they are inside."""
        return self._times(values, 1.0 / self.scale)

    def multiplied(self, values: np.ndarray) -> np.ndarray:
        """Coefficients or decisions from inside, as they are for the user."""
        return self._times(values, self.scale)

    def _times(self, values: np.ndarray, factors: np.ndarray) -> np.ndarray:
        if np.all(factors == 1.0):
            return values
        return vectors.stack([float(factor) * row for factor, row in zip(factors, values, strict=True)])

    def outside(self, state: State) -> State:
        """A state from inside, as it is for the user; its violation in units of `tol`."""
        measures = [
            Measure(
                measure.objective * scale * scale,
                measure.duality_gap * scale * scale,
                measure.violation / self.spread,
                measure.bias * scale + offset,
                measure.upward * scale,
                measure.downward * scale,
            )
            for measure, scale, offset in zip(state.measures, self.scale.tolist(), self.offset.tolist(), strict=True)
        ]
        before = None if state.before is None else (self.multiplied(state.before[0]), self.multiplied(state.before[1]))
        return State(self.multiplied(state.coef), self.multiplied(state.decision), state.iteration, measures, before)

    def certificate(self, measures: Sequence[Measure]) -> tuple[float, float, float]:
        """Objective and duality gap of all outputs, as they are for the user, and the largest violation in units of
        `tol`."""
        squares = (self.scale * self.scale).tolist()
        objective = sum(measure.objective * square for measure, square in zip(measures, squares, strict=True))
        gap = sum(measure.duality_gap * square for measure, square in zip(measures, squares, strict=True))
        return objective, gap, max(measure.violation for measure in measures) / self.spread


def _power(loss: Loss) -> int | None:
    """As the loss's own class states it: one that is derived from it may be another function."""
    return vars(type(loss)).get("power")


def spread_of(problem: Problem, output: int) -> float:
    """Of an output's targets, what `tol` counts in; zero where all of them are zero."""
    return _middle_and_spread(problem, output)[1]


def _middle_and_spread(problem: Problem, output: int) -> tuple[float, float]:
    """Of an output's targets; a spread of zero where all of them are zero."""
    target = problem.target[output][problem.weight[output] > 0]
    if not len(target):
        return 0.0, 0.0
    middle = float(np.partition(target, len(target) // 2)[len(target) // 2])
    deviation, largest = np.abs(target - middle), float(np.abs(target).max())
    place = min(int(_SHARE * len(target)), len(target) - 1)
    spread = float(np.partition(deviation, place)[place])
    if spread == 0.0 and deviation.any():  # most targets are equal
        most = deviation.max()
        spread = float(most * np.sqrt(np.mean((deviation / most) ** 2)))
    if spread == 0.0:
        return middle, largest
    return middle, spread if problem.intercept else max(spread, _FINEST * largest)
