"""Where the time of one fit goes, phase by phase; alone, on a GPU, or on MPI ranks.

    python -m benchmarks.phases --device cuda               # covtype, all rows
    mpiexec -n 16 python -m benchmarks.phases --rows 100000 --tol 0.05

Needs mpi4py, also alone. Times the functions below from outside, each without those that it calls, in the second of two
fits: mean and maximum over the ranks; waiting for other ranks is told by where it happens. Before that, what the
machine itself allows: kernel values a second of a rank while all ranks compute. Ranks have the memory of `scaling`.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import parablock.solver.iteration as iteration
import parablock.solver.pbm as pbm
import parablock.solver.schedule as schedule
import parablock.solver.watching as watching
from benchmarks.cases import CASES
from benchmarks.running import markdown_table
from benchmarks.scaling import memory_of_a_rank
from parablock import KernelSVC
from parablock.devices import DEVICES
from parablock.engines import MPIEngine
from parablock.engines.crew import RankCrew
from parablock.engines.local import LocalCrew
from parablock.engines.mpi import MPITalk
from parablock.kernels import make_kernel
from parablock.problem import Problem

CEILING_ROWS, CEILING_TIMES = 6_000, 4


class Phases:
    """Seconds spent in functions, each without those that it calls."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside: list[tuple[str, float]] = []

    def time(self, owner: Any, *names: str, told_by_place: bool = False) -> None:
        for name in names:
            setattr(owner, name, self._timed(getattr(owner, name), name.strip("_"), told_by_place))

    def _timed(self, function: Callable[..., Any], name: str, told_by_place: bool) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            label = f"{name} in {self._inside[-1][0] if self._inside else 'others'}" if told_by_place else name
            started = time.perf_counter()
            self._inside.append((name, 0.0))
            try:
                return function(*arguments, **options)
            finally:
                took = time.perf_counter() - started
                self.seconds[label] += took - self._inside.pop()[1]
                if self._inside:
                    outer, within = self._inside[-1]
                    self._inside[-1] = outer, within + took

        return timed


def watch(phases: Phases, device: type) -> None:
    phases.time(device, "solve_blocks", "column_dot", "kernel_dot", "prefetch", "extend", "samples")
    for crew in (LocalCrew, RankCrew):
        phases.time(crew, "partition", "ordered", "regroup", "restricted", "solve", "product", "decision", "counts")
    phases.time(RankCrew, "_head_start")
    phases.time(MPITalk, "share_array", "agree", told_by_place=True)
    phases.time(Problem, "measure", "take")
    if device.name == "cuda":  # type: ignore[attr-defined]
        from parablock.devices.cuda.problem import CardProblem

        phases.time(CardProblem, "measure")
    phases.time(pbm, "leave_to_rest", "advance")
    phases.time(watching, "state_of_all", "wake", "wake_some", "wake_everyone")
    phases.time(iteration, "exact_step", "armijo_step", "plane_step")
    phases.time(schedule, "bridge_rows", "sampled_rows")


def ceiling() -> float:
    """Kernel values a second of this rank's one thread, 54 features."""
    kernel, X = make_kernel("rbf", 32.0), np.random.default_rng(0).random((CEILING_ROWS, 54), dtype=np.float32)
    device = DEVICES["cpu"](1)
    with device.session():
        samples, coef = device.samples(X, kernel), np.ones((1, CEILING_ROWS))
        device.kernel_dot(kernel, samples, samples, coef)
        started = time.perf_counter()
        for _ in range(CEILING_TIMES):
            device.kernel_dot(kernel, samples, samples, coef)
        return CEILING_TIMES * CEILING_ROWS**2 / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tol", type=float, default=0.1)
    parser.add_argument("--no-intercept", action="store_true")
    options = parser.parse_args()
    talk = MPIEngine().talk()
    phases = Phases()
    watch(phases, type(DEVICES[options.device](1)))
    rates = talk.share(ceiling())
    case = CASES["covtype"]
    X, y, _, _ = case.data(options.rows)
    settings: dict[str, Any] = {"C": case.C, "gamma": case.gamma, "tol": options.tol, "device": options.device}
    settings |= {"fit_intercept": not options.no_intercept, "random_state": 0}
    if talk.size > 1:
        settings |= {"engine": MPIEngine(data="replicated"), "n_jobs": 1, "memory_limit": memory_of_a_rank(talk.size)}
    for _ in range(2):
        phases.seconds.clear()
        model = KernelSVC(**settings).fit(X[: options.rows], y[: options.rows])
    everyone = talk.share(dict(phases.seconds))
    if talk.rank == 0:
        slowest, mean, fastest = (value / 1e9 for value in (min(rates), np.mean(rates), max(rates)))
        print(f"{mean:.3f} ({slowest:.3f} to {fastest:.3f}) G kernel values/s a rank, {talk.size} ranks together")
        print(f"fit {model.history_[-1].seconds:.2f} s, {model.n_iter_} iterations\n")
        names = sorted(
            {name for one in everyone for name in one}, key=lambda name: -max(o.get(name, 0) for o in everyone)
        )
        spent = {name: [one.get(name, 0.0) for one in everyone] for name in names}
        lines = [(name, f"{np.mean(own):.3f}", f"{max(own):.3f}") for name, own in spent.items() if max(own) > 0.005]
        print(markdown_table(("phase", "seconds, mean of ranks", "maximum"), lines))


if __name__ == "__main__":
    main()
