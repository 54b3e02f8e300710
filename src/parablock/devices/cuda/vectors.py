"""`parablock.vectors` for torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from parablock import vectors


@vectors.to_host.register
def _(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()


@vectors.place.register
def _(like: Tensor, values: Any) -> Tensor:
    return torch.as_tensor(values, device=like.device)


@vectors.zeros_like.register
def _(values: Tensor) -> Tensor:
    return torch.zeros_like(values)


@vectors.nobody.register
def _(like: Tensor, n: int) -> Tensor:
    return torch.zeros(n, dtype=torch.bool, device=like.device)


@vectors.numbers.register
def _(like: Tensor, start: int, stop: int) -> Tensor:
    return torch.arange(start, stop, device=like.device)


@vectors.flatnonzero.register
def _(values: Tensor) -> Tensor:
    return values.nonzero().squeeze(1)


@vectors.columns.register
def _(values: Tensor, rows: Tensor) -> Tensor:
    return values.index_select(1, rows)


@vectors.maximum.register
def _(values: Tensor, others: Tensor) -> Tensor:
    return torch.maximum(values, others)


@vectors.unique.register
def _(values: Tensor) -> Tensor:
    return torch.unique(values)


@vectors.largest.register
def _(values: Tensor, count: int) -> Tensor:
    return torch.topk(values, min(count, len(values)), sorted=False).indices


@vectors.exponential.register
def _(like: Tensor, rng: np.random.Generator) -> Tensor:
    generator = torch.Generator(like.device).manual_seed(int(rng.integers(2**62)))
    return torch.empty(len(like), dtype=torch.float64, device=like.device).exponential_(generator=generator)


@vectors._concatenate.register
def _(first: Tensor, parts: Sequence[Tensor], axis: int) -> Tensor:
    return torch.cat(list(parts), dim=axis)


@vectors._stack.register
def _(first: Tensor, parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts))


@vectors.add_columns.register
def _(values: Tensor, columns: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
    values.index_add_(1, torch.cat(list(columns)), torch.cat(list(parts), dim=1))
