"""Least squares by Cholesky factorisation: the optimum of the linear system, in one iteration that all can watch."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge
from sklearn.model_selection import train_test_split

from parablock import Checkpoint, CheckpointError, KernelRidge, load, solve
from parablock.callbacks import EarlyStopping, JSONLog, ProgressBar, TimeLimit, read_log
from parablock.kernels import RBF
from parablock.losses import SquaredError
from parablock.report import write_report
from tests.small_problems import rbf

GAMMA = 0.3


def data(n=300, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.stack([np.sin((1 + k) * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n) for k in range(targets)], 1)
    return X, y[:, 0] if targets == 1 else y


def bordered(K, y, C, intercept):
    """Coefficients (n_outputs, n) and intercepts of the linear system, by numpy.linalg.solve in float64."""
    n, targets = len(K), y.reshape(len(K), -1)
    A = np.zeros((n + intercept, n + intercept))
    A[:n, :n] = K + np.diag(1.0 / (2.0 * np.broadcast_to(C, n)))
    if intercept:
        A[n, :n] = A[:n, n] = 1.0
    right = np.zeros((n + intercept, targets.shape[1]))
    right[:n] = targets
    found = np.linalg.solve(A, right)
    return found[:n].T, found[n] if intercept else np.zeros(targets.shape[1])


def all_coef(model, n):
    coef = np.zeros((len(model.dual_coef_), n))
    coef[:, model.support_] = model.dual_coef_
    return coef


def at_once(model):
    return [record.kind for record in model.history_] == ["cholesky"]


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 700])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["equal weights", "weights"])
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_the_solution_is_that_of_the_linear_system(C, intercept, weighted, targets, n):
    X, y = data(n, targets)
    weight = np.random.default_rng(n).uniform(0.1, 10.0, n) if weighted else None
    model = KernelRidge(C=C, gamma=GAMMA, fit_intercept=intercept, n_jobs=1).fit(X, y, sample_weight=weight)
    assert at_once(model)
    K = rbf(X, gamma=GAMMA)
    coef, bias = bordered(K, y, C if weight is None else C * weight, intercept)
    expected, found = coef @ K + bias[:, None], model.predict(X).reshape(n, -1).T
    assert np.abs(found - expected).max() <= 1e-10 * max(1.0, np.sqrt(C)) * np.abs(y).max()
    own = all_coef(model, n)
    assert np.abs(own.sum(axis=1)).max() <= 1e-12 * max(1.0, np.abs(own).sum()) or not intercept
    least = 0.5 * np.sum((coef @ K) * coef) - np.sum(coef * y.reshape(n, -1).T)
    least += np.sum(coef**2 / (4 * C * (1.0 if weight is None else weight)))
    assert -model.dual_objective_ == pytest.approx(least, rel=1e-7, abs=1e-12)
    assert model.stop_reason_ == "converged"
    assert model.n_iter_ == 1


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-3, 1e-4, 1e-8])
def test_predictions_are_scikit_learns_at_every_penalty(alpha):
    X, y = make_friedman1(700, random_state=0)
    ours = KernelRidge(C=1 / (2 * alpha), gamma=0.1, fit_intercept=False).fit(X, y)
    theirs = ScikitKernelRidge(alpha=alpha, kernel="rbf", gamma=0.1).fit(X, y)
    new, _ = make_friedman1(50, random_state=1)
    assert np.abs(ours.predict(new) - theirs.predict(new)).max() <= 1e-6


def test_rows_of_weight_zero_take_no_part():
    X, y = data()
    weight = np.where(np.arange(300) % 3, 2.0, 0.0)
    some = weight > 0
    model = KernelRidge(C=5, gamma=GAMMA).fit(X, y, sample_weight=weight)
    assert at_once(model)
    assert model.predict(X) == pytest.approx(KernelRidge(C=10, gamma=GAMMA).fit(X[some], y[some]).predict(X), abs=1e-9)


def test_targets_with_weights_of_their_own():
    X, y = data(targets=2)
    C = np.stack((np.full(300, 3.0), np.linspace(0.1, 9.0, 300)))
    trained = solve(X, y.T, SquaredError(), RBF(GAMMA), C=C)
    assert [record.kind for record in trained.solution.history] == ["cholesky"]
    for output in range(2):
        coef, bias = bordered(rbf(X, gamma=GAMMA), y[:, output], C[output], True)
        assert trained.solution.state.coef[output] == pytest.approx(coef[0], abs=1e-8)
        assert trained.solution.state.measures[output].bias == pytest.approx(bias[0], abs=1e-8)


def test_float32_rows_are_solved_and_predicted_in_float64():
    X, y = data()
    single = X.astype(np.float32)
    model = KernelRidge(C=1e5, gamma=GAMMA).fit(single, y)
    coef, bias = bordered(rbf(single.astype(float), gamma=GAMMA), y, 1e5, True)
    assert model.predict(single) == pytest.approx(coef[0] @ rbf(single.astype(float), gamma=GAMMA) + bias[0], abs=1e-8)


@pytest.mark.parametrize(
    "kernel", ["linear", "polynomial", "laplacian", "matern32", "matern52", "cosine", "precomputed"]
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_every_kernel_and_format(kernel, sparse):
    if kernel == "precomputed" and sparse:
        pytest.skip("a precomputed kernel is dense")
    X, y = data()
    X = rbf(X, gamma=GAMMA) if kernel == "precomputed" else X
    given = sp.csr_matrix(X) if sparse else X
    model = KernelRidge(C=2, kernel=kernel, gamma=0.2, coef0=1.0, degree=2).fit(given, y)
    assert at_once(model)
    blocks = KernelRidge(C=2, kernel=kernel, gamma=0.2, coef0=1.0, degree=2, n_blocks=2, tol=1e-7).fit(given, y)
    assert not at_once(blocks)
    assert model.predict(given) == pytest.approx(blocks.predict(given), abs=1e-5)
    assert model.dual_objective_ == pytest.approx(blocks.dual_objective_, rel=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_certificate_is_that_of_the_coefficients(intercept):
    X, y = data()
    model = KernelRidge(C=40, gamma=GAMMA, fit_intercept=intercept).fit(X, y)
    coef, K = all_coef(model, 300)[0], rbf(X, gamma=GAMMA)
    f = K @ coef + model.intercept_[0]
    primal = 0.5 * coef @ K @ coef + 40 * np.sum((y - f) ** 2)
    dual = y @ coef - 0.5 * coef @ K @ coef - np.sum(coef**2) / 160
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-12)
    assert 0 <= model.duality_gap_ <= 1e-10 * primal
    assert primal - dual <= 1e-10 * primal
    assert model.violation_ <= 1e-10
    (record,) = model.history_
    assert (record.iteration, record.blocks, record.active, record.watched) == (1, 1, 300, 300)
    assert model.duality_gap_ == record.duality_gap
    assert model.violation_ == record.violation
    assert model.kernel_evaluations_ >= 300 * 301 / 2
    assert model.partition_.sizes.tolist() == [300]


def test_bits_do_not_depend_on_the_number_of_threads():
    X, y = data(900)
    one, two, three = (KernelRidge(C=1e3, gamma=GAMMA, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 3))
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    assert np.array_equal(one.dual_coef_, three.dual_coef_)
    assert np.array_equal(one.intercept_, three.intercept_)


# ------------------------------------------------------------------------------------------------ where it applies


@pytest.mark.parametrize(
    ("choice", "direct"),
    [
        ({}, True),
        ({"max_iter": 1}, True),
        ({"memory_limit": "10MB"}, True),
        ({"memory_limit": "1MB"}, False),  # the matrix takes 0.7 MB
        ({"n_blocks": 2}, False),
        ({"regroup": False}, False),
        ({"regroup": False, "prediction": "local"}, False),
        ({"partition": np.arange(300) % 2}, False),
        ({"partition": "random"}, False),
        ({"block_solver": "cyclic"}, False),
        ({"line_search": "armijo"}, False),
    ],
)
def test_who_chooses_blocks_gets_blocks(choice, direct):
    X, y = data()
    model = KernelRidge(gamma=GAMMA, **choice).fit(X, y)
    assert at_once(model) == direct
    assert model.predict(X) == pytest.approx(KernelRidge(gamma=GAMMA).fit(X, y).predict(X), abs=1e-2)


def test_more_rows_only_where_the_user_gave_the_memory(monkeypatch):
    monkeypatch.setattr("parablock.settings._DIRECT_ROWS", 200)
    X, y = data()
    assert not at_once(KernelRidge(gamma=GAMMA).fit(X, y))
    assert at_once(KernelRidge(gamma=GAMMA, memory_limit=2 * 8 * 300 * 300).fit(X, y))
    assert not at_once(KernelRidge(gamma=GAMMA, memory_limit=2 * 8 * 300 * 300 - 1).fit(X, y))


def test_rows_in_a_mapped_file_stay_there(tmp_path):
    X, y = data()
    np.save(tmp_path / "X.npy", X)
    assert not at_once(KernelRidge(gamma=GAMMA).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y))


def test_an_indefinite_kernel_with_a_solution_is_solved_in_blocks():
    """-|x - z| is positive definite for coefficients that sum to zero only."""
    X, y = data(60)
    K = -np.abs(X[:, :1] - X[:, 0])
    log = []
    model = KernelRidge(kernel="precomputed", C=0.5, tol=1e-8, random_state=0)

    class Count:
        def setup(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context):
            log.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context):
            log.append(("end", context.task_name))

        def teardown(self, estimator, context): ...

    model.set_callbacks(Count()).fit(K, y)
    coef, _ = bordered(K, y, 0.5, True)
    assert not at_once(model)
    assert all_coef(model, 60)[0] == pytest.approx(coef[0], abs=1e-5)
    assert log.count(("begin", "iteration")) == log.count(("end", "iteration")) == len(model.history_)


def test_an_indefinite_kernel_without_a_solution_is_refused():
    X, y = data(60)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelRidge(kernel="precomputed", fit_intercept=False).fit(-10 * rbf(X), y)


# ----------------------------------------------------------------------------------------- what else a fit can have


def test_callbacks_see_one_iteration(tmp_path):
    X, y = data(400)
    X, X_valid, y, y_valid = train_test_split(X, y, random_state=0)
    stopping = EarlyStopping(X_valid, y_valid, patience=1)
    model = KernelRidge(C=10, gamma=GAMMA).set_callbacks(
        stopping, JSONLog(tmp_path / "log.jsonl"), ProgressBar(), TimeLimit(1e-9)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.stop_reason_ == "converged"
    assert stopping.scores_ == [pytest.approx(model.score(X_valid, y_valid), abs=1e-12)]
    log = read_log(tmp_path / "log.jsonl")
    assert [record.kind for record in log.history] == ["cholesky"]
    assert log.end["certificate"]["dual_objective"] == model.dual_objective_
    write_report(tmp_path / "log.jsonl", tmp_path / "report.html")
    assert "Cholesky factorisation" in (tmp_path / "report.html").read_text()


def test_a_model_file_keeps_it(tmp_path):
    X, y = data(50)
    model = KernelRidge(gamma=GAMMA).fit(X, y)
    model.save(tmp_path / "model.pbk")
    loaded = load(tmp_path / "model.pbk")
    assert at_once(loaded)
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_checkpoints_and_warm_starts_have_nothing_to_do(tmp_path):
    X, y = data()
    path = tmp_path / "run.checkpoint"
    plain = KernelRidge(C=10, gamma=GAMMA).fit(X, y)
    kept = KernelRidge(C=10, gamma=GAMMA, checkpoint=Checkpoint(path, iterations=1), resume="auto").fit(X, y)
    assert np.array_equal(kept.dual_coef_, plain.dual_coef_)
    assert not path.exists()
    warm = KernelRidge(C=3, gamma=GAMMA, warm_start=True).fit(X, y).set_params(C=10).fit(X, y)
    assert np.array_equal(warm.dual_coef_, plain.dual_coef_)


def test_a_checkpoint_to_resume_from_must_be_of_the_problem(tmp_path):
    X, y = data()
    path = tmp_path / "run.checkpoint"
    with pytest.warns(ConvergenceWarning, match="Not converged"):
        KernelRidge(C=10, gamma=GAMMA, n_blocks=4, max_iter=1, tol=1e-9, checkpoint=Checkpoint(path, iterations=1)).fit(
            X, y
        )
    before = path.read_bytes()
    model = KernelRidge(C=10, gamma=GAMMA, checkpoint=path, resume=True).fit(X, y)
    assert at_once(model)
    assert path.read_bytes() == before
    with pytest.raises(CheckpointError, match="another problem"):
        KernelRidge(C=11, gamma=GAMMA, checkpoint=path, resume=True).fit(X, y)
    with pytest.raises(CheckpointError, match="would be overwritten"):
        KernelRidge(C=10, gamma=GAMMA, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="set checkpoint to its path"):
        KernelRidge(C=10, gamma=GAMMA, resume=True).fit(X, y)


def test_a_path_along_c_is_solved_so_too():
    X, y = data()
    models = KernelRidge.path(X, y, Cs=[0.1, 1e4, 10], gamma=GAMMA)
    assert all(at_once(model) for model in models)
    for model in models:
        assert np.array_equal(model.dual_coef_, KernelRidge(C=model.C, gamma=GAMMA).fit(X, y).dual_coef_)
    once = max(model.kernel_evaluations_ for model in models)
    assert once == models[0].kernel_evaluations_


def test_a_tolerance_below_rounding_is_told():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="No further progress"):
        model = KernelRidge(C=1e12, gamma=GAMMA, tol=1e-300).fit(X, y)
    assert model.stop_reason_ == "stalled"
    assert model.violation_ > 0


INTERRUPTED = """
import os, signal, threading
import numpy as np
from parablock import KernelRidge
import parablock.devices.cpu.kernel_system as module
rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 5)); y = X[:, 0]
KernelRidge(n_jobs=2).fit(X[:600], y[:600])
original, calls = module.lapack.dpotrf, []
def slow(*arguments, **options):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return original(*arguments, **options)
module.lapack.dpotrf = slow
model = KernelRidge(n_jobs=2)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", len(calls), hasattr(model, "dual_coef_"), threading.active_count())
module.lapack.dpotrf = original
print(model.fit(X, y).score(X, y) > 0.5)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name != "posix", reason="needs signals")
def test_ctrl_c_is_heard_between_tiles_and_leaves_a_usable_process():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted 2 False 1", "True"]
