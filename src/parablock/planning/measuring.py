"""What this machine can do, by a short measurement with the library's own products."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from parablock.devices import DEVICES
from parablock.kernels import make_kernel
from parablock.planning.checks import whole

_ROWS, _COLUMNS = 16_384, 2_048  # 134 MB of columns: far more than caches hold
_FEW_FEATURES = 8
_ROUNDS = 3  # the best counts


def measured_rates(features: int) -> dict[str, Any]:
    """The fields of a `Machine` that are measured."""
    features = whole("features", features)
    if features <= _FEW_FEATURES:
        raise ValueError(f"features must be more than {_FEW_FEATURES} for a measurement; got {features}.")
    (few_ns, _), (many_ns, core_bandwidth) = (_one_core(count) for count in (_FEW_FEATURES, features))
    feature_ns = max(1e-4, (many_ns - few_ns) / (features - _FEW_FEATURES))
    cores, _, bandwidth = _rates(None, _FEW_FEATURES)
    return {
        "cores": cores,
        "value_ns": max(0.0, many_ns - feature_ns * features),
        "feature_ns": feature_ns,
        "core_bandwidth": core_bandwidth,
        "bandwidth": max(bandwidth, core_bandwidth),
    }


def _one_core(features: int) -> tuple[float, float]:
    _, nanoseconds, bandwidth = _rates(1, features)
    return nanoseconds, bandwidth


def _rates(threads: int | None, features: int) -> tuple[int, float, float]:
    """Threads, nanoseconds for a kernel value and bytes a second of kept columns, of all threads together."""
    random = np.random.default_rng(0)
    X = random.random((_ROWS, features), dtype=np.float32)
    kernel = make_kernel("rbf", gamma=1.0 / features)
    device: Any = DEVICES["cpu"](threads, 2 * 4 * _ROWS * _COLUMNS)
    with device.session():
        samples, rows, coef = device.samples(X, kernel), np.arange(_COLUMNS), random.standard_normal((1, _COLUMNS))
        some = samples.take(rows)
        device.column_dot(kernel, samples, samples, rows, coef)  # computes and keeps them, compiled by then
        values, kept = [], []
        for _ in range(_ROUNDS):
            started = time.perf_counter()
            device.kernel_dot(kernel, samples, some, coef)
            values.append(time.perf_counter() - started)
            started = time.perf_counter()
            device.column_dot(kernel, samples, samples, rows, coef)
            kept.append(time.perf_counter() - started)
    return device.n_threads, 1e9 * min(values) / (_ROWS * _COLUMNS), 4 * _ROWS * _COLUMNS / min(kept)
