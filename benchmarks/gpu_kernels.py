"""The GPU's kernels one by one, on a real card: how fast, and how exact.

    python -m benchmarks.gpu_kernels [products] [matrices] [descent] [sweep] [--seconds 240]

Kernel products (G kernel values a second, and the largest error of the result relative to its largest value, against
float64 on a sample of rows), kernel matrices, and the descent in blocks (microseconds an update of the busiest block).
`sweep` tries other tile shapes and numbers of warps. A measurement that fails prints its error and the others go on;
after `--seconds` none begins.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import MagicMock

try:
    import numba  # noqa: F401
except ImportError:  # a lent machine may have torch but no Numba: nothing that the CPU computes is called here
    sys.modules.update({name: MagicMock() for name in ("numba", "numba.core", "numba.extending")})

import numpy as np
import torch
import triton

from parablock.datasets import load_covtype_sample
from parablock.devices.cuda import descent, fused, torch_losses
from parablock.devices.cuda.descent import Limits, descend
from parablock.devices.cuda.fused import Tiling, block_grams, gram, kernel_dot
from parablock.devices.cuda.kernel_values import spec_of
from parablock.devices.cuda.losses import spec_of_loss
from parablock.devices.cuda.operands import DOUBLE, EXACT, FAST, FLOAT32, prepare
from parablock.kernels import make_kernel
from parablock.losses import Hinge, Logistic, Loss, SquaredError

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS = 65_536 if DEVICE == "cuda" else 128  # of a product, and as many columns
CHECKED = 128  # rows that are compared with float64
BLOCKS = ((113, 4096), (225, 2048)) if DEVICE == "cuda" else ((2, 64),)
MOST_UPDATES = 50_000 if DEVICE == "cuda" else 20
TILINGS = [
    Tiling(*shape)
    for shape in (
        (128, 64, 4, 2),
        (128, 64, 4, 3),
        (128, 64, 8, 2),
        (128, 64, 8, 3),
        (128, 128, 8, 2),
        (128, 128, 8, 3),
        (64, 64, 4, 3),
        (64, 128, 4, 2),
        (64, 128, 4, 3),
        (64, 256, 8, 2),
        (128, 32, 4, 3),
        (256, 64, 8, 2),
    )
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"any of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--seconds", type=float, default=240.0)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU: sizes are tiny, times mean nothing"
    print(f"{name}, torch {torch.__version__}, triton {triton.__version__}, {ROWS} rows x {ROWS} columns", flush=True)
    bench = Bench(time.monotonic() + options.seconds)
    for section in options.sections or SECTIONS:
        SECTIONS[section](bench)


class Bench:
    """Measures, prints, and goes on whatever happens.

    Parameters
    ----------
    deadline : float
        By `time.monotonic`: no measurement begins after it.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def try_to(self, title: str, work: Callable[[], str]) -> None:
        """One line: the title and what the work says, or its error."""
        if time.monotonic() > self.deadline:
            print(f"{title:46} no time left", flush=True)
            return
        start = time.monotonic()
        try:
            said = work()
            if DEVICE == "cuda":
                torch.cuda.synchronize()
        except Exception as problem:
            said = f"{type(problem).__name__}: {' '.join(str(problem).split())[-300:]}"
        print(f"{title:46} {said}  [{time.monotonic() - start:.1f} s]", flush=True)


def milliseconds(work: Callable[[], Any], times: int = 5) -> float:
    """Median time of the work on the card, after a first call that compiles."""
    work()
    if DEVICE != "cuda":
        start = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - start)
    taken = []
    for _ in range(times):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        taken.append(first.elapsed_time(last))
    return float(np.median(taken))


def named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ----------------------------------------------------------------------------------------------------------- data


def covtype() -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels of the bundled sample, centred."""
    X, y, *_ = load_covtype_sample()
    X64 = torch.tensor(X, dtype=torch.float64, device=DEVICE)
    labels = torch.tensor(y, dtype=torch.float64, device=DEVICE)
    return (X64 - X64.mean(dim=0)).float(), labels


def pixels(n: int) -> torch.Tensor:
    """Pictures of 28 x 28 pixels, 0 to 255, most of them dark, centred by whole numbers."""
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    coarse = torch.rand((n, 1, 7, 7), generator=generator, device=DEVICE)
    smooth = torch.nn.functional.interpolate(coarse, size=(28, 28), mode="bilinear").reshape(n, 784)
    X = (255.0 * (2.0 * smooth - 1.0).clamp(min=0.0)).round()
    return X - X.mean(dim=0).round()


def some(X: torch.Tensor, n: int) -> torch.Tensor:
    """As many rows as asked for, some twice where there are not enough: those a little beside the first."""
    place = torch.arange(n, device=DEVICE)
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    beside = 0.01 * torch.randn((n, X.shape[1]), generator=generator, device=DEVICE)
    return X[place % len(X)] + torch.where(place < len(X), 0.0, 1.0)[:, None] * beside


# ------------------------------------------------------------------------------------------------------- products


def products_section(bench: Bench) -> None:
    X = some(covtype()[0], ROWS)
    for kind in (DOUBLE, FAST, EXACT, FLOAT32):
        # The exact kind on data that is not: what it would cost; its error is that of rounding the data.
        _product(bench, f"kernel_dot 54 {kind}", X, kind, 32.0, 1)
    for outputs in (4, 10):
        _product(bench, f"kernel_dot 54 {DOUBLE}, {outputs} outputs", X, DOUBLE, 32.0, outputs)
    pictures = pixels(ROWS)
    for kind in (EXACT, DOUBLE, FLOAT32):
        _product(bench, f"kernel_dot 784 {kind}", pictures, kind, 2.0**-21, 1)
    _product(bench, f"kernel_dot 784 {EXACT}, 10 outputs", pictures, EXACT, 2.0**-21, 10)
    bench.try_to("the same digits in two runs", lambda: _repeats(X))
    bench.try_to("kernel_dot 54 laplacian", lambda: _by_features(X[: ROWS // 4]))


def _product(bench: Bench, title: str, X: torch.Tensor, kind: str, gamma: float, outputs: int) -> None:
    def measure() -> str:
        operand, spec = prepare(X, kind), spec_of(make_kernel("rbf", gamma))
        coef = torch.randn((outputs, len(X)), generator=torch.Generator(device=DEVICE).manual_seed(2), device=DEVICE)
        taken = milliseconds(lambda: kernel_dot(spec, operand, operand, coef))
        found = kernel_dot(spec, operand.take(slice(0, CHECKED)), operand, coef)
        expected = _in_double(X[:CHECKED], X, gamma, coef)
        error = float((found - expected).abs().max() / expected.abs().max())
        return f"{len(X) ** 2 / taken / 1e6:8.1f} G/s  error {error:.1e}  {taken:.2f} ms"

    bench.try_to(title, measure)


def _in_double(rows: torch.Tensor, columns: torch.Tensor, gamma: float, coef: torch.Tensor) -> torch.Tensor:
    return coef.double() @ _values_in_double(rows, columns, gamma).T


def _values_in_double(rows: torch.Tensor, columns: torch.Tensor, gamma: float) -> torch.Tensor:
    x, z = rows.double(), columns.double()
    squares = x.square().sum(dim=1)[:, None] + z.square().sum(dim=1) - 2.0 * x @ z.T
    return torch.exp(-gamma * squares.clamp(min=0.0))


def _repeats(X: torch.Tensor) -> str:
    operand, spec = prepare(X), spec_of(make_kernel("rbf", 32.0))
    coef = torch.ones((1, len(X)), device=DEVICE)
    return str(torch.equal(*(kernel_dot(spec, operand.take(slice(0, 1000)), operand, coef) for _ in range(2))))


def _by_features(X: torch.Tensor) -> str:
    operand, spec = prepare(X, FLOAT32), spec_of(make_kernel("laplacian", 1.0))
    coef = torch.ones((1, len(X)), device=DEVICE)
    taken = milliseconds(lambda: kernel_dot(spec, operand, operand, coef))
    return f"{len(X) ** 2 / taken / 1e6:8.1f} G/s"


# ------------------------------------------------------------------------------------------------------- matrices


def matrices_section(bench: Bench) -> None:
    X = covtype()[0]
    for kind in (DOUBLE, FLOAT32):
        for dtype in (torch.float32, torch.float16):
            bench.try_to(f"gram 54 {kind} {named(dtype)}", partial(_matrix, X[: ROWS // 2], kind, dtype))
    for count, size in BLOCKS:
        for dtype in (torch.float16, torch.float32):
            bench.try_to(f"block_grams {count} x {size} {named(dtype)}", partial(_matrices, X, count, size, dtype))


def _matrix(X: torch.Tensor, kind: str, dtype: torch.dtype) -> str:
    operand, spec = prepare(X, kind), spec_of(make_kernel("rbf", 32.0))
    taken = milliseconds(lambda: gram(spec, operand, operand, dtype))
    found = gram(spec, operand.take(slice(0, CHECKED)), operand, dtype)
    error = float((found.double() - _values_in_double(X[:CHECKED], X, 32.0)).abs().max())
    return f"{len(X) ** 2 / taken / 1e6:8.1f} G/s  error {error:.1e}"


def _matrices(X: torch.Tensor, count: int, size: int, dtype: torch.dtype) -> str:
    operand, blocks, spec = prepare(X), _blocks(X, count, size), spec_of(make_kernel("rbf", 32.0))
    taken = milliseconds(lambda: block_grams(spec, operand, blocks, dtype), 3)
    matrix, rows = block_grams(spec, operand, blocks[-1:], dtype)[0], X[blocks[-1]]
    error = float((matrix[:CHECKED].double() - _values_in_double(rows[:CHECKED], rows, 32.0)).abs().max())
    uneven = float((matrix - matrix.T).abs().max())
    speed = count * size * size / taken / 1e6
    return f"{speed:8.1f} G/s  error {error:.1e}  {taken:.1f} ms, asymmetry {uneven:.0e}"


def _blocks(X: torch.Tensor, count: int, size: int) -> torch.Tensor:
    """Blocks of rows that are neighbours in the first feature, the height: about as hard as the blocks of a fit. Where
    it is very low or high all rows have the same label, so those are left out."""
    order = X[:, 0].argsort()
    starts = torch.linspace(0.2 * len(X), 0.8 * len(X) - size, count).long().to(DEVICE)
    return order[starts[:, None] + torch.arange(size, device=DEVICE)]


# -------------------------------------------------------------------------------------------------------- descent


def descent_section(bench: Bench) -> None:
    losses: tuple[tuple[str, Loss], ...] = (("hinge", Hinge()), ("logistic", Logistic()), ("ridge", SquaredError()))
    for count, size in BLOCKS:
        for dtype in (torch.float16, torch.float32):
            blocks = _subproblems(bench, count, size, dtype)
            if blocks is not None:
                for name, loss in losses if dtype == torch.float16 else losses[:1]:
                    for pairs in (True, False):
                        title = f"descend {count} x {size} {named(dtype)} {name} {'pairs' if pairs else 'single'}"
                        bench.try_to(title, partial(blocks.measure, loss, pairs))


def _subproblems(bench: Bench, count: int, size: int, dtype: torch.dtype) -> Subproblems | None:
    made: list[Subproblems] = []

    def make() -> str:
        made.append(Subproblems(*covtype(), count, size, dtype))
        return f"{made[0].matrices.numel() * made[0].matrices.element_size() / 2**30:.1f} GiB"

    bench.try_to(f"matrices for the descent, {count} x {size} {named(dtype)}", make)
    return made[0] if made else None


class Subproblems:
    """Blocks of rows with C = gamma = 32, everything at zero."""

    def __init__(self, X: torch.Tensor, labels: torch.Tensor, count: int, size: int, dtype: torch.dtype) -> None:
        blocks = _blocks(X, count, size)
        self.matrices = block_grams(spec_of(make_kernel("rbf", 32.0)), prepare(X), blocks, dtype)
        self.target = labels[blocks]
        self.zero = torch.zeros_like(self.target)
        self.weight = torch.full_like(self.target, 32.0)
        self.which = torch.arange(len(blocks), device=DEVICE)

    def measure(self, loss: Loss, pairs: bool) -> str:
        limits = Limits(pairs, 0.03, 1e-3, MOST_UPDATES)
        arguments = (spec_of_loss(loss), self.matrices, self.which, self.zero, self.zero, self.target, self.weight)
        taken = milliseconds(lambda: descend(*arguments, limits), 1)
        solved = descend(*arguments, limits)
        most, total = int(solved.updates.max()), int(solved.updates.sum())
        # What the blocks say of themselves, against their matrix in float64.
        coef = solved.coef[0]
        left, right, _ = torch_losses.slopes(spec_of_loss(loss), coef, self.target[0], self.weight[0])
        decision = self.matrices[0].double() @ coef
        upward, downward = -(decision + right), decision + left
        violation = float(upward.max() + downward.max() if pairs else torch.maximum(upward, downward).max())
        return (
            f"{1e3 * taken / max(most, 1):6.2f} us an update  {taken:.1f} ms, {most} updates at most, {total} in all, "
            f"violation {violation:.2e}, sum {float(coef.sum()):.0e}"
        )


# ---------------------------------------------------------------------------------------------- what to tune


def sweep_section(bench: Bench) -> None:
    for count, size in BLOCKS:
        blocks = _subproblems(bench, count, size, torch.float16)
        for variables in (1024, 512, 256, 128) if blocks is not None else ():
            with replaced(descent, "_VARIABLES_A_WARP", variables):
                for pairs in (True, False):
                    title = f"  descend {size}, {size // variables} warps, {'pairs' if pairs else 'single'}"
                    bench.try_to(title, partial(blocks.measure, Hinge(), pairs))  # type: ignore[union-attr]
    X, pictures = some(covtype()[0], ROWS), pixels(ROWS)
    for data, kind, gamma in ((X, DOUBLE, 32.0), (pictures, EXACT, 2.0**-21), (pictures, DOUBLE, 2.0**-21)):
        for shape in TILINGS:
            with replaced(fused, "tiling", lambda *_, shape=shape: shape):
                _product(bench, f"  kernel_dot {data.shape[1]} {kind} {tuple(shape)}", data, kind, gamma, 1)
    for shape in TILINGS:
        if shape.rows == shape.columns:
            with replaced(fused, "gram_tiling", lambda *_, shape=shape: shape):
                title = f"  block_grams {BLOCKS[0]} {tuple(shape)}"
                bench.try_to(title, partial(_matrices, covtype()[0], *BLOCKS[0], torch.float16))


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """The module with another value under that name, for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "products": products_section,
    "matrices": matrices_section,
    "descent": descent_section,
    "sweep": sweep_section,
}

if __name__ == "__main__":
    main()
