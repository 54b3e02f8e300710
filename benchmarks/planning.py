"""Forecasts of `parablock.plan` beside measured fits, and forecasts of what nobody has measured yet.

    python -m benchmarks.planning [--share S] [--write-docs]

    planning       kernel values, seconds and memory of fits on this machine
    communication  bytes and waiting on two MPI ranks
    projections    many ranks and rows; nothing is measured for these

Every fit runs in a fresh process. The machine's rates are measured too (`Machine.measured`). Prints Markdown tables
and writes all numbers to ``benchmarks/results/planning.json``. Counts should agree within a factor of two on any
machine; seconds mean something on a quiet one only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

from benchmarks import scaling
from benchmarks.cases import SAMPLE_ROWS
from benchmarks.cpu import write_document
from benchmarks.cpu_runner import Runner
from benchmarks.data import REPOSITORY
from benchmarks.running import described, machine, markdown_table, note, save_report
from benchmarks.worker import Measurement, Task
from parablock import plan
from parablock.planning import Forecast, Machine
from parablock.planning.forecast import duration, size

DOCUMENT = REPOSITORY / "docs" / "distributed.md"
SECTIONS = ("planning", "communication", "projections")
MEMORY = "8GB"  # of the program's fits (`benchmarks.cases`)


@dataclass(frozen=True)
class Case:
    """A fit to forecast.

    Attributes
    ----------
    data : str
    rows : int or None
        None: all.
    told : bool
        Whether the forecast is told the number of support vectors: the default rule is covtype's.
    asked : dict
        What else it is told.
    """

    data: str
    rows: int | None = None
    told: bool = True
    asked: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("covtype", 10_000, told=False),
    Case("covtype", 20_000, told=False),
    Case("covtype", SAMPLE_ROWS, told=False),
    Case("ijcnn1"),
    Case("mnist", asked={"watched": 1.0}),
)
RANKS_ROWS, RANKS = 20_000, ("replicated", "sharded")

# What, the paper's seconds if it has any, and what `plan` is asked.
_COVTYPE = {"rows": 464_810, "features": 54, "threads": 1, "memory_limit": "32GB", "tol": 1.0}
_MANY = {"features": 54, "ranks": 1_000, "data": "sharded", "tol": 1.0, "memory_limit": "64GB"}
# 38,650 support vectors of 240,000 deformed digits and 99,700 of 960,000 grow to this; a wide kernel, so nobody rests.
_DIGITS = {"rows": 8_100_000, "features": 784, "ranks": 32, "support": 430_000, "watched": 1.0, "tol": 1.0}
PROJECTIONS: tuple[tuple[str, float | None, dict[str, Any]], ...] = (
    ("covtype, cores", None, {**_COVTYPE}),
    ("covtype, cores", None, {**_COVTYPE, "ranks": 16}),
    ("covtype, cores", 772, {**_COVTYPE, "ranks": 32}),
    ("covtype, cores", None, {**_COVTYPE, "ranks": 64}),
    ("covtype, GPU", None, {**_COVTYPE, "device": "cuda", "threads": None, "memory_limit": None}),
    ("like MNIST-8M, cores", 8112, {**_DIGITS, "threads": 1, "memory_limit": "32GB"}),
    ("like MNIST-8M, servers", None, {**_DIGITS, "memory_limit": "64GB"}),
    ("like MNIST-8M, GPUs", None, {**_DIGITS, "device": "cuda"}),
    ("like covtype, servers", None, {**_MANY, "rows": 10**8}),
    ("like covtype, GPUs", None, {**_MANY, "rows": 10**8, "device": "cuda"}),
    ("like covtype, servers", None, {**_MANY, "rows": 10**9}),
    ("like covtype, GPUs", None, {**_MANY, "rows": 10**9, "device": "cuda"}),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, forecast and print; returns the exit status, 1 where a process failed."""
    options = _parse(arguments)
    found, when = machine(), datetime.now(UTC)
    runner = Runner(share=options.share)
    fits = [(case, _measured(runner, case)) for case in CASES]
    on_ranks = [(data, _on_ranks(runner, data)) for data in RANKS]
    texts = (_fits_table(fits), _ranks_table(on_ranks), _projections_table())
    numbers = {
        "fits": [{**asdict(case), "measured": None if one is None else asdict(one)} for case, one in fits],
        "ranks": on_ranks,
        "projections": [(name, asked, asdict(plan(**asked))) for name, _, asked in PROJECTIONS],
    }
    for section, text in zip(SECTIONS, texts):
        print(f"## {section}\n\n{text}\n", flush=True)
        if options.write_docs:
            ending = "" if section == "projections" else f"\n\n{described(found, when)}"
            write_document(section, text + ending, DOCUMENT)
    note(f"All numbers: {save_report('planning' if options.share == 1 else 'planning-trial', numbers)}")
    return 1 if runner.failures else 0


def _measured(runner: Runner, case: Case) -> Measurement | None:
    return runner.side_by_side([Task(case.data, "parablock", rows=case.rows, test_rows=1_000)])["parablock"]


@cache
def _this_machine(features: int) -> Machine:
    return Machine.measured(features)


def _on_ranks(runner: Runner, data: str) -> dict[str, Any] | None:
    try:
        return scaling.run(2, max(4_000, round(runner.share * RANKS_ROWS)), data, "auto", 1e-3)
    except (OSError, subprocess.CalledProcessError) as error:
        note(f"two ranks, {data}: {error}")
        runner.failures += 1
        return None


# ------------------------------------------------------------------------------------------------------------- tables


def _fits_table(fits: Sequence[tuple[Case, Measurement | None]]) -> str:
    head = (
        "data", "rows", "support vectors", "forecast", "kernel values, M", "forecast", "ratio", "seconds", "forecast",
        "ratio", "peak memory, MB", "forecast", "ratio",
    )  # fmt: skip
    lines = []
    for case, one in fits:
        if one is None or one.support_vectors is None or one.kernel_evaluations is None:
            continue
        support = one.support_vectors if case.told else None
        asked = {"machine": _this_machine(one.features), "memory_limit": MEMORY, "support": support, **case.asked}
        forecast = plan(one.rows, one.features, **asked)
        lines.append(
            (one.data, f"{one.rows:,}", f"{one.support_vectors:,}")
            + ("told" if case.told else f"{forecast.support_vectors:,}",)
            + _pair(one.kernel_evaluations / 1e6, forecast.kernel_values / 1e6, ",.0f")
            + _pair(one.seconds, forecast.seconds.total, ",.2f")
            + _pair(one.memory, forecast.memory_per_rank.total / 2**20, ",.0f")
        )
    return markdown_table(head, lines)


def _ranks_table(on_ranks: Sequence[tuple[str, dict[str, Any] | None]]) -> str:
    head = (
        "covtype on two ranks", "rows", "kB sent an iteration", "forecast", "ratio", "MB sent in all", "forecast",
        "ratio", "seconds waiting", "forecast", "ratio",
    )  # fmt: skip
    lines = []
    for data, found in on_ranks:
        if found is None:
            continue
        history, rows = found["history"], max(record[5] for record in found["history"])
        later = [record[2] for record in history if record[6] != "check"][1:]
        here: dict[str, Any] = {"threads": 1, "network": "shared memory", "machine": _this_machine(54)}
        forecast = plan(rows, 54, ranks=2, data=data, memory_limit="48GB", **here)
        lines.append(
            (data, f"{rows:,}")
            + _pair(float(np.mean(later)) / 1e3, forecast.bytes_per_iteration / 1e3, ",.0f")
            + _pair(sum(record[2] for record in history) / 1e6, forecast.bytes_sent / 1e6, ",.1f")
            + _pair(sum(record[3] for record in history), forecast.seconds_waiting, ",.2f")
        )
    return markdown_table(head, lines)


def _projections_table() -> str:
    head = (
        "data", "rows", "ranks x threads", "support vectors", "iterations", "memory a rank", "of it state",
        "columns kept", "sent an iteration", "blocks", "products", "communication", "serial", "time", "the paper's",
    )  # fmt: skip
    return markdown_table(head, [_projection(name, paper, plan(**asked)) for name, paper, asked in PROJECTIONS])


def _projection(name: str, paper: float | None, forecast: Forecast) -> tuple[str, ...]:
    memory, seconds = forecast.memory_per_rank, forecast.seconds
    times = (seconds.blocks, seconds.products, seconds.communication, seconds.serial, seconds.total)
    return (
        name,
        f"{forecast.rows:,}",
        f"{forecast.ranks:,} x {forecast.threads:,}",
        f"{forecast.support_vectors:,}",
        f"{forecast.iterations:,}",
        size(memory.total),
        size(memory.state),
        f"{forecast.kept_columns:.0%}",
        size(forecast.bytes_per_iteration),
        *(duration(spent) for spent in times),
        "-" if paper is None else duration(paper),
    )


def _pair(measured: float, forecast: float, form: str) -> tuple[str, str, str]:
    return format(measured, form), format(forecast, form), f"{forecast / measured:.2f}"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--share", type=float, default=1.0, metavar="S", help="of the rows, to see that everything runs"
    )
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/distributed.md")
    options = parser.parse_args(arguments)
    if not 0 < options.share <= 1:
        parser.error(f"--share {options.share:g} was given; use a number above 0 and up to 1")
    if options.write_docs and options.share < 1:
        parser.error("--write-docs is for whole measurements: leave out --share")
    return options


if __name__ == "__main__":
    sys.exit(main())
