"""How training scales over MPI ranks: the paper's figure of relative error against time x workers.

    python -m benchmarks.scaling                     # covtype, 100,000 rows, 1 to 16 ranks of one thread
    python -m benchmarks.scaling --ranks 1 2 --rows 20000

Needs an MPI (pip install 'parablock[mpi]') and, to mean anything, a core for each rank. The optimum is the best
objective of a run to a small tolerance on the largest number of ranks. Every run fits twice, and the second fit counts.
Writes `benchmarks/results/scaling.json` and `scaling.png`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import CASES
from benchmarks.running import RESULTS, described, machine, markdown_table, note
from parablock import KernelSVC
from parablock.engines import MPIEngine

ERROR = 1e-3
# One thread a rank; and memory that a fit gives back stays with its process, for the next fit to have at once.
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}


def fit_on_ranks(rows: int, data: str, exchange: str, tol: float) -> None:
    """What every rank runs; the first one prints the history."""
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
    comm.Barrier()
    model = KernelSVC(tol=tol, **options).fit(X, y)
    if rank == 0:
        history = [
            (r.seconds, r.objective, r.bytes_sent, r.seconds_waiting, r.changed, r.watched, r.kind)
            for r in model.history_
        ]
        accuracy = float(model.score(X_test[:10_000], y_test[:10_000]))
        print(json.dumps({"ranks": size, "history": history, "accuracy": accuracy, "sv": len(model.support_)}))


def memory_of_a_rank(ranks: int) -> int:
    """Bytes, of 48 GB for all."""
    return int(48 * 2**30 / ranks)


def run(ranks: int, rows: int, data: str, exchange: str, tol: float) -> dict[str, Any]:
    """One fit in processes of its own."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    arguments = ["--worker", "--rows", str(rows), "--data", data, "--exchange", exchange, "--tol", str(tol)]
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
    parser.add_argument("--optimum", type=float, help="the optimal objective (negative), if it is known")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        fit_on_ranks(options.rows, options.data, options.exchange, options.tol)
        return
    when, found = datetime.now(UTC), machine()
    optimum = options.optimum
    if optimum is None:
        note("finding the optimum")
        reference = run(max(options.ranks), options.rows, options.data, options.exchange, 1e-3)
        optimum = min(record[1] for record in reference["history"])
    results, lines, single = [], [], None
    for ranks in options.ranks:
        result = run(ranks, options.rows, options.data, options.exchange, options.tol)
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
        note(f"{ranks} ranks: {lines[-1]} {sent:.0f}")
    head = (
        "ranks", f"seconds to {ERROR:g}", "parallel efficiency", "iterations", "MB sent an iteration (all ranks)",
        "seconds waiting", "accuracy",
    )  # fmt: skip
    print(markdown_table(head, lines))
    print(f"\n{described(found, when)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    numbers = {"machine": found, "options": vars(options), "optimum": optimum, "results": results}
    (RESULTS / "scaling.json").write_text(json.dumps(numbers, indent=1))
    draw(results, optimum, RESULTS / "scaling.png")


if __name__ == "__main__":
    main()
