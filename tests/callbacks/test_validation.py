"""Validation scores of every iteration, kept up to date; and the end when they get no better."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, make_scorer, r2_score
from threadpoolctl import threadpool_info

from parablock import KernelLogisticRegression, KernelRidge, KernelSVC
from parablock.callbacks import EarlyStopping, ValidationScore
from parablock.settings import Settings
from tests.callbacks.small_fits import SETTINGS, Recorder, fit_quietly, machine, moons
from tests.small_problems import rbf

X, y = moons()
X_valid, y_valid = moons(90, seed=1)


def scores_of_shorter_fits(model, data, valid, score):
    """Of a fit that ends after each iteration."""
    fits = [fit_quietly(clone(model).set_params(max_iter=number), *data) for number in (1, 2, 3, 4)]
    return [score(fit, *valid) for fit in fits]


def three_classes(points):
    return (points[:, 0] > 0).astype(int) + (points[:, 1] > 0.5)


def curve(points):
    return np.sin(2 * points[:, 0]) + points[:, 1]


def negative_log_loss(model, points, labels):
    return -log_loss(labels, model.predict_proba(points))


def mean_margin(model, points, labels):
    return float(np.mean(np.where(labels == "up", 1, -1) * model.decision_function(points)))


FITS = {
    "hinge": (machine(), (X, y), (X_valid, y_valid), None),
    "no intercept": (machine(fit_intercept=False), (X, y), (X_valid, y_valid), mean_margin),
    "classes": (machine(), (X, three_classes(X)), (X_valid, three_classes(X_valid)), None),
    "ridge": (KernelRidge(**SETTINGS), (X, curve(X)), (X_valid, curve(X_valid)), None),
    "targets": (KernelRidge(**SETTINGS), (X, X + 1), (X_valid, X_valid + 1), None),
    "log loss": (KernelLogisticRegression(**SETTINGS), (X, y), (X_valid, y_valid), "neg_log_loss"),
    "scorer": (machine(), (X, y), (X_valid, y_valid), make_scorer(accuracy_score)),
    "csr": (machine(), (sp.csr_matrix(X), y), (X_valid, y_valid), None),
    "csr for dense": (machine(), (X, y), (sp.csr_matrix(X_valid), y_valid), None),
    "float32": (machine(), (X.astype(np.float32), y), (X_valid, y_valid), None),
    "precomputed": (
        machine(kernel="precomputed"), (rbf(X, gamma=3), y), (rbf(X_valid, X, gamma=3), y_valid), None
    ),
    "function": (machine(kernel=lambda a, b: rbf(a, b, gamma=3)), (X, y), (X_valid, y_valid), None),
    "local": (
        machine(prediction="local", regroup=False, partition="kmeans"), (X, y), (X_valid, y_valid), None
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "data", "valid", "scoring"), FITS.values(), ids=FITS)
def test_scores_are_those_of_fits_that_end_there(model, data, valid, scoring):
    special = {"neg_log_loss": negative_log_loss, mean_margin: mean_margin}
    score = special.get(scoring, lambda model, *rows: model.score(*rows))
    expected = scores_of_shorter_fits(model, data, valid, score)
    validation = ValidationScore(*valid, scoring=scoring)
    model.set_params(max_iter=1000).set_callbacks(validation).fit(*data)
    numbers = [record.iteration for record in model.history_]
    found = [validation.scores_[numbers.index(iteration)] for iteration in (1, 2, 3, 4)]
    assert found == pytest.approx(expected, abs=1e-6)
    assert len(set(found)) > 1
    assert len(validation.scores_) == len(model.history_)


def test_rows_without_weight_take_no_part():
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    for kernel, rows, valid in (("rbf", X, X_valid), ("precomputed", rbf(X, gamma=3), rbf(X_valid, X, gamma=3))):
        validation = ValidationScore(valid, y_valid)
        model = machine(kernel=kernel).set_callbacks(validation).fit(rows, y, sample_weight=weight)
        assert validation.scores_[-1] == model.score(valid, y_valid)


def test_a_warm_start_begins_with_what_is_there():
    validation = ValidationScore(X_valid, y_valid)
    model = machine(warm_start=True).set_callbacks(validation).fit(X, y)
    model.set_params(C=6).fit(X, y)
    assert validation.scores_[-1] == model.score(X_valid, y_valid)


def kernel_values_of(monkeypatch, validation, **settings):
    """Those that were computed for the validation rows of a fit, and its model."""
    made, original = [], Settings.make_device

    def noting(self):
        made.append(original(self))
        return made[-1]

    monkeypatch.setattr(Settings, "make_device", noting)
    model = machine(**settings).set_callbacks(validation).fit(X, y)
    monkeypatch.undo()
    return made[0].kernel_evaluations, model  # the callback is set up before training


def test_kernel_values_are_computed_once(monkeypatch):
    validation = ValidationScore(X_valid, y_valid)
    computed, model = kernel_values_of(monkeypatch, validation)
    moved = sum(record.changed for record in model.history_)
    assert len(model.support_) * len(y_valid) <= computed <= len(y) * len(y_valid) < moved * len(y_valid)


def test_with_little_room_they_are_computed_again_with_the_same_result(monkeypatch):
    few, _ = kernel_values_of(monkeypatch, ValidationScore(X_valid, y_valid))
    narrow = ValidationScore(X_valid, y_valid, scoring=mean_margin)
    many, model = kernel_values_of(monkeypatch, narrow, memory_limit=100_000)
    assert many > few
    assert narrow.scores_[-1] == pytest.approx(mean_margin(model, X_valid, y_valid), rel=1e-9)


def test_threads_of_the_libraries_are_as_before_after_a_fit():
    before = [library["num_threads"] for library in threadpool_info()]
    machine().set_callbacks(ValidationScore(X_valid, y_valid)).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        machine().set_callbacks(ValidationScore(X_valid, y_valid)).fit(np.full_like(X, np.nan), y)
    assert [library["num_threads"] for library in threadpool_info()] == before


class TestEarlyStopping:
    def test_ends_when_the_score_has_stopped_to_get_better_and_keeps_the_best_model(self):
        everything = ValidationScore(X_valid, y_valid)
        machine().set_callbacks(everything).fit(X, y)
        best = int(np.argmax(everything.scores_))
        assert best + 2 < len(everything.scores_) - 1  # else there would be nothing to stop
        stopping = EarlyStopping(X_valid, y_valid, patience=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = machine().set_callbacks(stopping).fit(X, y)
        assert stopping.scores_ == everything.scores_[: len(stopping.scores_)]
        assert model.n_iter_ == stopping.best_iteration_ + 2 == model.history_[-1].iteration
        assert model.stop_reason_ == "stopped"
        assert stopping.best_score_ == max(stopping.scores_) == model.score(X_valid, y_valid)
        expected = fit_quietly(machine(max_iter=stopping.best_iteration_), X, y)
        assert np.array_equal(model.dual_coef_, expected.dual_coef_)
        assert model.intercept_ == pytest.approx(expected.intercept_)
        assert model.dual_objective_ == pytest.approx(expected.dual_objective_)

    def test_keeps_the_best_model_of_a_fit_that_converges(self):
        stopping = EarlyStopping(X_valid, y_valid, patience=1000)
        model = machine().set_callbacks(stopping).fit(X, y)
        assert model.stop_reason_ == "converged"
        assert stopping.best_iteration_ < model.n_iter_
        assert model.score(X_valid, y_valid) == stopping.best_score_ == max(stopping.scores_)

    def test_of_the_local_model(self):
        stopping = EarlyStopping(X_valid, y_valid, patience=2)
        model = machine(prediction="local", regroup=False, partition="kmeans").set_callbacks(stopping).fit(X, y)
        assert model.score(X_valid, y_valid) == stopping.best_score_

    def test_small_improvements_do_not_count_but_are_kept(self):
        series = iter([0.5, 0.55, 0.6, 0.65, 0.7, 0.75])
        stopping = EarlyStopping(X_valid, y_valid, patience=2, min_improvement=0.2, scoring=lambda *_: next(series))
        model = machine().set_callbacks(stopping).fit(X, y)
        assert stopping.scores_ == [0.5, 0.55, 0.6]
        assert (stopping.best_score_, stopping.best_iteration_, model.n_iter_) == (0.6, 3, 3)

    def test_other_callbacks_see_the_model_that_is_kept(self):
        recorder, stopping = Recorder(), EarlyStopping(X_valid, y_valid, patience=2)
        model = machine().set_callbacks(recorder, stopping).fit(X, y)
        assert np.array_equal(recorder.models[-1].predict(X), model.predict(X))

    def test_a_search_uses_one_instance_for_all_fits(self):
        from sklearn.model_selection import cross_val_score

        stopping = EarlyStopping(X_valid, y_valid, patience=1)
        scores = cross_val_score(machine().set_callbacks(stopping), X, y, cv=2)
        assert len(scores) == 2
        assert stopping.best_score_ == max(stopping.scores_)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"patience": 0}, "patience must be a whole number of iterations, at least 1; got 0"),
            ({"patience": 1.5}, "got 1.5"),
            ({"min_improvement": -0.1}, "min_improvement must be zero or positive"),
        ],
    )
    def test_settings_that_make_no_sense(self, settings, message):
        with pytest.raises(ValueError, match=message):
            EarlyStopping(X_valid, y_valid, **settings)

    def test_wrong_validation_data_is_refused_in_the_words_of_predict(self):
        with pytest.raises(ValueError, match="X has 1 features, but KernelSVC is expecting 2"):
            machine().set_callbacks(EarlyStopping(X_valid[:, :1], y_valid)).fit(X, y)

    def test_a_scorer_of_several_scores_is_refused(self):
        both = EarlyStopping(X_valid, y_valid, scoring=lambda *_: {"one": 1.0, "two": 2.0})
        with pytest.raises(TypeError, match="gives dict instead of one number"):
            machine().set_callbacks(both).fit(X, y)


def test_r2_of_several_targets_is_that_of_scikit_learn():
    validation = ValidationScore(X_valid, X_valid + 1)
    model = KernelRidge(**SETTINGS).set_callbacks(validation).fit(X, X + 1)
    assert validation.scores_[-1] == pytest.approx(r2_score(X_valid + 1, model.predict(X_valid)))


def test_float32_decisions_do_not_drift_away():
    validation = ValidationScore(X_valid, y_valid, scoring=lambda model, rows, labels: model.decision_function(rows)[0])
    model = KernelSVC(**{**SETTINGS, "tol": 1e-3}).set_callbacks(validation).fit(X.astype(np.float32), y)
    assert validation.scores_[-1] == pytest.approx(model.decision_function(X_valid)[0], abs=1e-4)
