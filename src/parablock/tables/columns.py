"""The columns that kernels see, made of the columns of a table.

A numeric column is seen twice: scaled and clipped smoothly, and as its rank. A column of two values is seen once. A
category of three or more levels is a column of two values for each of up to twenty levels, and for each of at most four
targets the mean target of the level, pulled towards the overall mean as by five rows. Missing values take the median,
and a column of two values says where they were. Constant columns are left out. Everything is weighted.

The mean target of a level is that of *all* rows it was learned on. A row is never coded by the others of its level
alone: within a level such a code falls strictly with the row's own target, and a kernel reads the target from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

MOST_LEVELS = 20  # that become a column each
_CODED_TARGETS = 4
_PULL = 5.0  # rows of the overall mean that a level's mean is mixed with
_CLIP = 3.0
_LEAST_SPREAD = 1e-6  # of a code that tells something


@dataclass(frozen=True)
class View:
    """Rows as kernels see them.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Numeric columns and codes first, then those of two values.
    line : ndarray of shape (n_rows, n_columns)
        The same with -1/2 and 1/2 for two values: what the linear kernel sees.
    numeric : int
        How many columns have more than two values.
    """

    X: np.ndarray
    line: np.ndarray
    numeric: int

    def __len__(self) -> int:
        return len(self.X)

    def some(self, rows: np.ndarray | slice) -> View:
        return View(self.X[rows], self.line[rows], self.numeric)


@dataclass(frozen=True)
class Number:
    """A numeric column of more than two values: its clipped version and its rank."""

    source: int
    median: float
    scale: float
    points: np.ndarray
    places: np.ndarray

    def columns(self, values: np.ndarray) -> list[np.ndarray]:
        x = values[:, self.source]
        x = np.where(np.isnan(x), self.median, x)
        return [clipped(x, self.median, self.scale), np.interp(x, self.points, self.places)]


@dataclass(frozen=True)
class TwoValued:
    """A column of two values, 0 and 1 in between for values that were not seen.

    `level` is None for a numeric column, -1 for one that says where values are missing, or the level of a category.
    """

    source: int
    level: int | None
    low: float
    high: float
    missing: float
    gap: float

    def column(self, values: np.ndarray) -> np.ndarray:
        x = values[:, self.source]
        if self.level is not None:
            return (np.isnan(x) if self.level < 0 else x == self.level).astype(np.float64)
        share = (np.where(np.isnan(x), self.missing, x) - self.low) / (self.high - self.low)
        return np.clip(share, -1.0, 2.0)


@dataclass(frozen=True)
class Code:
    """Mean targets of the levels of a category, or of a run of 0/1 columns that sum to one."""

    source: int
    width: int  # columns of the run; 0 for a category
    target: int
    means: np.ndarray
    overall: float
    middle: float
    scale: float

    def levels(self, values: np.ndarray) -> np.ndarray:
        """The level of every row; -1 for one that was not there in training."""
        if not self.width:
            x = values[:, self.source]
            known = (x >= 0) & (x < len(self.means))
            return np.where(known, x, -1).astype(np.intp)
        run = values[:, self.source : self.source + self.width]
        return np.where((run == 1).sum(axis=1) == 1, run.argmax(axis=1), -1)

    def column(self, values: np.ndarray) -> np.ndarray:
        level = self.levels(values)
        return (np.where(level < 0, self.overall, self.means[level]) - self.middle) * self.scale

    def learned(self, values: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Code:
        """The same with the means of other rows."""
        level, y = self.levels(values), target[:, self.target]
        known = level >= 0
        overall = float(np.average(y, weights=weight))
        total = np.bincount(level[known], weight[known], len(self.means))
        sums = np.bincount(level[known], (weight * y)[known], len(self.means))
        means = (sums + _PULL * overall) / (total + _PULL)
        code = np.where(known, means[level], overall)
        mean = np.average(code, weights=weight)
        spread = float(np.sqrt(np.average((code - mean) ** 2, weights=weight)))
        scale = 1 / (2 * spread) if spread > _LEAST_SPREAD else 0.0
        return replace(self, means=means, overall=overall, middle=quantile(code, weight, 0.5), scale=scale)


@dataclass(frozen=True)
class Columns:
    """What makes a `View` of rows.

    Attributes
    ----------
    numbers, codes, pairs : list
        The columns in the order of the view: clipped numbers, their ranks, codes, columns of two values.
    """

    numbers: list[Number] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    pairs: list[TwoValued] = field(default_factory=list)

    @classmethod
    def learned(cls, values: np.ndarray, n_levels: Sequence[int], target: np.ndarray, weight: np.ndarray) -> Columns:
        """Of rows, where column j is a category of n_levels[j] levels, or numeric where that is 0."""
        made = cls()
        for j, levels in enumerate(n_levels):
            x = values[:, j]
            if levels:
                made._add_category(j, levels, x, weight)
            else:
                made._add_number(j, x, weight)
        runs = [(j, 0, levels) for j, levels in enumerate(n_levels) if levels > 2]
        runs += [(first, stop - first, stop - first) for first, stop in one_hot_runs(values, n_levels)]
        for source, width, levels in runs:
            for k in range(min(target.shape[1], _CODED_TARGETS)):
                code = Code(source, width, k, np.zeros(levels), 0.0, 0.0, 0.0).learned(values, target, weight)
                if code.scale:
                    made.codes.append(code)
        return made

    def with_codes_of(self, values: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Columns:
        """The same columns, with codes that are learned on other rows."""
        return replace(self, codes=[code.learned(values, target, weight) for code in self.codes])

    @property
    def sources(self) -> np.ndarray:
        """The table's column that each column of the view is made of; of a run the first one."""
        numbers = [number.source for number in self.numbers]
        return np.array(numbers * 2 + [c.source for c in self.codes] + [p.source for p in self.pairs], dtype=np.intp)

    def __len__(self) -> int:
        return 2 * len(self.numbers) + len(self.codes) + len(self.pairs)

    def view(self, values: np.ndarray) -> View:
        both = [number.columns(values) for number in self.numbers]
        numeric = [clip for clip, _ in both] + [rank for _, rank in both]
        numeric += [code.column(values) for code in self.codes]
        shares = [pair.column(values) for pair in self.pairs]
        n = len(values)
        X = [*numeric, *(pair.gap * share for pair, share in zip(self.pairs, shares, strict=True))]
        line = [*numeric, *(share - 0.5 for share in shares)]
        return View(_stacked(X, n), _stacked(line, n), len(numeric))

    # ------------------------------------------------------------------------------------------------ learning

    def _add_number(self, j: int, x: np.ndarray, weight: np.ndarray) -> None:
        missing = np.isnan(x)
        known, share = x[~missing], weight[~missing]
        points, index = np.unique(known, return_inverse=True)
        if len(points) >= 2:
            count = np.bincount(index, share)
            median = quantile(known, share, 0.5)
            scale = _scale(points, known, share)
            if len(points) == 2:
                ends = clipped(points, median, scale)
                gap = float(ends[1] - ends[0])
                self.pairs.append(TwoValued(j, None, float(points[0]), float(points[1]), median, gap))
            else:
                places = 2 * (np.cumsum(count) - count / 2) / count.sum() - 1
                self.numbers.append(Number(j, median, scale, points, places))
        if missing.any() and len(points):
            self._add_indicator(j, -1, missing, weight)

    def _add_category(self, j: int, levels: int, x: np.ndarray, weight: np.ndarray) -> None:
        if levels == 2:
            self._add_indicator(j, 1, x == 1, weight)
        elif 2 < levels <= MOST_LEVELS:
            for level in range(levels):
                self._add_indicator(j, level, x == level, weight)

    def _add_indicator(self, j: int, level: int, there: np.ndarray, weight: np.ndarray) -> None:
        x = there.astype(np.float64)
        if np.ptp(x) == 0:
            return
        ends = np.array([0.0, 1.0])
        gap = np.ptp(clipped(ends, quantile(x, weight, 0.5), _scale(ends, x, weight)))
        self.pairs.append(TwoValued(j, level, 0.0, 1.0, 0.0, float(gap)))


def clipped(x: np.ndarray, median: float, scale: float) -> np.ndarray:
    """About linear near the median, and never beyond three interquartile ranges."""
    u = np.clip((x - median) * scale, -1e100, 1e100)
    return u / np.sqrt(1 + (u / _CLIP) ** 2)


def _scale(points: np.ndarray, x: np.ndarray, weight: np.ndarray) -> float:
    """One over the interquartile range; where there is none, two over the range."""
    spread = quantile(x, weight, 0.75) - quantile(x, weight, 0.25)
    return float(1 / spread if spread > 0 else 2 / (points[-1] - points[0]))


def quantile(x: np.ndarray, weight: np.ndarray, q: float) -> float:
    """The value below which a share q of the weight lies; the middle of two where that is just between them."""
    order = np.argsort(x, kind="stable")
    points, sums = x[order], np.cumsum(weight[order])
    below = q * sums[-1]
    i = int(np.searchsorted(sums, below * (1 - 1e-12)))
    if sums[i] <= below * (1 + 1e-12) and i + 1 < len(points):
        return float(points[i] + (points[i + 1] - points[i]) / 2)
    return float(points[i])


def one_hot_runs(values: np.ndarray, n_levels: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring 0/1 columns, three or more, of which every row has exactly one: first and last plus one."""
    two = [
        not levels and bool(np.isin(column, (0.0, 1.0)).all())
        for column, levels in zip(values.T, n_levels, strict=True)
    ]
    runs, first = [], 0
    while first < len(two):
        total, stop = np.zeros(len(values)), first
        while stop < len(two) and two[stop] and total.min() < 1:
            total += values[:, stop]
            stop += 1
            if total.max() > 1:
                break
        complete = stop > first and total.min() == 1 == total.max()
        if complete and stop - first > 2:
            runs.append((first, stop))
        first = stop if complete else first + 1
    return runs


def _stacked(columns: list[np.ndarray], n: int) -> np.ndarray:
    return np.ascontiguousarray(np.column_stack(columns)) if columns else np.zeros((n, 0))
