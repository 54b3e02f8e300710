"""What all rivals share: labels, moments, stopwatch, errors, sparse rows, repetition."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.rivals import (
    CASVM,
    DCSVM,
    LIBSVM,
    PSVM,
    CascadeSVM,
    FirstStep,
    Model,
    Nystroem,
    Parablock,
    PPackSVM,
    RandomFeatures,
    Rival,
    base,
)
from tests.rivals.conftest import GAMMA, C

RIVALS = {
    "DCSVM": DCSVM(C, GAMMA, n_jobs=1),
    "DCSVM, early": DCSVM(C, GAMMA, early=1, n_jobs=1),
    "FirstStep": FirstStep(C, GAMMA, blocks=3, n_jobs=1),
    "FirstStep, logistic": FirstStep(C, GAMMA, blocks=3, loss="logistic", n_jobs=1),
    "CASVM": CASVM(C, GAMMA, clusters=4, n_jobs=1),
    "CascadeSVM": CascadeSVM(C, GAMMA, parts=4, n_jobs=1),
    "PPackSVM": PPackSVM(C, GAMMA, epochs=4, n_jobs=1),
    "PPackSVM, logistic": PPackSVM(C, GAMMA, epochs=4, loss="logistic", n_jobs=1),
    "PSVM": PSVM(C, GAMMA, power=0.9, n_jobs=1),
    "RandomFeatures": RandomFeatures(C, GAMMA, features=300),
    "RandomFeatures, logistic": RandomFeatures(C, GAMMA, features=300, loss="logistic"),
    "Nystroem": Nystroem(C, GAMMA, features=200, n_jobs=1),
    "Nystroem, logistic": Nystroem(C, GAMMA, features=200, loss="logistic", n_jobs=1),
    "LIBSVM": LIBSVM(C, GAMMA),
    "Parablock": Parablock(C, GAMMA, n_jobs=1),
    "Parablock, logistic": Parablock(C, GAMMA, loss="logistic", n_jobs=1),
}


@pytest.fixture(params=RIVALS)
def rival(request):
    return RIVALS[request.param]


def test_learns_tells_moments_and_repeats(rival, small):
    moments = []
    assert rival.fit(small.X, small.y, watch=moments.append) is rival
    decision = rival.decision_function(small.X_test)
    assert rival.score(small.X_test, small.y_test) > 0.58  # the larger class is half of the rows
    assert np.array_equal(rival.predict(small.X_test), np.where(decision > 0, 1, -1))
    seconds = [moment.seconds for moment in moments]
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(rival.seconds_, abs=0.5)
    assert np.array_equal(moments[-1].model.decision(small.X_test), decision)
    again = rival.fit(small.X, small.y).decision_function(small.X_test)
    np.testing.assert_allclose(again, decision, rtol=1e-9, atol=1e-9)


def test_labels_are_the_users(rival, small):
    names = np.where(small.y > 0, "yes", "no")
    rival.fit(small.X, names)
    assert rival.classes_.tolist() == ["no", "yes"]
    assert rival.score(small.X, names) > 0.66


def test_sparse_rows_give_the_same(rival, small):
    dense = rival.fit(small.X, small.y).decision_function(small.X_test)
    sparse = rival.fit(sp.csr_matrix(small.X), small.y).decision_function(sp.csr_matrix(small.X_test))
    # Sums are in another order, and of two rows that are as near another may become a centre.
    assert np.mean((dense > 0) == (sparse > 0)) > 0.9


def test_refuses_what_it_cannot_do(rival, small):
    with pytest.raises(ValueError, match=r"two classes.*y has 3"):
        rival.fit(small.X[:30], np.arange(30) % 3)
    with pytest.raises(ValueError, match="X has 30 rows and y has 29"):
        rival.fit(small.X[:30], np.arange(29) % 2)
    with pytest.raises(ValueError, match="not fitted yet"):
        type(rival)().decision_function(small.X)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (DCSVM(early=3, levels=2), "early=3.*levels 1 to 2"),
        (CascadeSVM(parts=6), "parts=6.*power of two"),
        (CascadeSVM(parts=1024), "parts=1024.*600 rows"),
        (PPackSVM(loss="squared"), "loss='squared'"),
        (PPackSVM(fit_intercept=True), "no intercept"),
        (PSVM(power=1.5), "power=1.5"),
        (RandomFeatures(loss="squared"), "loss='squared'"),
    ],
)
def test_refuses_wrong_parameters(bad, words, small):
    with pytest.raises(ValueError, match=words):
        bad.fit(small.X, small.y)


def test_the_listeners_time_does_not_count(monkeypatch):
    """By a clock that goes on by one second whenever somebody looks at it."""
    ticks = itertools.count()
    monkeypatch.setattr(base.time, "perf_counter", lambda: float(next(ticks)))
    spent = []

    class Worker(Rival):
        def _train(self, X, y, clock):
            for _ in range(3):
                next(ticks)  # a second of work
                clock.tell(lambda: Model(lambda rows: np.zeros(rows.shape[0])))
            return Model(lambda rows: np.zeros(rows.shape[0]))

    def listen(moment):
        spent.append(moment.seconds)
        for _ in range(1000):
            next(ticks)

    worker = Worker().fit(np.zeros((2, 1)), [0, 1], watch=listen)
    assert len(spent) == 4
    assert spent[-1] < 20
    assert worker.seconds_ < 20
