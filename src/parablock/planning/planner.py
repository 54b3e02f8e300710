"""`plan`: from what a user knows before a fit to a forecast of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from parablock.devices.memory import memory_bytes
from parablock.planning.checks import one_of, positive, share, share_or_count, whole
from parablock.planning.costs import Costs
from parablock.planning.course import Course, default_filled, default_iterations, default_support, default_watched
from parablock.planning.direct import direct_forecast, is_direct
from parablock.planning.forecast import Forecast
from parablock.planning.machines import DEVICES, NETWORKS, Machine, Network
from parablock.settings import Settings

_ITEMSIZE = {"float32": 4, "float64": 8}


def plan(
    rows: int,
    features: int,
    ranks: int = 1,
    device: str = "cpu",
    *,
    support: float | None = None,
    watched: float | None = None,
    iterations: int | None = None,
    filled: float | None = None,
    coefficients: str = "sparse",
    outputs: int = 1,
    nonzeros: float | None = None,
    dtype: str = "float32",
    data: str = "replicated",
    threads: int | None = None,
    machine: Machine | None = None,
    network: str | Network = "InfiniBand",
    memory_limit: Any = None,
    tol: float = 1e-3,
) -> Forecast:
    """Forecast what a fit with the Gaussian kernel will cost: memory of a rank, communication and time.

    Counts of kernel values and bytes come out within a factor of two where the support vectors are known; seconds
    depend on the machine. Far beyond 500,000 rows all of it is an extrapolation. See "What it will cost" in
    docs/distributed.md.

    Parameters
    ----------
    rows, features : int
        Of the training data.
    ranks : int, default=1
        Processes that train together (``engine="mpi"``).
    device : {"cpu", "cuda"}, default="cpu"
        What each rank computes with.
    support : int or float, optional
        Support vectors, or a float up to 1.0 for their share of the rows. By default those of data like covtype:
        19.6 rows^0.63. It matters more than anything else: fit a few thousand rows, see how `support_` grows.
    watched : int or float, optional
        Rows that do not rest, likewise: `watched` of `history_`. By default 1.25 sqrt(rows x support), but all rows
        where that is more than 80 % of them. Give 1.0 for a wide kernel, as that of the MNIST digits.
    iterations : int, optional
        Outer iterations; by default 6 + 2 support / (rows of a block), for ``tol=1e-3``, and a fifth of that less for
        each power of ten that `tol` is larger. Wide kernels need more.
    filled : float, optional
        Part of the kernel columns that is not zero, the rest of which takes no memory: with a narrow kernel little. By
        default that of covtype in float32, 42 / sqrt(rows) and at least 0.05, where `support` is that of data like
        covtype, too; otherwise all of it.
    coefficients : {"sparse", "dense", "ridge"}, default="sparse"
        "dense" where every row has a coefficient, as in logistic regression; "ridge" for ridge regression, which on the
        CPU of one rank is solved at once by Cholesky factorisation, as long as there are not too many rows
        (`memory_limit` of the estimators says how many) and `iterations` is not given.
    outputs : int, default=1
        Classes (1 for two of them) or targets.
    nonzeros : float, optional
        Nonzero features a row, of sparse (CSR) data.
    dtype : {"float32", "float64"}, default="float32"
    data : {"replicated", "sharded"}, default="replicated"
        Whether each rank is given all rows, or rows of its own.
    threads : int, optional
        Of each rank; by default the machine's cores.
    machine : Machine, optional
        Of each rank; by default a server of 16 cores, or an NVIDIA H200. `Machine.measured()` is this one.
    network : {"InfiniBand", "10 GbE", "shared memory"} or Network, default="InfiniBand"
    memory_limit : int or str, optional
        For kernel values on each rank, as in the estimators; by default the machine's.
    tol : float, default=1e-3
        As in the estimators. For a relative error of 1e-3 of the objective take about 1.

    Returns
    -------
    Forecast

    Examples
    --------
    >>> from parablock import plan
    >>> forecast = plan(464_810, 54, ranks=16, threads=1, tol=0.05)
    >>> forecast.support_vectors
    72885
    >>> print(forecast)  # doctest: +ELLIPSIS
    ranks x threads    16 x 1
    rows x features    464,810 x 54
    ...
    """
    rows, features = whole("rows", rows), whole("features", features)
    ranks, outputs = whole("ranks", ranks, most=rows), whole("outputs", outputs)
    tol = positive("tol", tol)
    one_of("device", device, DEVICES)
    one_of("dtype", dtype, _ITEMSIZE)
    one_of("data", data, ("replicated", "sharded"))
    if nonzeros is not None and positive("nonzeros", nonzeros) > features:
        raise ValueError(f"nonzeros must be at most the number of features, {features:,}; got {nonzeros!r}.")
    if filled is None:
        like_covtype = support is None and coefficients == "sparse" and dtype == "float32"
        filled = default_filled(rows) if like_covtype else 1.0
    machine = DEVICES[device] if machine is None else _instance(Machine, "machine", machine)
    if isinstance(network, str):
        network = NETWORKS[one_of("network", network, NETWORKS)]
    costs = Costs(
        course=_course(rows, outputs, support, watched, iterations, coefficients, tol),
        row_values=features if nonzeros is None else nonzeros,
        sparse=nonzeros is not None,
        itemsize=_ITEMSIZE[dtype],
        ranks=ranks,
        threads=machine.cores if threads is None else whole("threads", threads),
        sharded=data == "sharded",
        machine=machine,
        network=_instance(Network, "network", network),
        memory_limit=machine.memory if memory_limit is None else memory_bytes(memory_limit),
        filled=share("filled", filled),
    )
    if coefficients == "ridge" and iterations is None and is_direct(rows, ranks, device, memory_limit):
        return direct_forecast(costs, features)
    course = costs.course
    return Forecast(
        rows=rows,
        features=features,
        ranks=ranks,
        threads=costs.threads,
        support_vectors=course.support,
        iterations=course.iterations,
        watched=course.watched,
        memory_per_rank=costs.memory(),
        kernel_values=costs.kernel_values(),
        kept_columns=costs.kept,
        bytes_per_iteration=costs.bytes_per_iteration(),
        bytes_sent=costs.bytes_sent(),
        seconds=costs.seconds(),
        seconds_waiting=costs.waiting(),
        seconds_on_one_rank=replace(costs, ranks=1).seconds().total,
    )


def _course(
    rows: int,
    outputs: int,
    support: float | None,
    watched: float | None,
    iterations: int | None,
    coefficients: str,
    tol: float,
) -> Course:
    if one_of("coefficients", coefficients, ("sparse", "dense", "ridge")) != "sparse":
        if support is not None:
            raise ValueError(
                f"coefficients={coefficients!r} means that every row has one; leave support={support!r} out."
            )
        count = rows
    else:
        count = default_support(rows, outputs) if support is None else share_or_count("support", support, rows)
    seen = default_watched(rows, count) if watched is None else share_or_count("watched", watched, rows)
    if seen < count:
        raise ValueError(f"watched must be at least the number of support vectors, {count:,}; got {watched!r}.")
    blocks = Settings().block_count(SimpleNamespace(shape=(rows,)), machines=1)
    if blocks == 1:  # is the problem itself, and solved at once
        return Course(rows, outputs, count, blocks, rows, 1)
    turns = whole("iterations", iterations) if iterations is not None else None
    if turns is None:
        turns = default_iterations(count, outputs, -(-rows // blocks), tol)
    return Course(rows, outputs, count, blocks, seen, turns)


def _instance(kind: type, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a parablock.planning.{kind.__name__}; got {value!r}.")
    return value
