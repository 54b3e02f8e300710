"""Rows of host memory on their way to the card.

Two pinned buffers here and two buffers there take turns: while the card works on one stretch of rows the next one
travels, on a stream of its own, and the one after that is being gathered by the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import torch

STAGING_BYTES = 64 << 20  # of each buffer

Stretch: TypeAlias = slice | torch.Tensor  # which rows: one after the other, or by number


def staged(rows: torch.Tensor, stretches: Sequence[Stretch], device: torch.device) -> Iterator[torch.Tensor]:
    """The given stretches of rows on the card, one after the other.

    What is yielded is overwritten after the next turn: launch the work on it before asking for more.
    """
    if device.type != "cuda":
        yield from (rows[stretch] for stretch in stretches)
        return
    shape = (max((_length(stretch) for stretch in stretches), default=0), rows.shape[1])
    here = [torch.empty(shape, dtype=rows.dtype, pin_memory=True) for _ in range(2)]
    there = [torch.empty(shape, dtype=rows.dtype, device=device) for _ in range(2)]
    copied, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
    working, travelling = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    travelling.wait_stream(working)  # the memory may have been another's just now

    def send(number: int) -> torch.Tensor:
        turn, length = number % 2, _length(stretches[number])
        copied[turn].synchronize()  # the last copy out of this buffer
        _gather(rows, stretches[number], here[turn][:length])
        travelling.wait_event(used[turn])
        with torch.cuda.stream(travelling):
            there[turn][:length].copy_(here[turn][:length], non_blocking=True)
            copied[turn].record(travelling)
        return there[turn][:length]

    try:
        coming = send(0) if stretches else None
        for number in range(len(stretches)):
            current, turn = coming, number % 2
            if number + 1 < len(stretches):
                coming = send(number + 1)
            working.wait_event(copied[turn])
            yield current
            used[turn].record(working)
    finally:
        working.wait_stream(travelling)  # before the memory becomes another's


def _length(stretch: Stretch) -> int:
    return stretch.stop - stretch.start if isinstance(stretch, slice) else len(stretch)


def _gather(rows: torch.Tensor, stretch: Stretch, out: torch.Tensor) -> None:
    if isinstance(stretch, slice):
        out.copy_(rows[stretch])
    else:
        torch.index_select(rows, 0, stretch, out=out)
