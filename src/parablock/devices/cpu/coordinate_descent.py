"""Coordinate descent inside one block (paper, section 4.1), compiled.

    minimise over coef   1/2 delta' K delta + decision' delta + sum_i g_i(coef_i),   delta = coef - coef at start

Every update moves one variable, or a pair of them in opposite directions so that the block's sum stays, to the
exact minimum along that direction, and then refreshes `decision` with the moved variables' kernel columns.
The variable is chosen by rule:

    greedy   the one that violates its optimality condition most; as partner the one that promises the largest
             decrease (second order, as in LIBSVM: Fan, Chen and Lin, 2005)
    random   uniformly drawn; as partner the largest violator of the opposite direction
    cyclic   in turn; partner as for random

A loss enters only by its slopes: right_i = g'(coef_i +), infinite at the upper bound, and left_i = g'(coef_i -),
infinite at the lower one. A variable wants to grow by `upward_i = -(decision_i + right_i)` and to shrink by
`downward_i = decision_i + left_i`; the loops over a block know neither boxes nor losses.

`descend` never waits for a kernel column: it returns the index of one that is not in storage and is called
again once the column is there.

All of it is one file because Numba's cache watches only the file of the function that is called: a step that lived
elsewhere could change without the compiled descent noticing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from parablock.compiling import njit

GREEDY, RANDOM, CYCLIC = 0, 1, 2
CHOICES = {"greedy": GREEDY, "random": RANDOM, "cyclic": CYCLIC}
Slopes = Any  # a loss's compiled slopes
Extremes = tuple[int, float, int, float]  # who wants most to grow, how much; to shrink, how much
CONVERGED = -1  # other results of `descend` are the indices of missing columns
_TINY = 1e-12
_CHUNK: Any = np.uintp(128)
_BEGIN: Any = np.uintp(0)
# Nothing here makes an array or outlives the arrays that it is given, so Numba's runtime, which counts references to
# them, is left out: a Block holds fourteen, and counting them at every call takes longer than an update's arithmetic.
_COMPILED: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
# For passes over a block. Infinities are ordinary values here, so the flag that excludes them is left out; NumPy's
# errors are chosen because Python's would put a branch before every division.
_PASS: dict[str, Any] = {
    **_COMPILED,
    "fastmath": {"nnan", "nsz", "reassoc", "contract", "arcp"},
    "error_model": "numpy",
}


class Block(NamedTuple):
    """The arrays of one subproblem; the first group in the kernel's own precision."""

    storage: np.ndarray  # kernel columns of the block, one a row
    diagonal: np.ndarray
    decision: np.ndarray
    left: np.ndarray
    right: np.ndarray
    curvature: np.ndarray
    slot: np.ndarray  # where in storage a variable's column is, -1 when it is not
    stamp: np.ndarray  # when a place in storage was last used ...
    clock: np.ndarray  # ... by this clock
    coef: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class Rule(NamedTuple):
    """How to choose variables and when to stop."""

    choice: int
    pairs: bool
    fraction: float  # stop at this share of the block's first violation ...
    floor: float  # ... but no lower than this
    max_updates: int


class Progress(NamedTuple):
    """What survives between calls of `descend`."""

    counts: np.ndarray  # updates, picks, and a random pick that waits for its column (-1: none)
    goal: np.ndarray  # violation to stop at; negative until it is known
    random: np.ndarray  # state of the generator of random choices


def new_progress(seed: int) -> Progress:
    return Progress(np.array([0, 0, -1], dtype=np.int64), np.full(1, -1.0), np.array([seed], dtype=np.uint64))


@njit(**_COMPILED)
def prepare(slopes: Slopes, parameter: float, block: Block) -> None:
    """Fill the slopes of every variable."""
    for i in range(len(block.coef)):
        _refresh(slopes, parameter, block, i)


@njit(**_COMPILED)
def descend(slopes: Slopes, parameter: float, kink: float, block: Block, rule: Rule, progress: Progress) -> int:
    """Update variables until the block has converged (returns CONVERGED) or a kernel column is missing."""
    size = len(block.coef)
    counts = progress.counts
    up, highest, down, lowest = _extremes(block.decision, block.left, block.right)
    if progress.goal[0] < 0.0:
        first = highest + lowest if rule.pairs else max(highest, lowest)
        progress.goal[0] = max(rule.fraction * first, rule.floor)
    while counts[0] < rule.max_updates:
        violation = highest + lowest if rule.pairs else max(highest, lowest)
        if not violation > progress.goal[0]:
            return CONVERGED

        # Which variable grows, and which shrinks (-1: none).
        if rule.choice == GREEDY:
            grows = up if rule.pairs or highest >= lowest else -1
            shrinks = -1 if rule.pairs or highest >= lowest else down
        else:
            if rule.choice == RANDOM and counts[2] < 0:
                counts[2] = _random(progress.random, size)
            pick = counts[2] if rule.choice == RANDOM else counts[1] % size
            wish_up = -(block.decision[pick] + block.right[pick])
            wish_down = block.decision[pick] + block.left[pick]
            if rule.pairs:
                wish_up, wish_down = wish_up + lowest, wish_down + highest
            if max(wish_up, wish_down) <= 0.0:
                counts[1], counts[2] = counts[1] + 1, -1
                continue
            grows = pick if wish_up >= wish_down else (up if rule.pairs else -1)
            shrinks = pick if wish_up < wish_down else (down if rule.pairs else -1)
        if grows >= 0 and block.slot[grows] < 0:
            return grows
        if rule.pairs and rule.choice == GREEDY:
            shrinks = _partner(block, grows, highest, lowest)
        if shrinks >= 0 and block.slot[shrinks] < 0:
            return shrinks

        step = _move(slopes, parameter, kink, block, grows, shrinks)
        counts[0], counts[1], counts[2] = counts[0] + 1, counts[1] + 1, -1
        for moved in (grows, shrinks):
            if moved >= 0:
                block.clock[0] += 1
                block.stamp[block.slot[moved]] = block.clock[0]
                _refresh(slopes, parameter, block, moved)
        if step == 0.0 and rule.choice == GREEDY:
            return CONVERGED  # the violation is below what this precision resolves
        if rule.pairs:
            grown, shrunk = block.storage[block.slot[grows]], block.storage[block.slot[shrinks]]
            up, highest, down, lowest = _extremes(block.decision, block.left, block.right, step, grown, shrunk)
        else:
            change, column = step if grows >= 0 else -step, block.storage[block.slot[max(grows, shrinks)]]
            up, highest, down, lowest = _extremes(block.decision, block.left, block.right, change, column)
    return CONVERGED


@njit(**_COMPILED)
def _random(state: np.ndarray, size: int) -> Any:
    # Knuth's linear congruential generator: a state of its own a block, so that results repeat whatever thread
    # solves it.
    state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return np.int64(state[0] >> np.uint64(33)) % size


@njit(**_COMPILED)
def _refresh(slopes: Slopes, parameter: float, block: Block, i: int) -> None:
    left, right, curvature = slopes(block.coef[i], block.target[i], block.weight[i], parameter)
    block.left[i], block.right[i], block.curvature[i] = left, right, curvature


# --------------------------------------------------------------------- one step along one or two variables


@njit(**_COMPILED)
def _move(slopes: Slopes, parameter: float, kink: float, block: Block, grows: int, shrinks: int) -> float:
    """Move to the exact minimum along the direction; return how far.

    The function along the direction is convex and smooth between the variables' break points (bounds and
    kinks), so walk from piece to piece while the slope ahead is negative, then find the root inside the last.
    """
    quadratic, slope = 0.0, 0.0
    if grows >= 0:
        quadratic += block.diagonal[grows]
        slope += block.decision[grows]
    if shrinks >= 0:
        quadratic += block.diagonal[shrinks]
        slope -= block.decision[shrinks]
    if grows >= 0 and shrinks >= 0:
        quadratic -= 2.0 * block.storage[block.slot[grows], shrinks]
    quadratic = max(quadratic, _TINY)  # a kernel that is not positive definite must not stop the descent

    total = 0.0
    for _ in range(8):  # more pieces than any pair of variables has
        reach = np.inf
        if grows >= 0:
            reach = min(reach, _next_break(block.coef[grows], block.lower[grows], block.upper[grows], kink, 1.0))
        if shrinks >= 0:
            reach = min(
                reach,
                _next_break(block.coef[shrinks], block.lower[shrinks], block.upper[shrinks], kink, -1.0),
            )
        if reach <= 0.0:
            break
        ahead, curvature = _slope_at(slopes, parameter, block, grows, shrinks, 0.0, True)
        ahead += slope
        if ahead >= 0.0:
            break
        crosses = False
        if reach < np.inf:
            arriving, _ = _slope_at(slopes, parameter, block, grows, shrinks, reach, False)
            crosses = arriving + slope + quadratic * reach <= 0.0
        if crosses:
            step = reach
        else:
            step = _root(slopes, parameter, block, grows, shrinks, slope, quadratic, ahead, curvature, reach)
        if grows >= 0:
            block.coef[grows] = _land(block.coef[grows] + step, block.lower[grows], block.upper[grows], kink)
        if shrinks >= 0:
            block.coef[shrinks] = _land(block.coef[shrinks] - step, block.lower[shrinks], block.upper[shrinks], kink)
        total += step
        slope += quadratic * step
        if not crosses:
            break
    return total


@njit(**_COMPILED)
def _root(
    slopes: Slopes,
    parameter: float,
    block: Block,
    grows: int,
    shrinks: int,
    slope: float,
    quadratic: float,
    ahead: float,
    curvature: float,
    reach: float,
) -> float:
    """Zero of the increasing slope in (0, reach): Newton's method, exact at once where g is quadratic, held
    inside the bracket by bisection."""
    low, high = 0.0, reach
    step = -ahead / (quadratic + curvature)
    for _ in range(100):
        if not low < step < high:
            step = 0.5 * (low + high) if high < np.inf else 2.0 * low + 1.0
        at, bend = _slope_at(slopes, parameter, block, grows, shrinks, step, True)
        value = at + slope + quadratic * step
        if abs(value) <= 1e-12 * abs(ahead) or high - low <= 1e-15 * high:
            break
        if value < 0.0:
            low = step
        else:
            high = step
        step -= value / (quadratic + bend)
    return step


@njit(**_COMPILED)
def _slope_at(
    slopes: Slopes, parameter: float, block: Block, grows: int, shrinks: int, step: float, leaving: bool
) -> tuple[float, float]:
    """Slope and curvature of the losses' part along the direction at a step; at a break point the slope of the
    piece that begins there (leaving) or ends there."""
    slope, curvature = 0.0, 0.0
    if grows >= 0:
        left, right, bend = slopes(block.coef[grows] + step, block.target[grows], block.weight[grows], parameter)
        slope += right if leaving else left
        curvature += bend
    if shrinks >= 0:
        left, right, bend = slopes(block.coef[shrinks] - step, block.target[shrinks], block.weight[shrinks], parameter)
        slope -= left if leaving else right
        curvature += bend
    return slope, curvature


@njit(**_COMPILED)
def _next_break(coef: float, lower: float, upper: float, kink: float, sign: float) -> float:
    """How far it is to the next bound or kink."""
    if sign > 0.0:
        return (kink if coef < kink else upper) - coef
    return coef - (kink if coef > kink else lower)


@njit(**_COMPILED)
def _land(coef: float, lower: float, upper: float, kink: float) -> float:
    """Rounding must not leave a variable a hair away from a bound or kink that it has reached."""
    for place in (lower, upper, kink):
        if abs(coef - place) <= 1e-14 * abs(coef):
            return place
    return min(max(coef, lower), upper)


# ------------------------------------------------------------- passes over the block, written to be vectorised
#
# The compiler turns sums, products and the largest of many into vector instructions, but not the search for where that
# is. So every pass goes over the block in chunks, remembers the best chunk, and looks the place up in that: as the
# smallest of many, without leaving the loop early. Places are unsigned, because a signed one might count from the end.


@intrinsic
def _larger(context: Any, one: Any, other: Any) -> Any:
    """The larger of two floats, neither of which is nan. Python's max would be a branch, which no loop gets rid of."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item = arguments[0].type
        kind = ir.FunctionType(item, [item, item])
        maximum = builder.module.declare_intrinsic("llvm.maxnum", [item], kind)
        return builder.call(maximum, arguments, fastmath=("nnan", "nsz"))

    return one(one, one), generate


@njit(**_PASS)
def _partner(block: Block, grows: int, highest: float, lowest: float) -> Any:
    """The shrinking variable with which the pair promises the largest decrease, to second order.

    Two nearly equal samples promise much for any violation, also for one that is but rounding: pairs that violate
    far less than the worst do not count, nor differences of kernel values below their precision.
    """
    column = block.storage[block.slot[grows]]
    decision, left, diagonal, curvature = block.decision, block.left, block.diagonal, block.curvature
    precision = column.dtype.type
    zero, own, high = precision(0.0), diagonal[grows] + curvature[grows], precision(highest)
    gate = precision(0.01 * (highest + lowest))
    least_bend = precision(abs(own) * (1e-6 if column.itemsize == 4 else 1e-12) + 1e-12)
    size = np.uintp(len(column))
    best, where = zero, _BEGIN
    for start in range(_BEGIN, size, _CHUNK):
        top = zero
        for t in range(start, min(start + _CHUNK, size)):
            violation, bend = high + decision[t] + left[t], own + diagonal[t] + curvature[t] - column[t] - column[t]
            top = _larger(top, _promise(violation, bend, gate, least_bend))  # type: ignore[call-arg]
        if top > best:
            best, where = top, start
    enough = best * precision(1.0 - 1e-6)  # another loop may come to another last digit
    last = min(where + _CHUNK, size) - np.uintp(1)
    place = last
    for t in range(where, last):
        violation, bend = high + decision[t] + left[t], own + diagonal[t] + curvature[t] - column[t] - column[t]
        place = min(place, t if _promise(violation, bend, gate, least_bend) >= enough else last)
    return np.int64(place)


@njit(**_PASS, inline="always")
def _promise(violation: Any, bend: Any, gate: Any, least_bend: Any) -> Any:
    gain = violation if violation > gate else gate - gate
    return gain * gain / max(bend, least_bend)


@njit(**_PASS)
def _extremes(
    decision: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    step: float = 0.0,
    grown: np.ndarray | None = None,
    shrunk: np.ndarray | None = None,
) -> Extremes:
    """Who wants most to grow, by how much; who wants most to shrink, by how much: once `decision` has followed a step.

    Which columns there are to follow is known when this is compiled, so that the loop itself does not ask.
    """
    precision = decision.dtype.type
    factor, least = precision(step), precision(-np.inf)
    size = np.uintp(len(decision))
    highest, lowest, up, down = least, least, _BEGIN, _BEGIN
    for start in range(_BEGIN, size, _CHUNK):
        top_up, top_down = least, least
        for t in range(start, min(start + _CHUNK, size)):
            if grown is not None:
                decision[t] += factor * (grown[t] if shrunk is None else grown[t] - shrunk[t])
            top_up = _larger(top_up, -(decision[t] + right[t]))  # type: ignore[call-arg]
            top_down = _larger(top_down, decision[t] + left[t])
        if top_up > highest:
            highest, up = top_up, start
        if top_down > lowest:
            lowest, down = top_down, start
    up, down = _place_of(-highest, decision, right, up), _place_of(lowest, decision, left, down)
    return up, np.float64(highest), down, np.float64(lowest)


@njit(**_PASS)
def _place_of(value: float, decision: np.ndarray, slope: np.ndarray, start: Any) -> Any:
    """Where in a chunk the sum is the value; a sum of two numbers has the same last digit wherever it is computed."""
    last = min(start + _CHUNK, np.uintp(len(decision))) - np.uintp(1)
    place = last
    for t in range(start, last):
        place = min(place, t if decision[t] + slope[t] == value else last)
    return np.int64(place)
