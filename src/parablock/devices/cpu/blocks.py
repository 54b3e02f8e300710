"""One block's subproblem, from the problem's arrays to the compiled descent and back."""

from __future__ import annotations

import numpy as np

from parablock.devices.base import BlockRule
from parablock.devices.cpu.columns import Columns
from parablock.devices.cpu.coordinate_descent import (
    CHOICES,
    CONVERGED,
    Block,
    Rule,
    descend,
    new_progress,
    prepare,
)
from parablock.problem import Problem, fitting_bias

_UPDATES_A_VARIABLE = 1000  # where the rule sets no limit: more than any block was seen to need


def solve_block(
    problem: Problem,
    output: int,
    point: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    columns: Columns,
    rule: BlockRule,
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """New coefficients of the rows, how much they would still like to move, the intercept that fits the block alone,
    and the number of updates."""
    dtype = columns.storage.dtype
    coef, decision = point
    slopes, parameter, target, weight = problem.terms(output, rows)
    block = Block(
        storage=columns.storage,
        diagonal=columns.kernel.diagonal(columns.samples.self_overlap).astype(dtype),
        decision=decision[output, rows].astype(dtype),
        left=np.empty(len(rows), dtype),
        right=np.empty(len(rows), dtype),
        curvature=np.empty(len(rows), dtype),
        slot=columns.slot,
        stamp=columns.stamp,
        clock=columns.clock,
        coef=coef[output, rows],
        target=target,
        weight=weight,
        lower=problem.lower[output, rows],
        upper=problem.upper[output, rows],
    )
    limit = _UPDATES_A_VARIABLE * len(rows) if rule.max_updates is None else rule.max_updates
    compiled_rule = Rule(CHOICES[rule.choice], rule.pairs, rule.fraction, rule.floor, limit)
    progress = new_progress(rule.seed)
    prepare(slopes, parameter, block)
    while True:
        missing = descend(slopes, parameter, problem.loss.kink, block, compiled_rule, progress)
        upward, downward = -(block.decision + block.right), block.decision + block.left
        if missing == CONVERGED:
            bias = fitting_bias(upward, downward) if rule.pairs else 0.0
            with np.errstate(invalid="ignore"):  # of a problem without a minimum
                wish = np.maximum(upward - bias, downward + bias)
            return block.coef, wish, bias, int(progress.counts[0])
        columns.fetch(missing, np.maximum(upward, downward))
