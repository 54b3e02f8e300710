"""How training scales over MPI ranks: the paper's figure of relative error against time x workers.

    python -m benchmarks.scaling                     # covtype, 100,000 rows, 1 to 16 ranks of one thread
    python -m benchmarks.scaling --ranks 1 2 --rows 20000
    python -m benchmarks.scaling --busy              # cores without a rank compute something else meanwhile

Needs an MPI (pip install 'parablock[mpi]') and, to mean anything, a core for each rank. The optimum is the best
objective of a run to a small tolerance on the largest number of ranks. Every run fits once to get ready and then three
times (--fits), and the fastest counts, for one rank as for many: neighbours on the same host only ever slow a fit down.

A core is faster while its neighbours idle: it has the power, the caches and the memory of the chip for itself. With
--busy all cores always work, as they do when every rank has a machine of its own, or shares one with other jobs.
Writes `benchmarks/results/scaling.json` and `scaling.png` (`scaling-busy` with --busy).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import CASES
from benchmarks.running import RESULTS, described, machine, markdown_table, note
from parablock import KernelSVC
from parablock.devices import CpuDevice
from parablock.engines import MPIEngine
from parablock.kernels import make_kernel

ERROR = 1e-3
# One thread a rank; and memory that a fit gives back stays with its process, for the next fit to have at once.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}


def fit_on_ranks(rows: int, data: str, exchange: str, tol: float, fits: int) -> None:
    """What every rank runs; the first one prints the history of the fastest fit."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    case = CASES["covtype"]
    X, y, X_test, y_test = case.data(rows)
    X, y = X[:rows], y[:rows]
    if data == "sharded":
        ends = np.arange(size + 1) * rows // size
        X, y = X[ends[rank] : ends[rank + 1]], y[ends[rank] : ends[rank + 1]]
    engine = MPIEngine(data=data, exchange=exchange)
    options: dict[str, Any] = {"C": case.C, "gamma": case.gamma, "random_state": 0, "n_jobs": 1, "engine": engine}
    options["memory_limit"] = memory_of_a_rank(size)
    # The first fit compiles, or loads what was compiled, and touches the memory: a virtual machine may get it from its
    # host only then, at seconds a gigabyte.
    KernelSVC(tol=tol, **options).fit(X, y)
    models = []
    for _ in range(fits):
        comm.Barrier()
        models.append(KernelSVC(tol=tol, **options).fit(X, y))
    if rank == 0:
        seconds = [model.history_[-1].seconds for model in models]
        model = models[int(np.argmin(seconds))]
        history = [
            (r.seconds, r.objective, r.bytes_sent, r.seconds_waiting, r.changed, r.watched, r.kind)
            for r in model.history_
        ]
        accuracy = float(model.score(X_test[:10_000], y_test[:10_000]))
        found = {"ranks": size, "history": history, "accuracy": accuracy, "sv": len(model.support_), "fits": seconds}
        print(json.dumps(found))


def compute_for_ever(core: int) -> None:
    """What keeps a core busy that no rank is on."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    kernel, device = make_kernel("rbf", 32.0), CpuDevice(1, 2**28)
    with device.session():
        samples = device.samples(np.random.default_rng(core).random((4000, 54), dtype=np.float32), kernel)
        coef = np.ones((1, len(samples)))
        print("busy", flush=True)
        while True:
            device.kernel_dot(kernel, samples, samples, coef)


@contextlib.contextmanager
def busy(cores: range) -> Iterator[None]:
    """Keep these cores computing."""
    others = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scaling", "--companion", str(core)],
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.PIPE,
        )
        for core in cores
    ]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()  # it has begun
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def memory_of_a_rank(ranks: int) -> int:
    """Bytes, of 48 GB for all."""
    return int(48 * 2**30 / ranks)


def run(ranks: int, rows: int, data: str, exchange: str, tol: float, fits: int = 1) -> dict[str, Any]:
    """Fits in processes of their own."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    arguments = ["--worker", "--rows", str(rows), "--data", data, "--exchange", exchange, "--tol", str(tol)]
    arguments += ["--fits", str(fits)]
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.scaling", *arguments],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])  # some MPIs add colours


def reached(history: list[Any], optimum: float) -> float | None:
    """Seconds to the wanted relative error."""
    for seconds, objective, *_ in history:
        if (objective - optimum) / abs(optimum) <= ERROR:
            return float(seconds)
    return None


def draw(results: list[dict[str, Any]], optimum: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from parablock.plots import ScalingDisplay

    display = ScalingDisplay.from_results({"results": results, "optimum": optimum}, goal=ERROR)
    display.figure_.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--data", choices=["replicated", "sharded"], default="replicated")
    parser.add_argument("--exchange", choices=["auto", "gather", "reduce"], default="auto")
    parser.add_argument("--tol", type=float, default=0.05, help="of the measured runs, which pass 1e-3 on their way")
    parser.add_argument("--fits", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--optimum", type=float, help="the optimal objective (negative), if it is known")
    parser.add_argument("--busy", action="store_true", help="keep the cores that have no rank busy")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--companion", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.companion is not None:
        compute_for_ever(options.companion)
    if options.worker:
        fit_on_ranks(options.rows, options.data, options.exchange, options.tol, options.fits)
        return
    when, found = datetime.now(UTC), machine()
    optimum = options.optimum
    if optimum is None:
        note("finding the optimum")
        reference = run(max(options.ranks), options.rows, options.data, options.exchange, 1e-3)
        optimum = min(record[1] for record in reference["history"])
    results, lines, single = [], [], None
    for ranks in options.ranks:
        with busy(range(ranks, os.cpu_count() or 1) if options.busy else range(0)):
            result = run(ranks, options.rows, options.data, options.exchange, options.tol, options.fits)
        results.append(result)
        seconds = reached(result["history"], optimum)
        iterations = [record for record in result["history"] if record[6] != "check"]
        sent = float(np.mean([record[2] for record in iterations])) / max(1, ranks - 1) if ranks > 1 else 0.0
        waiting = sum(record[3] for record in result["history"])
        single = seconds if ranks == 1 else single
        efficiency = None if single is None or seconds is None else single / (ranks * seconds)
        lines.append(
            (str(ranks), f"{seconds:.2f}" if seconds else "-", f"{efficiency:.0%}" if efficiency else "-")
            + (str(len(iterations)), f"{sum(record[2] for record in iterations) / len(iterations) / 1e6:.2f}")
            + (f"{waiting:.2f}", f"{result['accuracy']:.2%}")
        )
        note(f"{ranks} ranks: {lines[-1]} {sent:.0f}, whole fits {[round(one, 2) for one in result['fits']]}")
    head = (
        "ranks", f"seconds to {ERROR:g}", "parallel efficiency", "iterations", "MB sent an iteration (all ranks)",
        "seconds waiting", "accuracy",
    )  # fmt: skip
    print(markdown_table(head, lines))
    print(f"\n{described(found, when)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = "scaling-busy" if options.busy else "scaling"
    numbers = {"machine": found, "options": vars(options), "optimum": optimum, "results": results}
    (RESULTS / f"{name}.json").write_text(json.dumps(numbers, indent=1))
    draw(results, optimum, RESULTS / f"{name}.png")


if __name__ == "__main__":
    main()
