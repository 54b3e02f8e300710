"""The dual problem with its vectors on the card: what `parablock.problem` computes in compiled loops, by torch."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from parablock.devices.cuda import torch_losses
from parablock.devices.cuda.losses import LossSpec, spec_of_loss
from parablock.problem import Measure, Problem, balancing_bias, out_of_range


class CardProblem(Problem):
    """Only numbers leave the card."""

    @classmethod
    def of(cls, problem: Problem, device: torch.device) -> CardProblem:
        if isinstance(problem, cls):
            return problem
        spec_of_loss(problem.loss)  # complains about losses that the card does not know
        target, weight, lower, upper = (
            torch.tensor(part, device=device) for part in (problem.target, problem.weight, problem.lower, problem.upper)
        )
        return cls(problem.loss, target, weight, lower, upper, problem.intercept)

    @property
    def spec(self) -> LossSpec:
        return spec_of_loss(self.loss)

    def dual_sum(self, output: int, coef: Tensor) -> float:
        return float(torch_losses.dual(self.spec, coef, *self._targets(output)).sum())

    def slopes(self, output: int, coef: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return torch_losses.slopes(self.spec, coef, *self._targets(output))

    def slope_along(self, output: int, coef: Tensor, direction: Tensor, ahead: bool) -> tuple[float, float]:
        left, right, bend = self.slopes(output, coef)
        slope = direction @ torch.where((direction > 0.0) == ahead, right, left)
        first, second = torch.stack((slope, (direction * direction) @ bend)).tolist()
        return first, second

    def moved(self, output: int, coef: Tensor, direction: Tensor, beta: float) -> Tensor:
        lower, upper, weight = self.lower[output], self.upper[output], self.weight[output]
        value = torch.minimum(torch.maximum(coef + beta * direction, lower), upper)
        size = torch.maximum(coef.abs(), value.abs()).max()
        near = torch.maximum(1e-12 * direction.abs(), 1e-13 * torch.minimum(weight, size))
        value = torch.where((value - lower).abs() <= near, lower, value)
        value = torch.where((value - upper).abs() <= near, upper, value)
        kink = self.loss.kink
        return value if math.isnan(kink) else torch.where((value - kink).abs() <= near, kink, value)

    def measure(self, output: int, coef: Tensor, decision: Tensor, bias: float | None = None) -> Measure:
        left, right, _ = self.slopes(output, coef)
        upward, downward = -(decision + right), decision + left
        highest, lowest = torch.stack((upward.max(), downward.max())).tolist()
        if bias is None:
            bias = 0.0
            if self.intercept:
                free = upward[upward == -downward]
                bias = _median(free) if len(free) else balancing_bias(np.empty(0), highest, lowest)
        upward, downward = upward - bias, downward + bias
        own = torch_losses.dual(self.spec, coef, *self._targets(output))
        loss = torch_losses.primal(self.spec, decision + bias, *self._targets(output))
        gap = torch.clamp(loss + own + coef * (decision + bias), min=0.0).sum()
        objective = own.sum() + 0.5 * (coef @ decision)
        value, distance = torch.stack((objective, gap)).tolist()
        if not math.isfinite(value):
            raise out_of_range(value)
        violation = highest + lowest if self.intercept else max(highest, lowest)
        return Measure(value, distance, max(violation, 0.0), bias, upward, downward)

    def _targets(self, output: int) -> tuple[Tensor, Tensor]:
        return self.target[output], self.weight[output]


def _median(values: Tensor) -> float:
    ordered, middle = values.sort().values, len(values) // 2
    return float(0.5 * (ordered[(len(values) - 1) // 2] + ordered[middle]))
