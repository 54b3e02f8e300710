"""The GPU: fused kernel products and many blocks at once, by Triton; vectors of the solver stay with the CPU.

No kernel value is kept from one product to the next: to compute it again costs less than a thousandth of a microsecond.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs

from parablock.devices.base import BlockRule, BlockStep, Device, Rows, Samples
from parablock.devices.cuda import products
from parablock.devices.cuda.descent import LARGEST_BLOCK, Limits, Solved, descend
from parablock.devices.cuda.kernel_values import KernelSpec, spec_of
from parablock.devices.cuda.losses import spec_of_loss
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

    def __init__(self, n_jobs: int | None, memory_limit: Any = None, sharers: int = 1, place: int = 0) -> None:
        self.device = _card(place)
        self.n_threads = effective_n_jobs(-1 if n_jobs is None else n_jobs)
        self.memory_limit = None if memory_limit is None else memory_bytes(memory_limit)
        self.sharers = -(-sharers // max(1, torch.cuda.device_count()))  # of this card
        self.kernel_evaluations = 0
        self._last: tuple[Any, Any] = None, None  # data that is on the card already

    @contextmanager
    def session(self) -> Iterator[CudaDevice]:
        yield self

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

    def tree(self, samples: Samples, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
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
        factors = torch.as_tensor(coef, device=self.device)
        return products.kernel_dot(spec_of(kernel), *operands_of(rows, columns), factors).cpu().numpy()

    def column_dot(
        self, kernel: Kernel, samples: Samples, sources: Rows, rows: np.ndarray, coef: np.ndarray
    ) -> np.ndarray:
        return self.kernel_dot(kernel, samples, sources.take(rows), coef)

    def prefetch(self, kernel: Kernel, samples: Samples, sources: Rows, rows: np.ndarray) -> None:
        """Nothing is kept."""

    def extend(
        self, kernel: Kernel, samples: Samples, more: Samples, sources: Rows, useful: np.ndarray, growth: float
    ) -> None:
        """Nothing is kept."""

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
    ) -> list[BlockStep]:
        assert isinstance(samples, CudaSamples)
        if rule.choice != "greedy":
            raise ValueError(
                f"block_solver={rule.choice!r} is not available on a GPU, which has 'greedy': use device='cpu'."
            )
        pieces, of_piece = _cut_to_size(blocks)
        outputs = [rule.outputs_of(block) for block in of_piece]
        spec = spec_of(kernel)
        found: list[_Piece] = []
        for first, last in self._waves(pieces):
            found += self._solve(spec, samples, problem, point, pieces[first:last], outputs[first:last], rule)
        self.kernel_evaluations += sum(len(piece) ** 2 for piece in pieces)
        steps = []
        for number, rows in enumerate(blocks):
            own = [piece for piece, block in zip(found, of_piece, strict=True) if block == number]
            steps.append(
                BlockStep(
                    rows,
                    np.concatenate([piece.step for piece in own], axis=1),
                    np.concatenate([piece.wish for piece in own], axis=1),
                    own[0].bias if len(own) == 1 else np.mean([piece.bias for piece in own], axis=0),
                    sum(piece.updates for piece in own),
                )
            )
        return steps

    def _waves(self, pieces: Sequence[np.ndarray]) -> list[tuple[int, int]]:
        """Stretches of blocks whose matrices have room at once."""
        matrix = _padded(pieces) ** 2 * torch.float32.itemsize
        count = max(1, self._room() // 2 // matrix)
        return [(first, min(first + count, len(pieces))) for first in range(0, len(pieces), count)]

    def _solve(
        self,
        spec: KernelSpec,
        samples: CudaSamples,
        problem: Problem,
        point: tuple[np.ndarray, np.ndarray],
        pieces: Sequence[np.ndarray],
        outputs: Sequence[Sequence[int]],
        rule: BlockRule,
    ) -> list[_Piece]:
        """One wave: the matrices of all blocks, then a program for each block and output."""
        size = _padded(pieces)
        rows = np.full((len(pieces), size), -1, dtype=np.int64)
        for number, piece in enumerate(pieces):
            rows[number, : len(piece)] = piece
        matrices = products.block_grams(spec, samples.operand, samples.index(rows), torch.float32)
        which = np.repeat(np.arange(len(pieces)), [len(those) for those in outputs])
        output = np.array([one for those in outputs for one in those], dtype=np.intp)
        filled = np.maximum(rows[which], 0)
        there = rows[which] >= 0
        numbers = [values[output[:, None], filled] for values in (*point, problem.target, problem.weight)]
        numbers[3] = np.where(there, numbers[3], 0.0)
        numbers[0] = np.where(there, numbers[0], 0.0)
        coef, decision, target, weight = (torch.as_tensor(values, device=self.device) for values in numbers)
        limit = rule.max_updates
        if limit is None and rule.fraction > 0.0:
            limit = _UPDATES_A_STEP * max(len(piece) for piece in pieces)
        limits = Limits(rule.pairs, rule.fraction, rule.floor, limit)
        programs = torch.as_tensor(which, device=self.device)
        solved = descend(spec_of_loss(problem.loss), matrices, programs, coef, decision, target, weight, limits)
        return _pieces_of(solved, pieces, which, output, numbers[0], problem.n_outputs)

    # ------------------------------------------------------------------------------------------------------- memory

    def _room(self) -> int:
        """Bytes that matrices may take."""
        return self._free() if self.memory_limit is None else min(self._free(), self.memory_limit)

    def _free(self) -> int:
        if self.device.type != "cuda":
            return _GIGABYTE
        cached = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return (torch.cuda.mem_get_info(self.device)[0] + cached) // self.sharers


class _Piece:
    """What was found of one block, for all outputs."""

    def __init__(self, size: int, n_outputs: int) -> None:
        self.step, self.wish = np.zeros((n_outputs, size)), np.full((n_outputs, size), np.nan)
        self.bias, self.updates = np.full(n_outputs, np.nan), 0


def _pieces_of(
    solved: Solved,
    pieces: Sequence[np.ndarray],
    which: np.ndarray,
    output: np.ndarray,
    before: np.ndarray,
    n_outputs: int,
) -> list[_Piece]:
    coef, wish, bias, updates = (values.cpu().numpy() for values in solved)
    found = [_Piece(len(piece), n_outputs) for piece in pieces]
    for program, (number, one) in enumerate(zip(which.tolist(), output.tolist(), strict=True)):
        size, piece = len(pieces[number]), found[number]
        piece.step[one] = coef[program, :size] - before[program, :size]
        piece.wish[one] = wish[program, :size]
        piece.bias[one] = bias[program]
        piece.updates += int(updates[program])
    return found


def _padded(pieces: Sequence[np.ndarray]) -> int:
    """A power of two that all have room in: few sizes, so that Triton compiles few programs."""
    return max(_LEAST_SIZE, 1 << (max(len(piece) for piece in pieces) - 1).bit_length())


def _cut_to_size(blocks: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Blocks as they are, and in parts where they are too large for one program; and whose part each is."""
    pieces, of_piece = [], []
    for number, rows in enumerate(blocks):
        parts = np.array_split(rows, -(-len(rows) // LARGEST_BLOCK))
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
