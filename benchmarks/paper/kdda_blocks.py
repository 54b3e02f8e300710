"""The first step on all rows: a tree cuts them into blocks, and each block is solved as if there were no others.

The paper's 32 machines had a block of k-means each, of 262,742 rows. Here a block has some 4,000 rows, as in parablock,
so that one machine comes to the end; blocks are solved in random order, and those that were solved tell of the others.
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
from benchmarks.rivals.workshop import WORKING_SET, Workshop
from benchmarks.running import markdown_table, note
from parablock.devices.base import Samples
from parablock.partition import TreePartitioner

AT_ONCE = 64  # blocks that are solved together, each by one thread
MACHINES, ALL_ROWS, PAPER_SECONDS = 32, 8_407_752, 1_832


def course(rows: int, test_rows: int, limit: float, device: str) -> Iterator[dict[str, Any]]:
    """What is known after the partition, and after some blocks; none is begun later than after `limit` seconds."""
    begin = time.perf_counter()
    (X, y), (X_test, y_test) = kdda_like(rows), kdda_like(test_rows, test=True)
    found: dict[str, Any] = {"rows": rows, "seconds_to_make": time.perf_counter() - begin, "solved": []}
    found["features_in_use"] = features_in_use(X, X_test)
    start, one = time.perf_counter(), SETS["kdda-like"]
    with FirstStep(one.C, one.gamma, tol=TOL, device=device).workshop(X, y.astype(np.float64)) as workshop:
        place = workshop.device, workshop.kernel
        parts = TreePartitioner().partition(*place, workshop.samples, -(-rows // WORKING_SET), workshop.rng)
        found |= {"seconds_of_partition": time.perf_counter() - start, "blocks": len(parts.blocks)}
        test = workshop.device.samples(X_test, workshop.kernel)
        nearest = parts.centres.nearest(*place, test)
        note(f"{rows} rows: {found}")
        yield found
        order = workshop.rng.permutation(len(parts.blocks))
        for first in range(0, len(order), AT_ONCE):
            if time.perf_counter() - begin > limit:
                break
            numbers = order[first : first + AT_ONCE].tolist()
            mine = [np.flatnonzero(nearest == number) for number in numbers]
            solved = _solved(workshop, [parts.blocks[number] for number in numbers], test, y_test, mine)
            note(f"{rows} rows: {solved}")
            found["solved"].append(solved)
            yield found


def features_in_use(*matrices: Any) -> int:
    """How many features some row has."""
    used = np.zeros(matrices[0].shape[1], dtype=bool)
    for matrix in matrices:
        used[matrix.indices] = True
    return int(used.sum())


def table(measured: list[dict[str, Any]]) -> str:
    head = (
        "kdda-like rows", "features in use", "to make them, s", "partition, s", "blocks solved", "rows in them",
        "seconds", "support vectors, %", "accuracy, %", "larger class, %", "all blocks, this machine, s",
        f"{MACHINES} such machines, s", "the paper's",
    )  # fmt: skip
    return markdown_table(head, [_line(found) for found in measured if found["solved"]])


def _solved(
    workshop: Workshop, blocks: list[np.ndarray], test: Samples, labels: np.ndarray, mine: list[np.ndarray]
) -> dict[str, Any]:
    """Some blocks, and what the model of each says of the test rows that belong to it."""
    start = time.perf_counter()
    solved = workshop.solve_apart(blocks, [np.zeros(len(rows)) for rows in blocks], TOL)
    found = {"blocks": len(blocks), "rows": sum(map(len, blocks)), "seconds": time.perf_counter() - start}
    found["support"] = sum(int(np.count_nonzero(coef)) for coef, _ in solved)
    right = 0
    for rows, (coef, intercept), own in zip(blocks, solved, mine, strict=True):
        support = np.flatnonzero(coef)
        columns = workshop.samples.take(rows[support])
        decision = workshop.device.kernel_dot(workshop.kernel, test.take(own), columns, coef[None, support])[0]
        right += int(np.sum((decision + intercept > 0) == (labels[own] > 0)))
    told = labels[np.concatenate(mine)]
    return {**found, "test_rows": len(told), "test_right": right, "test_positive": int(np.sum(told > 0))}


def _line(found: dict[str, Any]) -> tuple[str, ...]:
    names = "blocks", "rows", "seconds", "support", "test_rows", "test_right", "test_positive"
    sums = (sum(one[name] for one in found["solved"]) for name in names)
    blocks, rows, seconds, support, tested, right, positive = sums
    tested = max(1, tested)  # of very few rows none may belong to a block that was solved
    partition, everything = found["seconds_of_partition"], seconds * found["rows"] / rows
    return (
        f"{found['rows']:,}", f"{found['features_in_use']:,}", f"{found['seconds_to_make']:.1f}", f"{partition:.1f}",
        f"{blocks:,} of {found['blocks']:,}", f"{rows:,}", f"{seconds:.1f}",
        f"{100 * support / rows:.1f}", f"{100 * right / tested:.2f}",
        f"{100 * max(positive, tested - positive) / tested:.2f}",
        f"{everything:,.0f}" if blocks == found["blocks"] else f"about {everything:,.0f}",
        f"{partition + everything / MACHINES:,.0f}", f"{PAPER_SECONDS:,}" if found["rows"] == ALL_ROWS else "-",
    )  # fmt: skip
