"""The same input gives the same model, on any number of threads; and output goes where it should."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from parablock import KernelLogisticRegression, KernelSVC
from tests.small_problems import CASES, features, targets

every_estimator = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def same_fit(first, second):
    """Whether two models are equal to the last bit, and so is the way to them."""
    return (
        np.array_equal(first.support_, second.support_)
        and np.array_equal(first.dual_coef_, second.dual_coef_)
        and np.array_equal(first.intercept_, second.intercept_)
        and [record.objective for record in first.history_] == [record.objective for record in second.history_]
    )


@pytest.mark.parametrize("partition", ["tree", "kmeans", "kernel_kmeans", "random"])
@pytest.mark.parametrize("block_solver", ["greedy", "random", "cyclic"])
def test_random_state_repeats_a_fit_exactly(block_solver, partition):
    settings = {"partition": partition, "block_solver": block_solver, "n_blocks": 4}
    assert same_fit(*(CASES["hinge"].fit(**settings, random_state=7) for _ in range(2)))


def test_another_random_state_takes_another_way_to_the_same_solution():
    one, other = (CASES["hinge"].fit(partition="random", n_blocks=4, tol=1e-6, random_state=seed) for seed in (0, 1))
    assert not same_fit(one, other)
    assert one.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-6)


@every_estimator
def test_random_state_may_be_a_generator(case):
    one, other = (case.fit(partition="random", n_blocks=4, random_state=np.random.RandomState(3)) for _ in range(2))
    assert same_fit(one, other)


@pytest.mark.parametrize("regroup", [True, False], ids=["regrouped", "fixed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_number_of_threads_does_not_change_the_result(dtype, regroup):
    X, y = make_moons(5000, noise=0.3, random_state=0)  # more rows than one task of a kernel product takes
    X = X.astype(dtype)
    settings = {"C": 10.0, "gamma": 2.0, "tol": 1e-2, "n_blocks": 8, "regroup": regroup, "random_state": 0}
    one, two = (KernelSVC(**settings, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert same_fit(one, two)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_nothing_is_written_unless_asked_for(capfd):
    CASES["hinge"].fit(n_blocks=4).predict(features())
    assert capfd.readouterr() == ("", "")


def test_verbose_writes_partition_header_and_a_line_an_iteration_to_standard_error(capfd):
    model = CASES["hinge"].fit(n_blocks=4, verbose=1)
    output, errors = capfd.readouterr()
    lines = errors.splitlines()
    assert output == ""
    assert all(line.startswith("[parablock] ") for line in lines)
    assert model.partition_.report() in lines[0]
    assert "of the kernel matrix in the precision of the data" in lines[1]
    assert "objective" in lines[1]
    assert len(lines) == model.n_iter_ + 3
    assert f"{model.history_[-1].objective:.7g}" in lines[-1]


def test_predictions_do_not_depend_on_the_company_of_other_rows():
    X, y, new = features(), targets("labels"), features(500, seed=4)
    model = KernelLogisticRegression(random_state=0).fit(X, y)
    together = model.predict_proba(new)
    alone = np.concatenate([model.predict_proba(new[i : i + 1]) for i in range(0, 500, 50)])
    assert alone == pytest.approx(together[::50], abs=1e-12)


@every_estimator
def test_a_second_fit_loads_no_code_again(case):
    """Compiled code is never given back, so every fit that loads its own makes the process larger and slower."""
    first, second = (case.fit()._make_loss() for _ in range(2))
    assert first.compiled_slopes.address == second.compiled_slopes.address
