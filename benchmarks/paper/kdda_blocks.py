"""The first step as the paper's 32 machines did it: one block of k-means each, here one after the other.

Each block is solved with all threads, as it would be by a machine like this one that had it alone. So the seconds of
the slowest block, beside those of the partition, are what so many machines would take, and no forecast.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.paper.kdda_like import kdda_like
from benchmarks.paper.problems import SETS
from benchmarks.paper.solvers import TOL
from benchmarks.rivals import FirstStep
from benchmarks.rivals.workshop import Workshop
from benchmarks.running import markdown_table, note
from parablock.devices.base import Samples

BLOCKS = 32
MEMORY = "80GB"  # for kernel values: a block of 262,742 rows has some 50,000 support vectors, a megabyte each
ALL_ROWS, PAPER_SECONDS = 8_407_752, 1_832


def course(rows: int, test_rows: int, limit: float, device: str) -> Iterator[dict[str, Any]]:
    """What is known after the partition, and after every block; no block is begun later than `limit` seconds."""
    begin = time.perf_counter()
    (X, y), (X_test, y_test) = kdda_like(rows), kdda_like(test_rows, test=True)
    found: dict[str, Any] = {"rows": rows, "seconds_to_make": time.perf_counter() - begin, "solved": []}
    found["features_in_use"] = features_in_use(X, X_test)
    start, one = time.perf_counter(), SETS["kdda-like"]
    first = FirstStep(one.C, one.gamma, blocks=BLOCKS, tol=TOL, device=device, memory_limit=MEMORY)
    with first.workshop(X, y.astype(np.float64)) as workshop:
        blocks, centres = first.partition(workshop)
        found |= {"seconds_of_partition": time.perf_counter() - start, "block_rows": [len(block) for block in blocks]}
        test = workshop.device.samples(X_test, workshop.kernel)
        nearest = centres.nearest(workshop.device, workshop.kernel, test)
        note(f"{rows} rows: {found}")
        yield found
        largest = int(np.argmax(found["block_rows"]))  # goes first: it is the one that all others would wait for
        for number in (largest, *(number for number in range(len(blocks)) if number != largest)):
            if time.perf_counter() - begin > limit:
                break
            mine = np.flatnonzero(nearest == number)
            solved = {"block": number, **_solved(workshop, blocks[number], test.take(mine), y_test[mine])}
            note(f"{rows} rows: {solved}")
            found["solved"].append(solved)
            yield found


def features_in_use(*matrices: Any) -> int:
    """How many features some row has."""
    used = np.zeros(matrices[0].shape[1], dtype=bool)
    for matrix in matrices:
        used[matrix.indices] = True
    return int(used.sum())


def support_vectors(found: dict[str, Any]) -> int:
    """Of all blocks, as far as those that were solved tell."""
    return round(np.mean([one["support"] for one in found["solved"]]) * len(found["block_rows"]))


def table(measured: list[dict[str, Any]]) -> str:
    head = (
        "kdda-like rows", "features in use", "partition, s", "blocks solved", "rows of a block", "s a block",
        "slowest, s", "support vectors of a block", "accuracy, %", "larger class, %", f"{BLOCKS} machines, s",
        "the paper's", "one machine, all blocks, s",
    )  # fmt: skip
    return markdown_table(head, [_line(found) for found in measured if found["solved"]])


def _solved(workshop: Workshop, rows: np.ndarray, test: Samples, labels: np.ndarray) -> dict[str, Any]:
    """One block as if there were no others, and what its model says of the test rows that belong to it."""
    start, part = time.perf_counter(), workshop.taken(rows)
    coef, intercept = part.solve(np.zeros(len(rows)), TOL)
    seconds = time.perf_counter() - start
    support = np.flatnonzero(coef)
    columns = part.samples.take(support)
    decision = part.device.kernel_dot(part.kernel, test, columns, coef[None, support])[0] + intercept
    right = int(np.sum((decision > 0) == (labels > 0)))
    found = {"rows": len(rows), "seconds": seconds, "support": len(support)}
    return {**found, "test_rows": len(labels), "test_right": right, "test_positive": int(np.sum(labels > 0))}


def _line(found: dict[str, Any]) -> tuple[str, ...]:
    solved, blocks, partition = found["solved"], len(found["block_rows"]), found["seconds_of_partition"]
    tested, right, positive = (sum(one[f"test_{name}"] for one in solved) for name in ("rows", "right", "positive"))
    tested = max(1, tested)  # of very few rows none may belong to a block that was solved
    seconds = [one["seconds"] for one in solved]
    everything = partition + np.mean(seconds) * blocks
    return (
        f"{found['rows']:,}", f"{found['features_in_use']:,}", f"{partition:.1f}", f"{len(solved)} of {blocks}",
        f"{np.mean(found['block_rows']):,.0f}", f"{np.mean(seconds):.1f}", f"{max(seconds):.1f}",
        f"{support_vectors(found) / blocks:,.0f}", f"{100 * right / tested:.2f}",
        f"{100 * max(positive, tested - positive) / tested:.2f}", f"{partition + max(seconds):.1f}",
        f"{PAPER_SECONDS:,}" if found["rows"] == ALL_ROWS else "-",
        f"{everything:,.0f}" if len(solved) == blocks else f"about {everything:,.0f}",
    )  # fmt: skip
