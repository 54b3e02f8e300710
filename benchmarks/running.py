"""What the benchmark programs share: fresh processes, clocks, the machine's description, tables and files."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import REPOSITORY

RESULTS = REPOSITORY / "benchmarks" / "results"
PACKAGES = ("parablock", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "numba", "threadpoolctl")


# ------------------------------------------------------------------------------------------------- processes, clocks


def run_apart(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a module in a fresh process; returns the JSON object in the last line that it prints.

    Raises
    ------
    subprocess.CalledProcessError
        Where the process fails; what it wrote to standard error has been seen by then.
    """
    # Threads that wait by spinning take the cores from those that work.
    everything = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", **(environment or {})}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=everything, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_seconds(work: Callable[[], object], times: int = 3, enough: float = 5.0) -> float:
    """The shortest of a few tries; no further one once `enough` seconds are spent."""
    tries: list[float] = []
    while len(tries) < times and sum(tries) < enough:
        tries.append(seconds(work))
    return min(tries)


def warm_memory(gigabytes: float = 6.0) -> None:
    """Write to so much memory (at most a third of what is free) and give it back.

    A virtual machine may get its memory from the host only when it is first written to, at seconds a gigabyte: whoever
    comes first would pay for it. The peak that `peak_megabytes` tells starts anew.
    """
    with suppress(OSError, ValueError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        pages = np.empty(int(min(gigabytes * 2**30, free / 3)), dtype=np.uint8)
        pages[::4096] = 1
        del pages
        Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak


def peak_megabytes() -> float:
    """The most memory that this process has held so far, or since `warm_memory`."""
    with suppress(OSError, IndexError):
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def note(text: str) -> None:
    """A line for who waits, apart from the results."""
    print(text, file=sys.stderr, flush=True)


# --------------------------------------------------------------------------------------------------------- the machine


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(_memory_bytes() / 2**30, 1),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: number for package in PACKAGES if (number := _version(package))},
    }


def described(found: Mapping[str, Any], when: datetime) -> str:
    """The machine in one sentence, for a document."""
    versions = ", ".join(f"{package} {number}" for package, number in found["versions"].items())
    return (
        f"Measured on {when:%d %B %Y}: {found['cpu']}, {found['cores']} cores, {found['memory_gb']:g} GB, "
        f"{found['system']}, Python {found['python']}, {versions}; load {found['load']} at the start."
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not every system tells
        return 0


# ------------------------------------------------------------------------------------------------------------- output


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its first column to the left and the others to the right."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def save_report(name: str, content: Mapping[str, Any]) -> Path:
    """Write results with the time and the machine's description to ``benchmarks/results/<name>.json``."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    report = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), **content}
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return path
