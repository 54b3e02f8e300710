"""Two measurements that are no fit of a peer's: the rate of kernel values, and the seconds of compilation.

    python -m benchmarks.probes throughput 54
    python -m benchmarks.probes compilation hinge

Each prints a JSON object. The library is imported inside the functions, since its import is among what is measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.running import seconds

# Of a throughput measurement: a product of this size, in tiles of that size, the best of some rounds.
ROWS, COLUMNS = 16_384, 4_096
TILE_ROWS, TILE_COLUMNS = 256, 1_024
ROUNDS = 7

SMALL_ROWS = 3_000  # of a compilation measurement
LOSSES = ("hinge", "logistic", "hinge, CSR")


def throughput(features: int, rows: int = ROWS) -> dict[str, Any]:
    """Kernel values a second of the device's `kernel_dot`, and what a matrix product and an exponential allow.

    The limit is made of two rates on tiles that stay in the cache: NumPy's float32 product of two tiles, and the
    library's own exponential of a tile. All three are measured in turn in every round, on as many threads as the
    device uses with one BLAS thread each, and the best round of each counts, so that what else the machine does
    weighs on all of them alike.

    Parameters
    ----------
    features : int
    rows : int
        Of the product that is computed.

    Returns
    -------
    dict
        The rates ``kernel_dot``, ``product``, ``exponential`` and ``limit``, in values a second of all cores, and
        ``share``, of the limit that kernel_dot reaches; ``rounds`` has the first three of every round.
    """
    from parablock.devices import DEVICES
    from parablock.devices.memory import memory_bytes
    from parablock.kernels import make_kernel

    random = np.random.default_rng(0)
    X = random.random((rows, features), dtype=np.float32)
    kernel = make_kernel("rbf", gamma=1.0 / features)
    device: Any = DEVICES["cpu"](None, memory_bytes("1GB"))
    threads = device.n_threads
    rounds: list[tuple[float, float, float]] = []
    with device.session(), ThreadPoolExecutor(threads) as pool:
        samples = device.samples(X, kernel, X.mean(axis=0))
        columns = samples.take(slice(0, COLUMNS))
        coef = random.standard_normal((1, len(columns)))
        own = np.einsum("ij,ij->i", X, X)
        tiles = [np.empty((TILE_ROWS, TILE_COLUMNS), dtype=np.float32) for _ in range(threads)]
        tiles_each = max(1, rows * len(columns) // (threads * TILE_ROWS * TILE_COLUMNS))
        panel = X[:TILE_COLUMNS].T

        def product(tile: np.ndarray) -> None:
            for number in range(tiles_each):
                start = number * TILE_ROWS % (rows - TILE_ROWS + 1)
                np.dot(X[start : start + TILE_ROWS], panel, out=tile)

        def exponential(tile: np.ndarray) -> None:
            for _ in range(tiles_each):
                kernel.transform(tile, own[:TILE_ROWS], own[:TILE_COLUMNS])

        def on_all_threads(work: Callable[[np.ndarray], None]) -> float:
            spent = seconds(lambda: list(pool.map(work, tiles)))
            return threads * tiles_each * TILE_ROWS * TILE_COLUMNS / spent

        on_all_threads(product)
        on_all_threads(exponential)  # compiled, and its tile filled, before the clock starts
        device.kernel_dot(kernel, samples.take(slice(0, TILE_ROWS)), columns, coef)
        for _ in range(ROUNDS):
            spent = seconds(lambda: device.kernel_dot(kernel, samples, columns, coef))
            rounds.append((rows * len(columns) / spent, on_all_threads(product), on_all_threads(exponential)))
    reached, products, exponentials = (max(rates) for rates in zip(*rounds))
    limit = 1 / (1 / products + 1 / exponentials)
    return {
        "features": features,
        "threads": threads,
        "kernel_dot": reached,
        "product": products,
        "exponential": exponentials,
        "limit": limit,
        "share": reached / limit,
        "rounds": rounds,
    }


def compilation(loss: str, rows: int = SMALL_ROWS) -> dict[str, Any]:
    """The first fit and prediction of a process beside the second, which has nothing left to compile or load.

    Parameters
    ----------
    loss : str
        One of `LOSSES`.
    rows : int

    Returns
    -------
    dict
        ``import_seconds``, ``first_seconds``, ``second_seconds`` and ``compile_seconds``, the difference of the
        last two.
    """
    import_seconds = seconds(lambda: __import__("parablock"))
    import scipy.sparse as sp

    import parablock
    from parablock.datasets import load_covtype_sample

    X, y, X_test, _ = load_covtype_sample()
    X, y, X_test = X[:rows], y[:rows], X_test[:rows]
    if loss == "hinge, CSR":
        X, X_test = sp.csr_matrix(X), sp.csr_matrix(X_test)
    cls = parablock.KernelLogisticRegression if loss == "logistic" else parablock.KernelSVC

    def fit() -> None:
        cls(C=32, gamma=32, random_state=0).fit(X, y).predict(X_test)

    first, second = seconds(fit), seconds(fit)
    return {
        "loss": loss,
        "import_seconds": import_seconds,
        "first_seconds": first,
        "second_seconds": second,
        "compile_seconds": first - second,
    }


def main() -> None:
    kind, argument = sys.argv[1:3]
    rows = {} if len(sys.argv) < 4 else {"rows": int(sys.argv[3])}
    result = throughput(int(argument), **rows) if kind == "throughput" else compilation(argument, **rows)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
