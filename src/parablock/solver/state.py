"""The state of a run: all that is needed to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parablock import vectors
from parablock.monitor import relative_gap
from parablock.problem import Measure, Problem


@dataclass(frozen=True)
class State:
    """A point of the problem and where the run stands.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n)
    decision : ndarray of shape (n_outputs, n)
        ``K coef``, kept up to date.
    iteration : int
        Outer iterations done.
    measures : sequence of Measure
        How good the point is, one an output.
    before : pair of ndarray of shape (n_outputs, n), or None
        Both before the last iteration.
    """

    coef: np.ndarray
    decision: np.ndarray
    iteration: int
    measures: Sequence[Measure]
    before: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def last_step(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The last iteration's change of coef and decision."""
        return None if self.before is None else (self.coef - self.before[0], self.decision - self.before[1])

    @classmethod
    def at(cls, problem: Problem, coef: np.ndarray, decision: np.ndarray) -> State:
        """The state before the first iteration."""
        measures = [problem.measure(output, coef[output], decision[output]) for output in range(problem.n_outputs)]
        return cls(coef, decision, 0, measures)

    @property
    def spread(self) -> float:
        """How far apart the strongest wishes to grow and to shrink are: the violation of a problem with an intercept,
        and a measure of the same size for one without."""
        spreads = [float(measure.upward.max() + measure.downward.max()) for measure in self.measures]
        return max([self.violation] + [spread for spread in spreads if np.isfinite(spread)])

    def put_back(self, order: np.ndarray) -> State:
        """The same where row i is called order[i], on the host."""

        def back(values: np.ndarray) -> np.ndarray:
            values = vectors.to_host(values)
            result = np.empty_like(values)
            result[..., order] = values
            return result

        measures = [replace(m, upward=back(m.upward), downward=back(m.downward)) for m in self.measures]
        before = None if self.before is None else (back(self.before[0]), back(self.before[1]))
        return State(back(self.coef), back(self.decision), self.iteration, measures, before)

    @property
    def objective(self) -> float:
        return sum(measure.objective for measure in self.measures)

    @property
    def duality_gap(self) -> float:
        return sum(measure.duality_gap for measure in self.measures)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.objective, self.duality_gap)

    @property
    def violation(self) -> float:
        return max(measure.violation for measure in self.measures)
