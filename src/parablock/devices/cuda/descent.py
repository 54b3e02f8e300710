"""Greedy coordinate descent in many blocks at once: one launch, one program a block.

The same updates as in `devices/cpu/coordinate_descent.py`, which explains them: a program moves the variable that
violates its optimality condition most, or the pair that promises the largest decrease, to the exact minimum along that
direction, until its own violation has fallen far enough.

What an update reads of every variable (decision, slopes, diagonal) stays in registers; of the one or two variables that
move it also reads coefficient, target and weight, as single numbers from memory. So coefficients are float64 in memory,
a step is taken in float64, and nothing of a block's width is. An update costs two reductions over the block and the
latency of two kernel columns:

    the largest wishes to grow and to shrink, and whose the first is    reduction
    the column of the growing variable                                  from memory, with that variable's numbers
    the partner that promises most                                      reduction
    the partner's column                                                from memory, with that variable's numbers
    the step, in float64, the same in all threads
    decision += step (column - column); the slopes of the two

Threads are busy with instructions as much as they wait for columns, hence the care for each operation over a block's
width below.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from parablock.devices.cuda.losses import EPSILON_INSENSITIVE, LOGISTIC, LossSpec, bounds, slopes
from parablock.devices.cuda.torch_losses import fitting_bias

LARGEST_BLOCK = 4096  # whose variables fit into the registers of one program
_UPDATES_A_VARIABLE = 1000  # where the rule sets no limit, as on the CPU
_VARIABLES_A_WARP = 512  # 4,096 variables: 8 warps; what all threads compute alike then weighs less than with 16
_LEAST_SIZE = 16
# Differences of kernel values below this share of them are rounding.
_RESOLUTION = {torch.float32: 1e-6, torch.float16: 1e-3}


class Limits(NamedTuple):
    """When a block is solved.

    Attributes
    ----------
    pairs : bool
        Whether variables move in pairs that keep the block's sum.
    fraction, floor : float
        Stop at this share of the block's first violation, but no lower than the floor.
    max_updates : int or None
    """

    pairs: bool
    fraction: float
    floor: float
    max_updates: int | None = None


class Solved(NamedTuple):
    """What the descent found, one row a program.

    Attributes
    ----------
    coef : tensor of shape (programs, size), float64
    wish : tensor of shape (programs, size), float32
        How much each variable would still like to move; -inf where there is none.
    bias : tensor of shape (programs,), float32
        The intercept that fits the block's free variables; zero without pairs.
    updates : tensor of shape (programs,), int32
    """

    coef: torch.Tensor
    wish: torch.Tensor
    bias: torch.Tensor
    updates: torch.Tensor


def descend(
    loss: LossSpec,
    matrices: torch.Tensor,
    which: torch.Tensor,
    coef: torch.Tensor,
    decision: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    limits: Limits,
) -> Solved:
    """Solve the subproblems of many blocks and outputs.

    Parameters
    ----------
    loss : LossSpec
    matrices : tensor of shape (n_blocks, size, size), float16 or float32
        Kernel matrices of the blocks, symmetric.
    which : tensor of shape (programs,), integer
        The matrix of each program: outputs over the same rows share one.
    coef, decision, target, weight : tensor of shape (programs, size), float64
        A weight of zero says that there is no such variable, where a block is smaller than its matrix. `decision` is
        kept in float32 during the descent.
    limits : Limits
    """
    programs, size = coef.shape
    if size > LARGEST_BLOCK:
        raise ValueError(f"A block on a GPU has at most {LARGEST_BLOCK} variables; got {size}.")
    new = coef.to(torch.float64).contiguous().clone()
    upward = torch.empty((programs, size), dtype=torch.float32, device=coef.device)
    downward = torch.empty_like(upward)
    updates = torch.empty(programs, dtype=torch.int32, device=coef.device)
    parameter = torch.full((1,), loss.parameter, dtype=torch.float64, device=coef.device)
    limit = limits.max_updates if limits.max_updates is not None else _UPDATES_A_VARIABLE * size
    width = max(_LEAST_SIZE, 1 << (size - 1).bit_length())
    if programs:
        _descend[(programs,)](
            matrices,
            which.to(torch.int64).contiguous(),
            new,
            decision.to(torch.float64).contiguous(),
            target.to(torch.float64).contiguous(),
            weight.to(torch.float64).contiguous(),
            parameter,
            upward,
            downward,
            updates,
            size,
            float(limits.fraction),
            float(limits.floor),
            limit,
            LOSS=loss.number,
            PAIRS=limits.pairs,
            RESOLUTION=_RESOLUTION[matrices.dtype],
            SIZE=width,
            EVEN=width == size,
            num_warps=max(1, width // _VARIABLES_A_WARP),
            num_stages=1,
        )
    bias = fitting_bias(upward, downward) if limits.pairs else torch.zeros_like(upward[:, 0])
    wish = torch.maximum(upward - bias[:, None], downward + bias[:, None])
    return Solved(new, wish, bias, updates)


# The numbers of steps, and the first variable's direction, are all float64 scalars: every thread has the same.


@triton.jit(do_not_specialize=["limit"])
def _descend(
    matrices,
    which,
    coef,
    decisions,
    target,
    weight,
    parameter,
    upward,
    downward,
    updates_made,
    size,
    fraction,
    floor,
    limit,
    LOSS: tl.constexpr,
    PAIRS: tl.constexpr,
    RESOLUTION: tl.constexpr,
    SIZE: tl.constexpr,
    EVEN: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    matrix = matrices + tl.load(which + program) * size * size
    coef += program * size
    target += program * size
    weight += program * size
    number = tl.load(parameter)

    variable = tl.arange(0, SIZE)
    inside = variable < size
    w = tl.load(weight + variable, inside, 0.0)
    exists = w > 0.0
    c, y = tl.load(coef + variable, inside, 0.0), tl.load(target + variable, inside, 0.0)
    left64, right64, curvature64 = slopes(c, y, tl.where(exists, w, 1.0), number, LOSS)
    left = tl.where(exists, left64, float("-inf")).to(tl.float32)
    right = tl.where(exists, right64, float("inf")).to(tl.float32)
    decision = tl.load(decisions + program * size + variable, inside, 0.0).to(tl.float32)
    # How a variable's own move bends the objective: its diagonal entry and the curvature of its loss.
    diagonal = tl.load(matrix + variable.to(tl.int64) * size + variable, inside, 1.0).to(tl.float32)
    bend = diagonal + curvature64.to(tl.float32)

    first, grows, highest, violation = _worst(-(decision + right), decision + left, variable, PAIRS)
    goal = tl.maximum(fraction * violation, floor)
    updates = 0
    going = (violation > goal) & (limit > 0)
    while going:
        column = _column(matrix, first, variable, size, EVEN)
        k1 = tl.load(matrix + first.to(tl.int64) * size + first).to(tl.float32)
        c1, y1, w1 = tl.load(coef + first), tl.load(target + first), tl.load(weight + first)
        left1, right1, curvature1 = slopes(c1, y1, w1, number, LOSS)
        bend1 = k1 + curvature1.to(tl.float32)
        along1 = tl.where(grows, right1, -left1)

        if PAIRS:
            # Two nearly equal samples promise much for any violation, also for one that is but rounding: hence the
            # gate and the least bend.
            least = tl.abs(bend1) * RESOLUTION + 1e-12
            gain = highest + (decision + left)
            gain = tl.where(gain > 0.01 * violation, gain, 0.0)
            promise = gain * tl.rsqrt(tl.maximum(bend1 + bend - 2.0 * column, least))
            most, second = _most_promising(promise, variable, SIZE)
            other = _column(matrix, second, variable, size, EVEN)
            k2 = tl.load(matrix + second.to(tl.int64) * size + second).to(tl.float32)
            k12 = tl.load(matrix + first.to(tl.int64) * size + second).to(tl.float32)
            c2, y2, w2 = tl.load(coef + second), tl.load(target + second), tl.load(weight + second)
            left2, right2, curvature2 = slopes(c2, y2, w2, number, LOSS)
            bend2 = k2 + curvature2.to(tl.float32)
            along2 = -left2
            quadratic = tl.maximum(k1 + k2 - 2.0 * k12, tl.abs(k1) * RESOLUTION + 1e-12)
            # The pair's violation, from its promise: to ask the registers for the partner's decision would cost another
            # reduction.
            wish = most * tl.sqrt(tl.maximum(bend1 + bend2 - 2.0 * k12, least))
            from_decision = tl.abs(highest + right1.to(tl.float32)) + tl.abs(highest + left2.to(tl.float32) - wish)
        else:
            c2, y2, w2, along2, curvature2 = c1, y1, w1, c1 - c1, c1 - c1
            quadratic = tl.maximum(k1, 1e-12)
            wish = violation
            from_decision = tl.abs(wish + along1.to(tl.float32))
        # A violation below what float32 resolves of the decision would be chased for ever.
        wish = tl.where(wish > 2.0**-22 * from_decision, wish, 0.0)

        if LOSS == LOGISTIC:
            slope = -wish.to(tl.float64) - (along1 + along2)
            new1, new2, step = _smooth_move(
                c1, y1, w1, grows, c2, y2, w2, wish, slope, quadratic.to(tl.float64), curvature1 + curvature2, PAIRS
            )
        elif LOSS == EPSILON_INSENSITIVE:
            slope = -wish.to(tl.float64) - (along1 + along2)
            new1, new2, step = _walk(c1, y1, w1, grows, c2, y2, w2, slope, quadratic, number, PAIRS)
        else:
            lower1, upper1 = bounds(y1, w1, number, LOSS)
            lower2, upper2 = bounds(y2, w2, number, LOSS)
            root = (wish / (quadratic + (curvature1 + curvature2).to(tl.float32))).to(tl.float64)
            reach = _room(c1, lower1, upper1, c2, lower2, grows, PAIRS)
            step = tl.where(wish > 0.0, tl.minimum(root, reach), 0.0)
            new1 = _landed(tl.where(grows, c1 + step, c1 - step), lower1, upper1)
            new2 = _landed(c2 - step, lower2, upper2)

        tl.debug_barrier()  # nobody stores before all threads have read the old coefficients
        left1, right1, curvature1 = slopes(new1, y1, w1, number, LOSS)
        moved = variable == first
        left = tl.where(moved, left1.to(tl.float32), left)
        right = tl.where(moved, right1.to(tl.float32), right)
        if LOSS == LOGISTIC:
            bend = tl.where(moved, k1 + curvature1.to(tl.float32), bend)
        tl.store(coef + first, new1)
        factor = step.to(tl.float32)
        if PAIRS:
            left2, right2, curvature2 = slopes(new2, y2, w2, number, LOSS)
            moved = variable == second
            left = tl.where(moved, left2.to(tl.float32), left)
            right = tl.where(moved, right2.to(tl.float32), right)
            if LOSS == LOGISTIC:
                bend = tl.where(moved, k2 + curvature2.to(tl.float32), bend)
            tl.store(coef + second, new2)
            decision += factor * (column - other)
        else:
            decision += tl.where(grows, factor, -factor) * column
        tl.debug_barrier()  # nor does anybody read the next ones before they are stored

        updates += 1
        first, grows, highest, violation = _worst(-(decision + right), decision + left, variable, PAIRS)
        going = (violation > goal) & (step > 0.0) & (updates < limit)

    tl.store(upward + program * size + variable, -(decision + right), inside)
    tl.store(downward + program * size + variable, decision + left, inside)
    tl.store(updates_made + program, updates)


# --------------------------------------------------------------------------- one step along one or two variables
#
# The first variable grows or shrinks; the second, of a pair, shrinks.


@triton.jit
def _room(c1, lower1, upper1, c2, lower2, grows, PAIRS: tl.constexpr):
    """How far it is to the next of the given ends."""
    room = tl.where(grows, upper1 - c1, c1 - lower1)
    if PAIRS:
        room = tl.minimum(room, c2 - lower2)
    return room


@triton.jit
def _landed(coef, lower, upper):
    """Rounding must not leave a variable a hair away from a bound that it has reached."""
    near = 1e-14 * tl.abs(coef)
    landed = tl.where(coef - lower <= near, lower, coef)
    return tl.where(upper - coef <= near, upper, landed)


@triton.jit
def _walk(c1, y1, w1, grows, c2, y2, w2, slope, quadratic, number, PAIRS: tl.constexpr):
    """From piece to piece of the epsilon-insensitive loss, which has a kink at zero, while the slope is negative."""
    lower1, upper1 = bounds(y1, w1, number, EPSILON_INSENSITIVE)
    lower2, upper2 = bounds(y2, w2, number, EPSILON_INSENSITIVE)
    total = slope - slope
    pieces = 0
    walking = quadratic > 0.0
    while walking:
        left1, right1, _ = slopes(c1, y1, w1, number, EPSILON_INSENSITIVE)
        ahead = slope + tl.where(grows, right1, -left1)
        if PAIRS:
            left2, _, _ = slopes(c2, y2, w2, number, EPSILON_INSENSITIVE)
            ahead -= left2
        reach = _room(
            c1,
            tl.where(c1 > 0.0, 0.0, lower1),
            tl.where(c1 < 0.0, 0.0, upper1),
            c2,
            tl.where(c2 > 0.0, 0.0, lower2),
            grows,
            PAIRS,
        )
        root = (-ahead.to(tl.float32) / quadratic).to(tl.float64)
        step = tl.where(ahead < 0.0, tl.minimum(root, reach), 0.0)
        c1 = _landed(tl.where(grows, c1 + step, c1 - step), lower1, upper1)
        if PAIRS:
            c2 = _landed(c2 - step, lower2, upper2)
        total += step
        slope += quadratic.to(tl.float64) * step
        pieces += 1
        walking = (step > 0.0) & (root >= reach) & (pieces < 8)  # more pieces than a pair has
    return c1, c2, total


@triton.jit
def _smooth_move(c1, y1, w1, grows, c2, y2, w2, wish, slope, quadratic, curvature, PAIRS: tl.constexpr):
    """To the root of the increasing slope of the logistic loss, or to the bound: Newton's method, held inside the
    bracket by bisection."""
    lower1, upper1 = bounds(y1, w1, slope, LOGISTIC)
    lower2, upper2 = bounds(y2, w2, slope, LOGISTIC)
    reach = _room(c1, lower1, upper1, c2, lower2, grows, PAIRS)
    ahead = -wish.to(tl.float64)
    arriving, _ = _logistic_slope(c1, y1, w1, grows, c2, y2, w2, reach, PAIRS)
    crosses = arriving + slope + quadratic * reach <= 0.0
    low, high = reach - reach, reach
    trial = -ahead / (quadratic + curvature)
    step = low
    trials = 0
    searching = (ahead < 0.0) & (reach > 0.0) & (arriving + slope + quadratic * reach > 0.0)
    while searching:
        step = tl.where((trial > low) & (trial < high), trial, 0.5 * (low + high))
        at, bend = _logistic_slope(c1, y1, w1, grows, c2, y2, w2, step, PAIRS)
        value = at + slope + quadratic * step
        low, high = tl.where(value < 0.0, step, low), tl.where(value < 0.0, high, step)
        trial = step - value / (quadratic + bend)
        trials += 1
        searching = (tl.abs(value) > -1e-9 * ahead) & (high - low > 1e-15 * high) & (trials < 100)
    step = tl.where(crosses, reach, step)
    step = tl.where((ahead < 0.0) & (reach > 0.0), step, 0.0)
    new1 = _landed(tl.where(grows, c1 + step, c1 - step), lower1, upper1)
    return new1, _landed(c2 - step, lower2, upper2), step


@triton.jit
def _logistic_slope(c1, y1, w1, grows, c2, y2, w2, step, PAIRS: tl.constexpr):
    """Slope and curvature of the losses' part along the direction at a step."""
    slope1, bend = _inner_slope(tl.where(grows, c1 + step, c1 - step), y1, w1)
    slope = tl.where(grows, slope1, -slope1)
    if PAIRS:
        slope2, bend2 = _inner_slope(c2 - step, y2, w2)
        slope -= slope2
        bend += bend2
    return slope, bend


@triton.jit
def _inner_slope(coef, target, weight):
    # The slope inside the box also at its ends, where a step from one end to the other begins and arrives.
    inside = tl.maximum(coef * target, 1e-12 * weight)
    outside = tl.maximum(weight - coef * target, 1e-12 * weight)
    return target * tl.log(inside / outside), weight / (inside * outside)


# --------------------------------------------------------------------------------------- over a block's width


@triton.jit
def _column(matrix, number, variable, size, EVEN: tl.constexpr):
    """A variable's kernel column; its row, in fact, which is the same and lies together."""
    place = matrix + number.to(tl.int64) * size + variable
    values = tl.load(place) if EVEN else tl.load(place, variable < size, 0.0)
    return values.to(tl.float32)


@triton.jit
def _worst(upward, downward, variable, PAIRS: tl.constexpr):
    """Which variable violates most, whether it wants to grow, the largest wish to grow, and the block's violation.

    With pairs it is the one that wants most to grow, whatever others want.
    """
    if PAIRS:
        highest, first, lowest = tl.reduce((upward, variable, downward), 0, _worse_and_lowest)
        grows = highest == highest
        violation = highest + lowest
    else:
        # The direction travels as the last bit of the place.
        violation, place = tl.reduce((tl.maximum(upward, downward), 2 * variable + (downward > upward)), 0, _worse)
        first, grows, highest = place >> 1, (place & 1) == 0, violation
    return first, grows, highest, violation


@triton.jit
def _worse(wish, place, other_wish, other_place):
    # Of equal ones the first: threads that compare in another order must agree.
    keep = (wish > other_wish) | ((wish == other_wish) & (place < other_place))
    return tl.where(keep, wish, other_wish), tl.where(keep, place, other_place)


@triton.jit
def _worse_and_lowest(wish, place, downward, other_wish, other_place, other_downward):
    worst, where = _worse(wish, place, other_wish, other_place)
    return worst, where, tl.maximum(downward, other_downward)


@triton.jit
def _most_promising(promise, variable, SIZE: tl.constexpr):
    """The largest promise and whose it is.

    The bits of a float that is not negative grow with it. The last of them make way for the variable's number, so that
    one maximum of integers finds both. What is lost of the promise, a relative 2^-11 in the largest blocks, makes one
    step that much shorter.
    """
    bits = promise.to(tl.int32, bitcast=True)
    best = tl.max((bits & -SIZE) | (SIZE - 1 - variable), axis=0)
    return (best & -SIZE).to(tl.float32, bitcast=True), SIZE - 1 - (best & (SIZE - 1))
