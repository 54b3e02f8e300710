"""BLAS is held to one thread while fits run, and has afterwards what it had, in whatever order they end."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_info, threadpool_limits

from parablock import KernelRidge, KernelSVC
from parablock.callbacks import Callback

TIMEOUT = 60


@pytest.fixture(autouse=True)
def two_threads():
    """More than one thread to begin with, whatever the environment says."""
    with threadpool_limits(2):
        yield


def threads():
    """How many threads every library of this process uses."""
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class Overlap(Callback):
    """Tells when the fit has begun, and holds it until it may go on."""

    def __init__(self):
        self.running, self.may_end = threading.Event(), threading.Event()

    def iterated(self, run):
        self.running.set()
        assert self.may_end.wait(TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.may_end.set()  # also where the test fails


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 2, 0), (0, 2, 1, 3)], ids=str)
def test_overlapping_fits_leave_the_process_as_it_was(order):
    before, (X, y) = threads(), make_moons(300, noise=0.2, random_state=0)
    with ThreadPoolExecutor(len(order)) as pool, ExitStack() as running:
        holds, fits = [running.enter_context(Overlap()) for _ in order], []
        for hold in holds:  # each begins while all earlier ones run
            fits.append(pool.submit(KernelSVC(n_jobs=2).set_callbacks(hold).fit, X, y))
            assert hold.running.wait(TIMEOUT)
        for number in order:
            assert blas_threads() == {1}
            holds[number].may_end.set()
            fits[number].result(TIMEOUT)
    assert threads() == before


def test_a_fit_that_fails_beside_another_changes_nothing():
    class Fails(Callback):
        def iterated(self, run):
            raise OSError("broken")

    before, (X, y) = threads(), make_moons(300, noise=0.2, random_state=0)
    with ThreadPoolExecutor(1) as pool, Overlap() as hold:
        fit = pool.submit(KernelSVC().set_callbacks(hold).fit, X, y)
        assert hold.running.wait(TIMEOUT)
        with pytest.raises(OSError, match="broken"):
            KernelSVC().set_callbacks(Fails()).fit(X, y)
        assert blas_threads() == {1}
        hold.may_end.set()
        fit.result(TIMEOUT)
    assert threads() == before


def test_overlapping_fits_give_the_same_bits_as_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 400))
    sizes, machine = (400, 2500, 900, 1600), KernelRidge(C=1.0, gamma=0.002, tol=1e-3, n_blocks=4, random_state=0)

    def fit(size):
        return KernelRidge(**machine.get_params()).fit(X[:size], X[:size, 0] ** 2)

    alone, barrier = [fit(size) for size in sizes], threading.Barrier(len(sizes))

    def together(size):
        barrier.wait(TIMEOUT)
        return fit(size)

    with ThreadPoolExecutor(len(sizes)) as pool:
        overlapping = list(pool.map(together, sizes))
    for one, other in zip(alone, overlapping, strict=True):
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        assert [record.objective for record in one.history_] == [record.objective for record in other.history_]
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
