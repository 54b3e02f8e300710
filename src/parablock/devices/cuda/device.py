"""The GPU: fused kernel products and many blocks at once, by Triton; the solver's vectors by torch.

No kernel value is kept from one product to the next: to compute it again costs less than a thousandth of a microsecond.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from parablock import vectors
from parablock.devices.base import BlockRule, BlockStep, Device, Rows, Samples
from parablock.devices.cuda import products
from parablock.devices.cuda import vectors as _tensors  # noqa: F401 - so that `parablock.vectors` knows tensors
from parablock.devices.cuda.descent import LARGEST_BLOCK, Limits, Solved, descend
from parablock.devices.cuda.kernel_values import KernelSpec, spec_of
from parablock.devices.cuda.problem import CardProblem
from parablock.devices.cuda.samples import CudaSamples, has_room, make_samples, operands_of
from parablock.devices.cuda.sources import Source, SparseSource, source_of
from parablock.devices.cuda.sparse import SparseOperand
from parablock.devices.cuda.sparse_tree import tree as sparse_tree
from parablock.devices.cuda.tree import tree
from parablock.devices.memory import bytes_for_rows, memory_bytes
from parablock.kernels import Kernel
from parablock.problem import Problem

# A step waits for its slowest block while most of the card is idle: one that is not solved by then goes on in the next.
_UPDATES_A_STEP = 2  # a variable of the largest block
_LEAST_SIZE = 16
_GIGABYTE = 1 << 30


class CudaDevice(Device):
    name = "cuda"
    largest_block = LARGEST_BLOCK
    keeps_columns = False
    has_own_tree = True
    solves_in_turn = False
    has_float64 = False

    def __init__(self, n_jobs: int | None, memory_limit: Any = None, sharers: int = 1, place: int = 0) -> None:
        self.device = _card(place)
        self.memory_limit = None if memory_limit is None else memory_bytes(memory_limit)
        self.sharers = -(-sharers // max(1, torch.cuda.device_count()))  # of this card
        self.kernel_evaluations = 0
        self._last: tuple[Any, Any] = None, None  # data that is on the card already

    @contextmanager
    def session(self) -> Iterator[CudaDevice]:
        # Triton launches on the current card, which need not be this one where there are several.
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            yield self

    def near(self, problem: Problem) -> CardProblem:
        return CardProblem.of(problem, self.device)

    def keeps(self, tensor: Any) -> bool:
        return tensor.device.type == self.device.type

    def wants_whole_numbers(self, X: Any) -> bool:
        """Whole numbers stay exact then, and products of them need one part instead of two."""
        self._last = X, self._found(X)  # the same data is about to be made ready
        return self._last[1][0].is_whole()

    def samples(self, X: Any, kernel: Kernel, centre: np.ndarray | None = None) -> CudaSamples:
        spec = spec_of(kernel)
        source, room = self._last[1] if X is self._last[0] else self._found(X)
        self._last = None, None
        source = source.centred(centre) if kernel.shift_invariant else source
        return make_samples(source, kernel, spec, room)

    def _found(self, X: Any) -> tuple[Source | SparseSource, int]:
        """Where rows are read from (the card, if all of them will be there), and the bytes that they may take there."""
        source, room = source_of(X, self.device), bytes_for_rows(self._room())
        if isinstance(source, Source) and has_room(source, room) and source.nbytes <= room:
            source = source.brought()
        return source, room

    def tree(self, samples: Samples, n_blocks: int, rng: np.random.Generator) -> list[torch.Tensor]:
        assert isinstance(samples, CudaSamples)
        if isinstance(samples.operand, SparseOperand):
            return sparse_tree(samples.operand, n_blocks, rng)
        return tree(samples.X, n_blocks, rng)

    def given_columns(self, numbers: np.ndarray, dtype: Any) -> Samples:
        raise ValueError("kernel='precomputed' is not available on a GPU: use device='cpu'.")

    def gram(self, kernel: Kernel, rows: Samples, columns: Samples) -> np.ndarray:
        assert isinstance(rows, CudaSamples) and isinstance(columns, CudaSamples)
        self.kernel_evaluations += len(rows) * len(columns)
        return products.gram(spec_of(kernel), *operands_of(rows, columns)).cpu().numpy()

    def kernel_dot(self, kernel: Kernel, rows: Samples, columns: Samples, coef: np.ndarray) -> np.ndarray:
        assert isinstance(rows, CudaSamples) and isinstance(columns, CudaSamples)
        self.kernel_evaluations += len(rows) * len(columns)
        result = products.kernel_dot(spec_of(kernel), *operands_of(rows, columns), self._tensor(coef))
        return vectors.place(coef, result)

    def column_dot(
        self,
        kernel: Kernel,
        samples: Samples,
        sources: Rows,
        rows: np.ndarray,
        coef: np.ndarray,
        more: Iterable[Samples] = (),
    ) -> np.ndarray:
        return self.forgetful_dot(kernel, samples, sources.take(rows), coef, more)

    def prefetch(
        self, kernel: Kernel, samples: Samples, sources: Rows, rows: np.ndarray, values: np.ndarray | None = None
    ) -> None:
        """Nothing is kept."""

    def extend(
        self,
        kernel: Kernel,
        samples: Samples,
        more: Iterable[Samples],
        sources: Rows,
        useful: np.ndarray,
        room: tuple[int, int],
    ) -> None:
        for _ in more:
            pass  # nothing is kept, but whoever makes them counts on being asked

    # ------------------------------------------------------------------------------------------------------- blocks

    def solve_blocks(
        self,
        kernel: Kernel,
        samples: Samples,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        blocks: Sequence[np.ndarray],
        rule: BlockRule,
        keep: bool = False,
        matrix: np.ndarray | None = None,
    ) -> list[BlockStep]:
        assert isinstance(samples, CudaSamples) and matrix is None
        if rule.choice != "greedy":
            raise ValueError(
                f"block_solver={rule.choice!r} is not available on a GPU, which has 'greedy': use device='cpu'."
            )
        whole = [self._tensor(block) for block in blocks]
        pieces, of_piece = _cut_to_size(whole)
        outputs = [rule.outputs_of(block) for block in of_piece]
        spec, near = spec_of(kernel), (self._tensor(point[0]), self._tensor(point[1]))
        found: list[BlockStep] = []
        for first, last in self._waves(pieces):
            wave = pieces[first:last]
            found += self._solve(spec, samples, self.near(problem), near, wave, outputs[first:last], rule)
        self.kernel_evaluations += sum(len(piece) ** 2 for piece in pieces)
        steps = _joined(found, of_piece, whole)
        return [step.on_host() for step in steps] if isinstance(point[0], np.ndarray) else steps

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(values, device=self.device)

    def _waves(self, pieces: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
        """Stretches of blocks whose matrices have room at once."""
        matrix = _padded(pieces) ** 2 * torch.float32.itemsize
        count = max(1, self._room() // 2 // matrix)
        return [(first, min(first + count, len(pieces))) for first in range(0, len(pieces), count)]

    def _solve(
        self,
        spec: KernelSpec,
        samples: CudaSamples,
        problem: CardProblem,
        point: tuple[torch.Tensor, torch.Tensor],
        pieces: Sequence[torch.Tensor],
        outputs: Sequence[Sequence[int]],
        rule: BlockRule,
    ) -> list[BlockStep]:
        """One wave: the matrices of all blocks, then a program for each block and output."""
        rows = _side_by_side(pieces, _padded(pieces))
        matrices = products.block_grams(spec, samples.operand, rows, torch.float32)
        which = self._tensor(np.repeat(np.arange(len(pieces)), [len(those) for those in outputs]))
        output = self._tensor([one for those in outputs for one in those])
        there, filled = rows[which] >= 0, rows[which].clamp(min=0)
        coef, decision, target, weight = (
            values[output[:, None], filled] for values in (*point, problem.target, problem.weight)
        )
        coef, weight = torch.where(there, coef, 0.0), torch.where(there, weight, 0.0)
        limit = rule.max_updates
        if limit is None and rule.fraction > 0.0:
            limit = _UPDATES_A_STEP * max(len(piece) for piece in pieces)
        limits = Limits(rule.pairs, rule.fraction, rule.floor, limit)
        solved = descend(problem.spec, matrices, which, coef, decision, target, weight, limits)
        return _steps(solved, coef, pieces, which, output, problem.n_outputs)

    # ------------------------------------------------------------------------------------------------------- memory

    def _room(self) -> int:
        """Bytes that matrices may take."""
        return self._free() if self.memory_limit is None else min(self._free(), self.memory_limit)

    def _free(self) -> int:
        if self.device.type != "cuda":
            return _GIGABYTE
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return (torch.cuda.mem_get_info(self.device)[0] + cached) // self.sharers


def _steps(
    solved: Solved,
    before: torch.Tensor,
    pieces: Sequence[torch.Tensor],
    which: torch.Tensor,
    output: torch.Tensor,
    n_outputs: int,
) -> list[BlockStep]:
    """What each program found, block by block for all outputs."""
    shape = len(pieces), n_outputs, before.shape[1]
    step, wish = torch.zeros(shape, dtype=before.dtype, device=before.device), before.new_full(shape, torch.nan)
    bias, updates = before.new_full(shape[:2], torch.nan), torch.zeros_like(which[:1]).repeat(len(pieces))
    step[which, output], wish[which, output] = solved.coef - before, solved.wish.to(before.dtype)
    bias[which, output] = solved.bias.to(before.dtype)
    updates.index_add_(0, which, solved.updates.to(updates.dtype))
    return [
        BlockStep(piece, step[number, :, : len(piece)], wish[number, :, : len(piece)], bias[number], count)
        for number, (piece, count) in enumerate(zip(pieces, updates.tolist(), strict=True))
    ]


def _joined(found: Sequence[BlockStep], of_piece: Sequence[int], blocks: Sequence[torch.Tensor]) -> list[BlockStep]:
    """The steps of the blocks from those of their pieces."""
    if len(found) == len(blocks):
        return list(found)
    steps = []
    for number, rows in enumerate(blocks):
        own = [step for step, block in zip(found, of_piece, strict=True) if block == number]
        step, wish = (torch.cat(parts, dim=1) for parts in ([one.step for one in own], [one.wish for one in own]))
        bias = torch.stack([one.bias for one in own]).mean(dim=0)
        steps.append(BlockStep(rows, step, wish, bias, sum(one.updates for one in own)))
    return steps


def _side_by_side(pieces: Sequence[torch.Tensor], size: int) -> torch.Tensor:
    """One piece a row, filled up with -1."""
    ragged = torch.nn.utils.rnn.pad_sequence(list(pieces), batch_first=True, padding_value=-1)
    return torch.nn.functional.pad(ragged, (0, size - ragged.shape[1]), value=-1)


def _padded(pieces: Sequence[torch.Tensor]) -> int:
    """A power of two that all have room in: few sizes, so that Triton compiles few programs."""
    return max(_LEAST_SIZE, 1 << (max(len(piece) for piece in pieces) - 1).bit_length())


def _cut_to_size(blocks: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[int]]:
    """Blocks as they are, and in parts where they are too large for one program; and whose part each is."""
    pieces: list[torch.Tensor] = []
    of_piece: list[int] = []
    for number, rows in enumerate(blocks):
        parts = torch.tensor_split(rows, -(-len(rows) // LARGEST_BLOCK))
        pieces += parts
        of_piece += [number] * len(parts)
    return pieces, of_piece


def _card(place: int) -> torch.device:
    """One of the machine's cards; processes that share the machine take turns."""
    if torch.cuda.is_available():
        return torch.device("cuda", (torch.cuda.current_device() + place) % torch.cuda.device_count())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")  # Triton's interpreter: slow, for tests
    raise ValueError("device='cuda' needs an NVIDIA GPU, and PyTorch finds none: use device='cpu'.")
