"""What least squares costs where it is solved at once, by Cholesky factorisation (`parablock.solver.direct`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from parablock.planning.costs import Costs
from parablock.planning.forecast import Forecast, Seconds
from parablock.settings import fits_directly

_OPERATION_NS = 0.04  # of one core, in products of float64 matrices


def is_direct(rows: int, ranks: int, device: str, memory_limit: Any) -> bool:
    return ranks == 1 and device == "cpu" and fits_directly(rows, memory_limit)


def direct_forecast(costs: Costs, features: int) -> Forecast:
    """One iteration over the whole kernel matrix in float64."""
    double = replace(costs, itemsize=8)
    n, outputs, cores = costs.course.rows, costs.course.outputs, costs.threads
    values = n * (n + 1) / 2
    seconds = Seconds(
        blocks=1e-9 * _OPERATION_NS * (n**3 / 3 / cores + 8 * outputs * n**2),
        products=1e-9 * double.value_ns * values / cores,
        communication=0.0,
        serial=1e-9 * costs.machine.row_ns * outputs * n,
    )
    memory = replace(
        double.memory(),
        data=costs.row_bytes * n + 2 * double.row_bytes * n,  # the user's rows, and in float64 as given and centred
        blocks=0.0,
        columns=8.0 * n * n,
    )
    return Forecast(
        rows=n,
        features=features,
        ranks=1,
        threads=cores,
        support_vectors=n,
        iterations=1,
        watched=n,
        memory_per_rank=memory,
        kernel_values=values,
        kept_columns=1.0,
        bytes_per_iteration=0.0,
        bytes_sent=0.0,
        seconds=seconds,
        seconds_waiting=0.0,
        seconds_on_one_rank=seconds.total,
    )
