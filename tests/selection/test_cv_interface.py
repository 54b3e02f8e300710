"""What a user does with the estimators that choose C and gamma, right and wrong."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from parablock import KernelLogisticRegressionCV, KernelSVC, KernelSVCCV, KernelSVRCV
from parablock.engines.local import LocalCrew
from parablock.selection.grids import c_values, gamma_values

FAST = {"n_jobs": 1, "random_state": 0}
SMALL = {"Cs": [1, 10], "gammas": [0.1, 1], "cv": 3, **FAST}


# One of the checks has enormous weights, with which a logistic regression takes long.
QUICK = {**SMALL, "Cs": [1.0], "gammas": [1.0], "cv": 2}


@parametrize_with_checks([KernelSVCCV(**SMALL), KernelLogisticRegressionCV(**QUICK), KernelSVRCV(**SMALL)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


# ------------------------------------------------------------------------------------------------------------ grids


def test_a_number_of_values_is_a_grid_of_powers_of_four(moons):
    model = KernelSVCCV(3, 4, refit=False, **FAST).fit(*moons)
    scale = 1 / (2 * moons[0].var())
    assert sorted(set(model.cv_results_["param_C"])) == [0.25, 1.0, 4.0]
    found = sorted(set(model.cv_results_["param_gamma"]))
    assert found == pytest.approx(scale * np.array([0.25, 1.0, 4.0, 16.0]))


def test_gammas_by_name(moons):
    X, y = moons
    model = KernelSVCCV([1.0], ["scale", "auto", 3], **FAST).fit(X, y)
    assert model.cv_results_["param_gamma"].tolist() == pytest.approx([1 / (2 * X.var()), 0.5, 3.0])
    one = KernelSVCCV([1.0], "scale", **FAST).fit(X, y)
    expected = KernelSVC(C=1.0, **FAST).fit(X, y).decision_function(X)
    assert one.decision_function(X) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("cv", [[], iter(())])
def test_no_folds_are_refused(moons, cv):
    with pytest.raises(ValueError, match="cv must give at least one fold to train and test on"):
        KernelSVCCV(**{**SMALL, "cv": cv}).fit(*moons)


@pytest.mark.parametrize("fold", [([0, 1, 10**6], [1]), ([0.5], [1]), ("abc", "d")])
def test_folds_that_are_no_rows_are_refused(moons, fold):
    with pytest.raises(ValueError, match="cv must give pairs of arrays of row numbers, from 0 to "):
        KernelSVCCV(**{**SMALL, "cv": [fold]}).fit(*moons)


@pytest.mark.parametrize("count", [0, -1, 201, 10**9, True])
def test_a_number_of_values_that_makes_no_sense_is_refused(moons, count):
    match = f"Cs must be how many values to try, from 1 to 200, .*; got {count}"
    with pytest.raises(ValueError, match=match):
        KernelSVC.path(*moons, Cs=count)
    with pytest.raises(ValueError, match=match.replace("Cs", "gammas")):
        gamma_values(count, 1.0, 1.0)


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [0.0], [np.nan], [np.inf], [10**400], [[1.0]], ["much"]], ids=str)
def test_values_that_are_none_are_refused(values):
    with pytest.raises(ValueError, match="list of positive finite numbers; got"):
        c_values(values)
    with pytest.raises(ValueError, match="gammas must be how many values"):
        gamma_values(values, 1.0, 1.0)


@pytest.mark.parametrize(
    "parameters", [{"Cs": 0}, {"gammas": "wide"}, {"cv": "ten"}, {"scoring": "beauty"}, {"tol": 0}]
)
def test_wrong_parameters_are_refused(moons, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        KernelSVCCV(**parameters).fit(*moons)


# ---------------------------------------------------------------------------------------------- scores and choice


def test_several_scores_and_the_one_to_choose_by(moons):
    scoring = {"right": "accuracy", "area": "roc_auc"}
    model = KernelSVCCV([0.1, 10], [0.1, 10], scoring=scoring, refit="area", **FAST).fit(*moons)
    assert model.multimetric_
    best = model.cv_results_["mean_test_area"].argmax()
    assert (model.best_index_, model.best_score_) == (best, model.cv_results_["mean_test_area"][best])
    assert {"mean_test_right", "rank_test_right", "split4_test_area"} <= set(model.cv_results_)
    assert 0.9 < model.score(*moons) <= 1


def test_several_scores_without_a_choice_are_refused_before_anything_is_trained(moons, monkeypatch):
    with pytest.raises(ValueError, match=r"several scores \(right, wrong\) refit must be .*got True"):
        KernelSVCCV(**SMALL, scoring=lambda estimator, X, y: {"right": 1.0, "wrong": 0.0}).fit(*moons)
    monkeypatch.setattr(LocalCrew, "solve", None)
    with pytest.raises(ValueError, match=r"several scores \(accuracy, roc_auc\) refit must be .*got True"):
        KernelSVCCV(**SMALL, scoring=["accuracy", "roc_auc"]).fit(*moons)


def test_several_scores_and_no_refit(moons):
    model = KernelSVCCV(**SMALL, scoring=["accuracy", "roc_auc"], refit=False).fit(*moons)
    assert not hasattr(model, "best_params_")


def test_a_function_chooses(moons):
    model = KernelSVCCV(**SMALL, refit=lambda results: len(results["params"]) - 1).fit(*moons)
    assert model.best_params_ == {"C": 10.0, "gamma": 1.0}
    assert model.best_estimator_.C == 10


def test_a_function_that_chooses_among_several_scores_leaves_no_score_of_its_own(moons):
    model = KernelSVCCV(**SMALL, scoring=["accuracy", "roc_auc"], refit=lambda results: 0).fit(*moons)
    assert model.best_params_ == {"C": 1.0, "gamma": 0.1}
    with pytest.raises(ValueError, match=r"several scores \(accuracy, roc_auc\) and refit names none"):
        model.score(*moons)


def test_a_scorer_sees_the_parameters(moons):
    def seen(estimator, X, y):
        return estimator.C + estimator.gamma / 10

    model = KernelSVCCV(**SMALL, scoring=seen).fit(*moons)
    assert model.cv_results_["mean_test_score"] == pytest.approx([1.01, 1.1, 10.01, 10.1])


def test_a_second_fit_leaves_nothing_of_the_first(moons):
    model = KernelSVCCV(**SMALL).fit(*moons).set_params(refit=False, scoring=["accuracy", "roc_auc"]).fit(*moons)
    assert not {"best_estimator_", "best_params_", "best_score_", "refit_time_"} & set(vars(model))


def test_without_refit_there_is_a_choice_but_no_model(moons):
    model = KernelSVCCV(**SMALL, refit=False).fit(*moons)
    assert set(model.best_params_) == {"C", "gamma"}
    with pytest.raises(NotFittedError, match=r"refit=False and has no model.*fit KernelSVC with"):
        model.predict(moons[0])


def test_before_fit_there_is_nothing(moons):
    with pytest.raises(NotFittedError):
        KernelSVCCV().predict(moons[0])


def test_the_best_model_is_the_machine_with_the_best_parameters(moons):
    model = KernelSVCCV(**SMALL, fit_intercept=False, loss="squared_hinge").fit(*moons)
    alone = KernelSVC(**model.best_params_, **FAST, fit_intercept=False, loss="squared_hinge").fit(*moons)
    assert np.array_equal(model.best_estimator_.dual_coef_, alone.dual_coef_)
    assert np.array_equal(model.predict(moons[0]), alone.predict(moons[0]))


def test_scores_that_are_not_numbers_come_last(moons):
    def moody(estimator, X, y):
        certain = np.abs(estimator.decision_function(X)).max() > 2
        return np.nan if certain else float(np.mean(estimator.predict(X) == y))

    model = KernelSVCCV([0.01, 1, 100], [0.01, 1], scoring=moody, **FAST).fit(*moons)
    means, rank = model.cv_results_["mean_test_score"], model.cv_results_["rank_test_score"]
    assert 0 < np.isnan(means).sum() < 6
    assert model.best_score_ == np.nanmax(means)
    assert rank[np.isnan(means)].min() > rank[~np.isnan(means)].max()


# -------------------------------------------------------------------------------------------------- as one works


def test_in_a_pipeline_and_inside_another_cross_validation(moons):
    model = make_pipeline(StandardScaler(), KernelSVCCV(**SMALL))
    assert cross_val_score(model, *moons, cv=3).mean() > 0.8


def test_dataframes_keep_their_names(moons):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(moons[0], columns=["across", "up"])
    model = KernelSVCCV(**SMALL).fit(X, moons[1])
    assert model.feature_names_in_.tolist() == ["across", "up"]
    model.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["up", "across"]])


def test_clone_and_pickle(moons):
    model = KernelSVCCV(**SMALL).fit(*moons)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(moons[0]), model.predict(moons[0]))
    assert not hasattr(clone(model), "cv_results_")


def test_a_seed_repeats_everything(moons):
    first, second = (KernelSVCCV(**{**SMALL, "n_blocks": 4}, scoring="roc_auc").fit(*moons) for _ in range(2))
    assert np.array_equal(first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"])
    assert np.array_equal(first.decision_function(moons[0]), second.decision_function(moons[0]))


def test_verbose_writes_a_line_for_every_candidate(moons, capsys):
    KernelSVCCV(**SMALL, verbose=1, refit=False).fit(*moons)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[parablock] C=1, gamma=0.1: ")


def test_float32_rows_stay_float32(moons):
    model = KernelSVCCV(**SMALL).fit(moons[0].astype(np.float32), moons[1])
    assert model.best_estimator_.support_vectors_.dtype == np.float32


# ------------------------------------------------------------------------------------------------- what goes wrong


def test_what_does_not_converge_is_told_once(moons):
    model = KernelSVCCV([1, 1000], [0.1, 1], n_blocks=4, tol=1e-8, max_iter=2, refit=False, **FAST)
    with pytest.warns(ConvergenceWarning, match=r"of 4 candidates did not converge .*C=1000, gamma=1") as told:
        model.fit(*moons)
    assert len(told) == 1
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_an_interrupt_ends_the_search(moons, monkeypatch):
    calls = []

    def interrupted(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    original = LocalCrew.solve
    monkeypatch.setattr(LocalCrew, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        KernelSVCCV([1, 10], [0.1, 1], n_blocks=4, **FAST).fit(*moons)
    assert len(calls) == 3


def test_a_fold_of_one_class_is_refused_with_advice(moons):
    X, y = moons
    cv = [(np.flatnonzero(y == 1), np.flatnonzero(y == 0))]
    with pytest.raises(ValueError, match=r"Fold 0 cannot be trained on.*2 classes.*StratifiedKFold"):
        KernelSVCCV(**{**SMALL, "cv": cv}).fit(X, y)


def test_an_empty_fold_is_refused(moons):
    with pytest.raises(ValueError, match="Fold 1 has 0 rows to test on"):
        KernelSVCCV(**{**SMALL, "cv": [(np.arange(90), np.arange(90, 120)), (np.arange(90), [])]}).fit(*moons)
    weight = np.where(np.arange(120) < 60, 0.0, 1.0)
    cv = [(np.arange(60), np.arange(60, 120))]
    with pytest.raises(ValueError, match="Fold 0 has 60 rows to test on and 0 of positive weight"):
        KernelSVCCV(**{**SMALL, "cv": cv}).fit(*moons, sample_weight=weight)


def test_more_folds_than_rows_of_a_class_is_scikit_learns_error():
    with pytest.raises(ValueError, match="n_splits=5 cannot be greater than the number of members in each class"):
        KernelSVCCV(**{**SMALL, "cv": 5}).fit(np.arange(8.0)[:, None], [0, 0, 0, 0, 1, 1, 1, 1])
