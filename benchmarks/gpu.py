"""Fits and predictions on a GPU, against what we want of them.

    python -m benchmarks.gpu                       # everything but many-digits: some minutes
    python -m benchmarks.gpu fits kernels agreement ranks
    python -m benchmarks.gpu many-digits           # 8,000,000 rows, with 40 GB of the card's memory

    fits         seconds to a relative error of the dual objective, or to the tolerance; the second of two fits, so
                 that Triton has compiled its programs: what that took is told apart
    digits       the same for deformed handwritten digits, 960,000 of them, made on the card
    many-digits  the same for 8,000,000 of them, after a first fit of 60,000 rows
    kernels      kernel products: values a second, and their error against float64
    agreement    dual objectives of CPU and GPU, and of two fits on the GPU, for every loss
    sparse       CSR data, few features and many, against the CPU
    larger       rows that stay in host memory because memory_limit is small, against rows on the card
    ranks        MPI ranks that share the GPU, against one process

Prints Markdown tables and writes `benchmarks/results/gpu.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import CASES
from benchmarks.data import load
from benchmarks.deformed_digits import round_digits
from benchmarks.gpu_data import larger, sparse
from benchmarks.running import RESULTS, best_seconds, described, machine, markdown_table, note
from parablock import (
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)
from parablock.engines import MPIEngine

COVTYPE: dict[str, Any] = {"C": 32.0, "gamma": 32.0}
DIGITS: dict[str, Any] = {"C": 1.0, "gamma": 2.0**-21}
AGREEMENT_ROWS = 20_000


@dataclass(frozen=True)
class Goal:
    """A relative error (or None: the tolerance), and the seconds to it: at most, and what we aim at."""

    error: float | None
    most: float
    aim: float


@dataclass(frozen=True)
class Fit:
    """A problem, and what is wanted of it."""

    name: str
    data: Callable[[], Any]
    make: Callable[..., Any]
    options: dict[str, Any]
    goals: list[Goal] = field(default_factory=list)
    first_rows: int | None = None  # of the first fit, that Triton compiles in; all of them by default


def covtype() -> Any:
    return CASES["covtype"].data(None)


FITS = [
    Fit(
        "covtype, intercept", covtype, KernelSVC, {**COVTYPE, "tol": 1e-3, "max_iter": 200},
        [Goal(1e-3, 1.3, 0.6), Goal(1e-4, 2.0, 1.0), Goal(None, 6.0, 3.0)],
    ),
    Fit(
        "covtype, no intercept", covtype, KernelSVC,
        {**COVTYPE, "fit_intercept": False, "tol": 0.03, "max_iter": 80}, [Goal(1e-3, 2.0, 1.0)],
    ),
    Fit(
        "covtype, 7 classes", lambda: load("covtype7"), KernelSVC, {**COVTYPE, "tol": 0.05, "max_iter": 40},
        [Goal(1e-3, 5.0, 3.0)],
    ),
    Fit(
        "covtype, logistic", covtype, KernelLogisticRegression, {**COVTYPE, "tol": 1e-2, "max_iter": 30},
        [Goal(1e-3, 15.0, 5.0)],
    ),
    Fit("MNIST round digits", lambda: CASES["mnist"].data(None), KernelSVC, DIGITS, [Goal(None, 0.5, 0.25)]),
]  # fmt: skip


def make_digits(n: int) -> Any:
    import torch

    from benchmarks.digits_on_device import digits_on_device, round_labels

    started = time.perf_counter()
    X, y = digits_on_device(n)
    torch.cuda.synchronize()
    note(f"{n:,} digits made in {time.perf_counter() - started:.1f} s")
    _, _, X_test, y_test = load("mnist")
    return X, round_labels(y), X_test, round_digits(y_test)


DEFORMED = Fit(
    "deformed digits, 960,000", lambda: make_digits(960_000), KernelSVC, {**DIGITS, "tol": 0.02, "max_iter": 500},
    [Goal(1e-3, 7.0, 3.0)],
)  # fmt: skip
MANY_DEFORMED = Fit(
    "deformed digits, 8,000,000", lambda: make_digits(8_000_000), KernelSVC,
    {**DIGITS, "tol": 0.05, "max_iter": 3000, "verbose": 1}, [Goal(1e-3, 300.0, 100.0)], first_rows=60_000,
)  # fmt: skip


def fit(case: Fit) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """One problem: seconds to its goals."""
    X, y, X_test, y_test = case.data()
    started = time.perf_counter()
    make = {"device": "cuda", "random_state": 0}
    few = {**case.options, "max_iter": min(12, case.options.get("max_iter", 12))}
    first = case.make(**few, **make).fit(X[: case.first_rows], y[: case.first_rows])
    compiling = time.perf_counter() - started - first.history_[-1].seconds
    started = time.perf_counter()
    model = case.make(**case.options, **make).fit(X, y)
    total = time.perf_counter() - started
    objective = np.array([record.objective for record in model.history_])
    best = objective.min()
    found: list[dict[str, Any]] = []
    lines: list[tuple[str, ...]] = []
    accuracy = float(model.score(X_test, y_test))
    for goal in case.goals:
        near = (objective - best) / abs(best) <= (goal.error or 0.0)
        place = len(objective) - 1 if goal.error is None else int(near.argmax())
        seconds = model.history_[place].seconds
        what = f"tol={case.options.get('tol', 1e-3):g}" if goal.error is None else f"relative error {goal.error:g}"
        found.append({"name": case.name, "goal": what, "seconds": seconds, "most": goal.most, "aim": goal.aim})
        lines.append(
            (f"{case.name}: {what}", f"{seconds:.2f}", f"{goal.most:g}", f"{goal.aim:g}")
            + (str(model.history_[place].iteration), f"{accuracy:.2%}", f"{len(model.support_):,}")
        )
        note(f"{lines[-1]}, violation {model.violation_:.2g}, fit {total:.2f} s, compiling about {compiling:.0f} s")
    if case.name.startswith("covtype, intercept"):
        seconds = best_seconds(lambda: model.predict(X_test))
        found.append({"name": "predict", "seconds": seconds, "rows": len(X_test)})
        lines.append((f"predict {len(X_test):,} rows of covtype", f"{seconds:.3f}", "0.3", "0.1", "-", "-", "-"))
    return found, lines


def fits(section: str, cases: list[Fit]) -> dict[str, Any]:
    found, lines = [], []
    for case in cases:
        more, rows = fit(case)
        found += more
        lines += rows
    head = ("work", "seconds", "at most", "aim", "iterations", "test accuracy", "support vectors")
    print(markdown_table(head, lines))
    return {section: found}


def kernels() -> dict[str, Any]:
    import torch

    from parablock.devices.cuda.fused import kernel_dot
    from parablock.devices.cuda.kernel_values import spec_of
    from parablock.devices.cuda.operands import prepare
    from parablock.kernels import make_kernel

    X = CASES["covtype"].data(None)[0][:131_072]
    centred = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)
    rows = prepare(torch.as_tensor(centred).cuda())
    spec, coef = spec_of(make_kernel("rbf", 32.0)), torch.randn((1, len(X)), device="cuda")

    def product() -> Any:
        result = kernel_dot(spec, rows, rows, coef)
        torch.cuda.synchronize()
        return result

    few = torch.as_tensor(centred[:256], dtype=torch.float64).cuda()
    everyone = torch.as_tensor(centred, dtype=torch.float64).cuda()
    exact = torch.exp(-32.0 * torch.cdist(few, everyone).square()) @ coef[0].float().double()
    error = float((product()[0, :256] - exact).abs().max() / exact.abs().max())
    rate = len(X) ** 2 / best_seconds(product) / 1e9
    print(f"kernel_dot, 54 features, {rows.kind}: {rate:.0f} G values/s (at least 400, aim 1,000), error {error:.1e}")
    return {"kernel_dot": {"values_per_second": rate * 1e9, "error": error, "kind": rows.kind}}


def agreement() -> dict[str, Any]:
    X, y, _, _ = CASES["covtype"].data(AGREEMENT_ROWS)
    X, y = X[:AGREEMENT_ROWS], y[:AGREEMENT_ROWS]
    number = X[:, 0] * 2 + np.sin(5 * X[:, 1]) + 0.1 * y
    problems: dict[str, tuple[Any, dict[str, Any], np.ndarray]] = {
        "hinge": (KernelSVC, {}, y),
        "hinge, no intercept": (KernelSVC, {"fit_intercept": False}, y),
        "squared hinge": (KernelSVC, {"loss": "squared_hinge"}, y),
        "logistic": (KernelLogisticRegression, {}, y),
        "epsilon-insensitive": (KernelSVR, {"epsilon": 0.05}, number),
        "squared error": (KernelRidge, {}, number),
        "quantile": (KernelQuantileRegressor, {"quantile": 0.7}, number),
    }
    found, lines = {}, []
    for name, (make, options, target) in problems.items():
        # In float64, because the GPU's products are more exact than those of the CPU in float32.
        models = [
            make(C=8.0, gamma=32.0, tol=1e-3, random_state=0, device=device, **options).fit(X.astype(dtype), target)
            for device, dtype in (("cpu", np.float64), ("cuda", np.float32), ("cuda", np.float32))
        ]
        cpu, gpu, again = (model.dual_objective_ for model in models)
        found[name] = {"cpu": cpu, "gpu": gpu, "again": again}
        seconds = (f"{model.history_[-1].seconds:.2f}" for model in models[:2])
        lines.append((name, f"{cpu:.4f}", f"{abs(gpu / cpu - 1):.1e}", f"{abs(again / gpu - 1):.1e}", *seconds))
        note(str(lines[-1]))
    head = ("loss", "dual objective, CPU", "GPU: relative difference", "GPU again", "seconds, CPU", "seconds, GPU")
    print(markdown_table(head, lines))
    return {"agreement": found}


def ranks() -> dict[str, Any]:
    """Ranks that share the card; a matter of correctness."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    found, lines = {}, []
    for count in (1, 2, 4):
        done = subprocess.run(
            [mpiexec, "-n", str(count), sys.executable, "-m", "benchmarks.gpu", "--rank"],
            env=os.environ,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        told = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
        found[count] = told
        difference = abs(told["objective"] / found[1]["objective"] - 1)
        lines.append((str(count), f"{told['objective']:.4f}", f"{difference:.1e}", f"{told['accuracy']:.2%}"))
    print(markdown_table(("ranks on one GPU", "dual objective", "relative difference", "test accuracy"), lines))
    return {"ranks": found}


def one_rank() -> None:
    from mpi4py import MPI

    X, y, X_test, y_test = CASES["covtype"].data(AGREEMENT_ROWS)
    engine = MPIEngine(data="sharded")
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    first, last = AGREEMENT_ROWS * rank // size, AGREEMENT_ROWS * (rank + 1) // size
    model = KernelSVC(**COVTYPE, device="cuda", random_state=0, engine=engine).fit(X[first:last], y[first:last])
    if rank == 0:
        accuracy = float(model.score(X_test, y_test))
        print(json.dumps({"objective": model.dual_objective_, "accuracy": accuracy}))


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "fits": lambda: fits("fits", FITS),
    "digits": lambda: fits("digits", [DEFORMED]),
    "many-digits": lambda: fits("many-digits", [MANY_DEFORMED]),
    "kernels": kernels,
    "agreement": agreement,
    "sparse": sparse,
    "larger": larger,
    "ranks": ranks,
}
ON_REQUEST = ("many-digits",)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], default=[])
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.rank:
        one_rank()
        return
    import torch

    found: dict[str, Any] = {"machine": machine(), "card": torch.cuda.get_device_name()}
    when = datetime.now(UTC)
    for section in options.sections or [name for name in SECTIONS if name not in ON_REQUEST]:
        try:
            found.update(SECTIONS[section]())
        except Exception as error:  # one section that fails must not hide the others
            print(f"{section} failed: {type(error).__name__}: {error}", flush=True)
        print(flush=True)
    print(f"{found['card']}; {described(found['machine'], when)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "gpu.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
