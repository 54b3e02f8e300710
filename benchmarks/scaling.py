"""How training scales over MPI ranks: the paper's figure of relative error against time x workers.

    python -m benchmarks.scaling                     # covtype, 100,000 rows, 1 to 16 ranks of one thread
    python -m benchmarks.scaling --ranks 1 2 --rows 20000 --others idle

Needs an MPI (pip install 'parablock[mpi]') and, to mean anything, a core for each rank. The optimum is the best
objective of a run to a small tolerance on the largest number of ranks.

What else a host does makes its cores a third slower or faster for minutes, and one core slower than another. So there
are three rounds of all numbers of ranks (--rounds), every run fits once to get ready and twice more (--fits), and each
of these fits is on other cores: one rank is not measured on the best core, nor on the worst. Speeds of all fits are
averaged, and an efficiency is the speed of so many ranks divided by as many times the speed of one.

A core is faster while others idle: it has the power, the caches and the memory of the chip for itself, and in a virtual
machine perhaps the other half of a core. So there are two efficiencies. With idle others they say what more ranks on
this machine are good for; beside them stands what as many processes have that only compute kernel values, and need not
wait for anyone. With busy others, which compute kernel values all the time, every rank has the same core whatever the
number of ranks, as the paper's machines had; these say what the method and its messages cost.
Writes `benchmarks/results/scaling.json`, and `scaling.png` of the runs with busy others, if there are any.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
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


def fit_on_ranks(rows: int, data: str, exchange: str, tol: float, fits: int, places: list[list[int]]) -> None:
    """What every rank runs, in every fit on its core of that fit's places; the first one prints the history of the
    fastest fit, and the objectives of all."""
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
    for number in range(fits):
        if places:
            stay_on(places[number][rank])
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
        found["objectives"] = [[(r.seconds, r.objective) for r in each.history_] for each in models]
        print(json.dumps(found))


def stay_on(core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def available_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def compute_alone(core: int, seconds: float) -> None:
    """Kernel values on one core, from when it is told to begin: what keeps a core busy that no rank is on."""
    stay_on(core)
    kernel, device = make_kernel("rbf", 32.0), CpuDevice(1, 2**28)
    with device.session():
        samples = device.samples(np.random.default_rng(core).random((2000, 54), dtype=np.float32), kernel)
        coef = np.ones((1, len(samples)))
        device.kernel_dot(kernel, samples, samples, coef)
        print("ready", flush=True)
        sys.stdin.readline()
        before, started = device.kernel_evaluations, time.perf_counter()
        while time.perf_counter() < started + seconds:
            device.kernel_dot(kernel, samples, samples, coef)
        print((device.kernel_evaluations - before) / (time.perf_counter() - started), flush=True)


@contextlib.contextmanager
def computing(cores: Sequence[int], seconds: float) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that compute on these cores, all from now on."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.scaling", "--alone", str(core), "--seconds", str(seconds)],
            env={**os.environ, **ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for core in cores
    ]
    try:
        for process in processes:
            said(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def values_a_second(cores: Sequence[int]) -> float:
    """Kernel values that each of these cores computes in a second while all do the same."""
    with computing(cores, 1.0) as processes:
        return float(np.mean([float(said(process)) for process in processes]))


def memory_of_a_rank(ranks: int) -> int:
    """Bytes, of 48 GB for all."""
    return int(48 * 2**30 / ranks)


def run(
    ranks: int, rows: int, data: str, exchange: str, tol: float, fits: int = 1, places: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Fits in processes of their own; of each fit the core of every rank, if it matters."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    arguments = ["--worker", "--rows", str(rows), "--data", data, "--exchange", exchange, "--tol", str(tol)]
    arguments += ["--fits", str(fits), "--places", json.dumps(places)]
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, "-m", "benchmarks.scaling", *arguments],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])  # some MPIs add colours


def reached(history: Sequence[Sequence[Any]], optimum: float) -> float:
    """Seconds to the wanted relative error, of records that begin with seconds and objective; nan where it was never
    reached."""
    for seconds, objective, *_ in history:
        if (objective - optimum) / abs(optimum) <= ERROR:
            return float(seconds)
    return float("nan")


def seconds_of(result: dict[str, Any], optimum: float) -> list[float]:
    """Of every fit, to the wanted relative error."""
    return [reached(objectives, optimum) for objectives in result["objectives"]]


def draw(results: list[dict[str, Any]], optimum: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from parablock.plots import ScalingDisplay

    display = ScalingDisplay.from_results({"results": results, "optimum": optimum}, goal=ERROR)
    display.figure_.savefig(path, dpi=150)


Rounds = dict[int, list[dict[str, Any]]]  # what was found with so many ranks, round after round


def cells(ranks: int, rounds: Rounds, optimum: float) -> tuple[str, str]:
    """Seconds and parallel efficiency, as far as they are known, by the mean speed of all fits of all rounds."""
    if ranks not in rounds:
        return "-", "-"
    speed = {
        count: np.mean([1.0 / seconds for each in rounds[count] for seconds in seconds_of(each, optimum)])
        for count in {1, ranks} & rounds.keys()
    }
    return f"{1.0 / speed[ranks]:.2f}", f"{speed[ranks] / (ranks * speed[1]):.0%}" if 1 in speed else "-"


def rotated(cores: list[int], begin: float) -> list[int]:
    """The cores from somewhere in the middle on."""
    first = int(begin * len(cores))
    return cores[first:] + cores[:first]


def fastest(rounds: Rounds) -> list[dict[str, Any]]:
    """One run with every number of ranks."""
    return [min(found, key=lambda one: min(one["fits"])) for found in rounds.values()]


def table(idle: Rounds, busy: Rounds, alone: dict[int, list[float]], optimum: float) -> str:
    lines = []
    for result in fastest(busy or idle):
        ranks = result["ranks"]
        iterations = [record for record in result["history"] if record[6] != "check"]
        waiting = sum(record[3] for record in result["history"])
        speed = f"{np.mean(alone[ranks]) / np.mean(alone[1]):.0%}" if 1 in alone else "-"
        lines.append(
            (str(ranks), *cells(ranks, idle, optimum), speed)
            + cells(ranks, busy, optimum)
            + (str(len(iterations)), f"{sum(record[2] for record in iterations) / len(iterations) / 1e6:.2f}")
            + (f"{waiting:.2f}", f"{result['accuracy']:.2%}")
        )
    head = (
        "ranks", f"seconds to {ERROR:g}, others idle", "parallel efficiency", "of kernel values alone",
        "seconds, others busy", "parallel efficiency", "iterations", "MB sent an iteration (all ranks)",
        "seconds waiting", "accuracy",
    )  # fmt: skip
    return markdown_table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--data", choices=["replicated", "sharded"], default="replicated")
    parser.add_argument("--exchange", choices=["auto", "gather", "reduce"], default="auto")
    parser.add_argument("--tol", type=float, default=0.05, help="of the measured runs, which pass 1e-3 on their way")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fits", type=int, default=2, help="in each round, with every number of ranks")
    parser.add_argument("--optimum", type=float, help="the optimal objective (negative), if it is known")
    parser.add_argument("--others", choices=["both", "idle", "busy"], default="both", help="cores that have no rank")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--places", type=json.loads, default=[], help=argparse.SUPPRESS)
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        compute_alone(options.alone, options.seconds)
        return
    if options.worker:
        fit_on_ranks(options.rows, options.data, options.exchange, options.tol, options.fits, options.places)
        return
    when, found, cores = datetime.now(UTC), machine(), available_cores()
    optimum = options.optimum
    if optimum is None:
        note("finding the optimum")
        reference = run(max(options.ranks), options.rows, options.data, options.exchange, 1e-3)
        optimum = min(record[1] for record in reference["history"])
    rounds: dict[str, Rounds] = {"idle": {}, "busy": {}}
    alone: dict[int, list[float]] = {}
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number in range(options.rounds):
        for ranks in options.ranks:
            # Idle cores are many: every fit has others. Busy ones stay where they are.
            begins = [(number + fit / options.fits) / options.rounds for fit in range(options.fits)]
            places = [rotated(cores, begin) for begin in begins]
            for others in ("idle", "busy"):
                if options.others not in ("both", others):
                    continue
                if others == "busy" and ranks >= len(cores) and rounds["idle"]:
                    result = rounds["idle"][ranks][-1]  # there are none
                else:
                    taken = [place[:ranks] for place in (places if others == "idle" else places[:1] * options.fits)]
                    what = options.rows, options.data, options.exchange, options.tol, options.fits
                    with computing(places[0][ranks:] if others == "busy" else [], np.inf):
                        result = run(ranks, *what, taken if ranks <= len(cores) else [])
                rounds[others].setdefault(ranks, []).append(result)
                note(f"round {number + 1}: {ranks} ranks, others {others}: {seconds_of(result, optimum)} s")
            alone.setdefault(ranks, []).append(values_a_second(places[0][:ranks]))
        numbers = {
            "machine": found,
            "options": vars(options),
            "optimum": optimum,
            "results": fastest(rounds["busy"] or rounds["idle"]),
            "rounds": rounds,
            "values_a_second": alone,
        }
        (RESULTS / "scaling.json").write_text(json.dumps(numbers, indent=1))
    print(table(rounds["idle"], rounds["busy"], alone, optimum))
    print(f"\n{described(found, when)}")
    draw(fastest(rounds["busy"] or rounds["idle"]), optimum, RESULTS / "scaling.png")


if __name__ == "__main__":
    main()
