"""What users can rely on: accuracy, honest numbers, invariances, repeatability."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, cross_val_predict
from threadpoolctl import threadpool_info, threadpool_limits

from parablock import AutoKernelClassifier, AutoKernelRegressor
from parablock.tables import fitting


def friedman(n=160, seed=0, noise=1.0):
    return make_friedman1(n, n_features=8, noise=noise, random_state=seed)


@pytest.fixture(scope="module")
def fitted():
    X, y = friedman()
    return AutoKernelRegressor(random_state=0).fit(X, y)


def test_it_learns_more_than_trees(fitted):
    X, y = friedman()
    X_test, y_test = friedman(1000, seed=1)
    trees = HistGradientBoostingRegressor(random_state=0).fit(X, y)
    assert fitted.score(X_test, y_test) > trees.score(X_test, y_test)


def test_the_estimate_is_that_of_new_rows(fitted):
    X_test, y_test = friedman(2000, seed=2)
    error, estimate = (np.sqrt(1 - r) for r in (fitted.score(X_test, y_test), fitted.score_estimate_))
    assert 0.85 < estimate / error < 1.25


def test_the_estimate_of_pure_noise_promises_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 10)), rng.normal(size=120)
    assert AutoKernelRegressor(random_state=0).fit(X, y).score_estimate_ < 0.1
    label = rng.integers(0, 2, 120)
    assert AutoKernelClassifier(random_state=0).fit(X, label).score_estimate_ < 0.65


def test_the_estimate_of_categories_without_meaning_promises_nothing():
    """A row that is coded by the others of its category gives its target away."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (200, 8)).astype(str).astype(object)
    label = rng.integers(0, 2, 200)
    model = AutoKernelClassifier(random_state=0).fit(X, label)
    assert model.score_estimate_ < 0.62
    fresh = rng.integers(0, 6, (500, 8)).astype(str).astype(object)
    assert abs(model.score(fresh, rng.integers(0, 2, 500)) - 0.5) < 0.1


def test_columns_of_noise_get_small_weights(fitted):
    laplace = fitted._fitted.machines[0]
    weight = np.exp(laplace.z)
    by_source = np.array([weight[fitted._fitted.columns.sources == j].sum() for j in range(8)])
    assert by_source[5:].max() < by_source[:5].min()


def test_classes_and_their_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = AutoKernelClassifier(random_state=0).fit(X[:200], names[:200])
    assert model.score(X[200:], names[200:]) > 0.95
    assert abs(model.score_estimate_ - 0.965) < 0.035
    proba = model.predict_proba(X[200:])
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.predict(X[200:]), model.classes_[proba.argmax(axis=1)])
    own = proba[np.arange(len(proba)), np.searchsorted(model.classes_, names[200:])]
    assert -np.log(own).mean() < 0.15


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = AutoKernelClassifier(random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.92
    assert model.decision_function(X).shape == (150, 3)


# ------------------------------------------------------------------------------------------------ same numbers


def predictions(X, y, X_test, **options):
    return AutoKernelRegressor(random_state=0, **options).fit(X, y).predict(X_test)


def test_any_number_of_threads_gives_the_same_bits(fitted):
    X, y = friedman()
    X_test, _ = friedman(50, seed=1)
    expected = fitted.predict(X_test)
    for n_jobs, blas in ((1, 2), (2, 1), (4, 2)):
        with threadpool_limits(blas, user_api="blas"):
            assert np.array_equal(predictions(X, y, X_test, n_jobs=n_jobs), expected)


def test_blas_has_its_threads_back():
    X, y = friedman(60)
    with threadpool_limits(2, user_api="blas"):
        before = [(one["filepath"], one["num_threads"]) for one in threadpool_info()]
        AutoKernelRegressor(random_state=0).fit(X, y).predict(X)
        assert [(one["filepath"], one["num_threads"]) for one in threadpool_info()] == before


def test_the_order_of_rows_changes_nothing(fitted):
    X, y = friedman()
    X_test, _ = friedman(50, seed=1)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(predictions(X[order], y[order], X_test), fitted.predict(X_test))


def test_the_order_and_the_units_of_columns_change_little(fitted):
    X, y = friedman()
    X_test, y_test = friedman(500, seed=1)
    error = 1 - fitted.score(X_test, y_test)
    turned = 1 - AutoKernelRegressor(random_state=0).fit(X[:, ::-1], y).score(X_test[:, ::-1], y_test)
    scaled = 1 - AutoKernelRegressor(random_state=0).fit(X * 37 + 5, y).score(X_test * 37 + 5, y_test)
    targets = 1 - AutoKernelRegressor(random_state=0).fit(X, y * 1e-9 - 3).score(X_test, y_test * 1e-9 - 3)
    assert np.allclose([turned, scaled, targets], error, rtol=0.02)


def test_names_of_classes_change_nothing():
    X, y = load_iris(return_X_y=True)
    model = AutoKernelClassifier(random_state=0).fit(X[::2], y[::2])
    other = AutoKernelClassifier(random_state=0).fit(X[::2], np.array(["a", "b", "c"])[y[::2]])
    assert np.array_equal(other.decision_function(X), model.decision_function(X))


def test_weights_are_copies():
    X, y = friedman(60)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    again = np.repeat(np.arange(60), weight)
    a = AutoKernelRegressor(random_state=0).fit(X, y, sample_weight=weight)
    b = AutoKernelRegressor(random_state=0).fit(X[again], y[again])
    c = AutoKernelRegressor(random_state=0).fit(X, y, sample_weight=weight / 8)
    assert np.array_equal(a.predict(X), b.predict(X))
    assert np.array_equal(a.predict(X), c.predict(X))
    assert a.score_estimate_ == pytest.approx(b.score_estimate_, rel=1e-12)


def test_class_weights_are_sample_weights():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:80], y[:80]
    a = AutoKernelClassifier(class_weight={0: 3, 1: 1}, random_state=0).fit(X, y)
    b = AutoKernelClassifier(random_state=0).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    assert np.array_equal(a.decision_function(X), b.decision_function(X))
    balanced = AutoKernelClassifier(class_weight="balanced", random_state=0).fit(X, y)
    c = AutoKernelClassifier(random_state=0).fit(X, y, sample_weight=1 / np.bincount(y)[y])
    assert np.allclose(balanced.decision_function(X), c.decision_function(X), atol=0.02)


def test_pickle_and_clone(fitted):
    X_test, _ = friedman(50, seed=1)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X_test), fitted.predict(X_test))
    assert clone(fitted).get_params() == fitted.get_params()


# --------------------------------------------------------------------------------------------- rows and targets


def test_several_targets():
    X, y = friedman(120)
    Y = np.column_stack([y, 100 * X[:, 5]])
    model = AutoKernelRegressor(random_state=0).fit(X[:80], Y[:80])
    assert model.predict(X[80:]).shape == (40, 2)
    assert model.score(X[80:], Y[80:]) > 0.6
    one = AutoKernelRegressor(random_state=0).fit(X[:80], Y[:80, :1])
    assert one.predict(X[80:]).shape == (40, 1)


def test_rows_that_belong_together_are_left_out_together():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 6)
    # A column that tells the group, and a target of the group: rows of other groups tell nothing of it.
    X = np.column_stack([rng.normal(size=20)[group], rng.normal(size=120)])
    y = rng.normal(size=20)[group] + 0.3 * X[:, 1]
    blind = AutoKernelRegressor(random_state=0).fit(X, y)
    model = AutoKernelRegressor(random_state=0).fit(X, y, groups=group)
    names = AutoKernelRegressor(random_state=0).fit(X, y, groups=np.array(list("abcdefghijklmnopqrst"))[group])
    cv = cross_val_predict(AutoKernelRegressor(random_state=0), X, y, groups=group, cv=GroupKFold(5))
    honest = 1 - np.mean((cv - y) ** 2) / y.var()
    assert blind.score_estimate_ > 0.9
    assert model.score_estimate_ < 0.4
    assert honest < 0.4
    assert np.array_equal(names.predict(X), model.predict(X))


def test_bad_weights_and_groups_are_refused():
    X, y = friedman(30)
    with pytest.raises(ValueError, match="zero or positive"):
        AutoKernelRegressor().fit(X, y, sample_weight=-np.ones(30))
    with pytest.raises(ValueError, match="All sample weights are zero"):
        AutoKernelRegressor().fit(X, y, sample_weight=np.zeros(30))
    with pytest.raises(ValueError, match="All rows are of one group"):
        AutoKernelRegressor().fit(X, y, groups=np.zeros(30))
    with pytest.raises(ValueError, match="one number a row"):
        AutoKernelRegressor().fit(X, y, sample_weight=np.ones(29))
    label = np.arange(30) % 2
    with pytest.raises(ValueError, match=r"1 class: \[1\]"):
        AutoKernelClassifier().fit(X, label, sample_weight=label)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        AutoKernelClassifier(class_weight={0: 0.0, 1: 1.0}).fit(X, label)


# ------------------------------------------------------------------------------------------------- odd tables


@pytest.mark.parametrize("n", [2, 5, 23, 24, 30])
def test_few_rows(n):
    X, y = friedman(n)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.score_estimate_)


def test_odd_columns():
    X, y = friedman(80)
    rng = np.random.default_rng(0)
    odd = np.column_stack(
        [X, np.ones(80), X[:, 0], X[:, 1] * 1e-300, X[:, 2] * 1e300, rng.integers(0, 5000, 80), np.full(80, np.nan)]
    )
    X_test, y_test = friedman(200, seed=1)
    odd_test = np.column_stack(
        [X_test, np.ones(200), X_test[:, 0], X_test[:, 1] * 1e-300, X_test[:, 2] * 1e300,
         rng.integers(0, 5000, 200), np.zeros(200)]
    )  # fmt: skip
    plain = AutoKernelRegressor(random_state=0).fit(X, y).score(X_test, y_test)
    assert AutoKernelRegressor(random_state=0).fit(odd, y).score(odd_test, y_test) > plain - 0.15


def test_equal_rows():
    X, y = load_iris(return_X_y=True)
    X = np.round(X)  # 150 rows, few of them different
    model = AutoKernelClassifier(random_state=0).fit(X, y)
    assert len(np.unique(X, axis=0)) < 60
    assert model.score(X, y) > 0.85
    assert 0.8 < model.score_estimate_ <= 1


@pytest.mark.parametrize("X", [np.zeros((40, 2)), np.repeat([[0.0], [1.0]], 20, axis=0)], ids=["constant", "two rows"])
def test_tables_that_tell_nothing_or_little(X):
    y = np.tile([1.0, 2.0], 20)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    assert np.allclose(model.predict(X), 1.5)
    label = AutoKernelClassifier(random_state=0).fit(X, np.r_[np.zeros(30), np.ones(10)])
    assert set(label.predict(X)) <= {0.0, 1.0}


def test_a_constant_target():
    X, _ = friedman(40)
    model = AutoKernelRegressor(random_state=0).fit(X, np.full(40, 7.0))
    assert np.array_equal(model.predict(X), np.full(40, 7.0))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_targets_of_any_size(fitted, scale):
    X, y = friedman()
    X_test, _ = friedman(50, seed=1)
    model = AutoKernelRegressor(random_state=0).fit(X, y * scale)
    assert np.allclose(model.predict(X_test) / scale, fitted.predict(X_test), rtol=0.05)
    assert model.score_estimate_ == pytest.approx(fitted.score_estimate_, abs=0.02)


def test_many_classes_and_a_class_of_one_row():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, 6)) * 3
    label = np.r_[np.repeat(np.arange(49), 3), 49]
    X = centres[label] + rng.normal(size=(148, 6)) * 0.3
    model = AutoKernelClassifier(random_state=0).fit(X, label)
    assert model.predict_proba(X).shape == (148, 50)
    assert model.score(X, label) > 0.9


def test_wide_tables():
    """Beyond 300 columns no full metric is learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9
    assert [type(machine.kernel).__name__ for machine in model._fitted.machines] == ["LaplaceKernel", "PowerKernel"]


def test_more_rows_than_are_learned_on(monkeypatch):
    monkeypatch.setattr(fitting, "HALF_ROWS", 40)
    X, y = friedman(200)
    X_test, y_test = friedman(500, seed=1)
    judged, real = [], fitting.Fit._judged
    monkeypatch.setattr(fitting.Fit, "_judged", lambda *given: judged.append(real(*given)) or judged[-1])
    model = AutoKernelRegressor(random_state=0).fit(X, y)
    assert np.isfinite(judged[0][0]).all(axis=1).sum() == 80
    assert len(model._fitted.machines[0].alpha) == 200
    monkeypatch.undo()
    few = AutoKernelRegressor(random_state=0).fit(X[:80], y[:80])
    assert model.score(X_test, y_test) > few.score(X_test, y_test)
    group = np.arange(200) // 3
    monkeypatch.setattr(fitting, "HALF_ROWS", 40)
    assert AutoKernelRegressor(random_state=0).fit(X, y, groups=group).score(X_test, y_test) > 0.6


# ---------------------------------------------------------------------------------------------- a fit's limits


def test_a_fit_that_needs_too_much_memory_is_refused():
    X, y = friedman(100)
    with pytest.raises(ValueError, match=r"Fitting 100 distinct rows takes \d+ MB .* memory_limit"):
        AutoKernelRegressor(memory_limit="100KB").fit(X, y)
    few = AutoKernelRegressor(memory_limit="300KB", random_state=0).fit(X, y)  # one task at a time
    assert np.array_equal(few.predict(X), AutoKernelRegressor(random_state=0).fit(X, y).predict(X))


def test_max_time_leaves_a_usable_model():
    X, y = friedman()
    with pytest.warns(ConvergenceWarning, match="The time limit of 1e-06 s was reached"):
        model = AutoKernelRegressor(max_time=1e-6, random_state=0).fit(X, y)
    assert model.stop_reason_ == "time"
    assert model.score(X, y) > 0.5
    assert np.isfinite(model.score_estimate_)


def pressing(monkeypatch, times):
    """Ctrl-C comes while the metric is learned, again when the last one has been heard."""
    real, presses = fitting.learned, []

    def learned(kernel, problem, origin, space, control, *more):
        while len(presses) < times:
            presses.append(os.kill(os.getpid(), signal.SIGINT))
            until = time.monotonic() + 60
            while not (control.given_up if len(presses) > 1 else control.stopped) and time.monotonic() < until:
                time.sleep(0.01)
        return real(kernel, problem, origin, space, control, *more)

    monkeypatch.setattr(fitting, "learned", learned)


def test_ctrl_c_leaves_a_usable_model(monkeypatch):
    X, y = friedman()
    pressing(monkeypatch, 1)
    with pytest.warns(ConvergenceWarning, match="Interrupted before the metric was learned"):
        model = AutoKernelRegressor(n_jobs=1, random_state=0).fit(X, y)
    assert model.stop_reason_ == "interrupted"
    assert model.score(X, y) > 0.5


def test_a_second_ctrl_c_ends_the_fit(monkeypatch):
    X, y = friedman(60)
    pressing(monkeypatch, 2)
    model = AutoKernelRegressor(n_jobs=1, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "_fitted")


def test_an_error_inside_is_the_users_to_see(monkeypatch):
    def learned(*arguments, **options):
        raise ZeroDivisionError("from inside")

    monkeypatch.setattr(fitting, "learned", learned)
    X, y = friedman(60)
    with pytest.raises(ZeroDivisionError, match="from inside"):
        AutoKernelRegressor(random_state=0).fit(X, y)


def test_verbose_tells_the_stages(capsys):
    X, y = friedman(60)
    AutoKernelRegressor(verbose=1, random_state=0).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("[parablock] ") for line in lines)


# --------------------------------------------------------------------------------------------------- dataframes


def test_a_dataframe_with_everything():
    pd = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X[:150].copy(), y[:150]
    X["sex"] = np.where(X["sex"] > 0, "f", "m")
    X["group"] = pd.Categorical(np.array(["a", "b", "c"])[np.digitize(X["bmi"], [-0.02, 0.03])])
    X["heavy"] = X["bmi"] > 0.05
    X.loc[X.index[::7], "bp"] = np.nan
    X.loc[X.index[::11], "sex"] = None
    model = AutoKernelRegressor(random_state=0).fit(X[:100], y[:100])
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.score(X[100:], y[100:]) > 0.3
    unknown = X[100:].copy()
    unknown["group"] = "unheard of"
    assert np.isfinite(model.predict(unknown)).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[100:].rename(columns={"bp": "pressure"}))
    with pytest.raises(ValueError, match="'sex' held categories in training"):
        model.predict(X[100:].assign(sex=1.0))


def test_sparse_rows_are_refused_by_name():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="AutoKernelRegressor needs dense data"):
        AutoKernelRegressor().fit(sp.csr_matrix(np.eye(30)), np.arange(30.0))
