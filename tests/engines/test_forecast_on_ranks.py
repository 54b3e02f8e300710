"""What a forecast says of two ranks, beside what they send and compute."""

from pathlib import Path

import pytest

from parablock import plan
from tests.engines.ranks import needs_mpi, results

pytestmark = pytest.mark.slow  # starts processes

ROWS, WITHIN = 6_000, 2.0


@needs_mpi
@pytest.mark.parametrize("data", ["replicated", "sharded"])
def test_counts_are_near_those_of_a_fit_on_two_ranks(data):
    found = results(2, Path(__file__).with_name("bytes_on_ranks.py"), data, ROWS)
    forecast = plan(ROWS, 54, ranks=2, data=data, threads=1, memory_limit="1GB", support=found["support"])
    for name in ("bytes_per_iteration", "bytes_sent", "kernel_values"):
        assert 1 / WITHIN < getattr(forecast, name) / found[name] < WITHIN, name
