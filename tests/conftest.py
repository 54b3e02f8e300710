"""Settings and fixtures that all tests share."""

import signal
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from parablock.devices import DEVICES

# The same examples in every run, and no time limit: the first call of a compiled function takes seconds.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("repeatable")

# A shell starts what runs in its background with Ctrl-C ignored, and programs pass that on to those that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=["cpu"])  # every device named here must pass every test that asks for one
def make_device(request):
    """A function that makes a device of the kind under test and opens its session."""
    with ExitStack() as sessions:

        def make(n_jobs=1, memory_limit=1 << 30):
            device = DEVICES[request.param](n_jobs, memory_limit)
            sessions.enter_context(device.session())
            return device

        yield make


@pytest.fixture(scope="module")
def device(make_device):
    """One device for all tests of a file."""
    return make_device()
