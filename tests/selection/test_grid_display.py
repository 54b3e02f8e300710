"""The picture of the grid."""

import builtins

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from parablock import KernelSVCCV
from parablock.selection import GridDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
FAST = {"n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def model(moons):
    return KernelSVCCV([4, 0.5], [0.1, 10, 1], **FAST).fit(*moons)


@pytest.fixture(autouse=True)
def closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_a_heat_map_shows_every_score_and_marks_the_best(model):
    display = GridDisplay.from_estimator(model)
    assert display.scores.shape == (3, 2)
    for params, mean, std in zip(
        *(model.cv_results_[name] for name in ("params", "mean_test_score", "std_test_score"))
    ):
        place = np.searchsorted([0.1, 1, 10], params["gamma"]), np.searchsorted([0.5, 4], params["C"])
        assert (display.scores[place], display.spreads[place]) == (mean, std)
    ax = display.ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.5", "4"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0.1", "1", "10"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")
    assert [text.get_text() for text in ax.texts] == [f"{score:.3f}" for score in display.scores.ravel()]
    (frame,) = ax.patches
    best = model.best_params_
    assert frame.get_center().tolist() == [list(display.Cs).index(best["C"]), list(display.gammas).index(best["gamma"])]
    display.figure_.canvas.draw()


def test_it_draws_where_it_is_told_to(model):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    display = GridDisplay.from_estimator(model, ax=axes[1], cmap="magma", format=".1%")
    assert display.figure_ is figure
    assert display.ax_ is axes[1]
    assert display.image_.cmap.name == "magma"
    assert axes[1].texts[0].get_text().endswith("%")


@pytest.mark.parametrize("options", [{"gammas": [1.0]}, {"kernel": "linear"}])
def test_one_gamma_or_none_is_a_curve_over_C(moons, options):
    model = KernelSVCCV([4, 0.5, 1], **options, **FAST).fit(*moons)
    display = GridDisplay.from_estimator(model)
    assert display.image_ is None
    assert display.gammas is None
    assert display.ax_.get_xscale() == "log"
    best = display.ax_.get_lines()[-1]
    assert best.get_xdata()[0] == model.best_params_["C"]
    assert best.get_ydata()[0] == model.best_score_


def test_one_of_several_scores(moons):
    model = KernelSVCCV([1, 4], [0.1, 1], scoring=["accuracy", "roc_auc"], refit="roc_auc", **FAST).fit(*moons)
    assert GridDisplay.from_estimator(model).name == "roc_auc"
    chosen = GridDisplay.from_estimator(model, score="accuracy")
    assert chosen.scores.T.ravel() == pytest.approx(model.cv_results_["mean_test_accuracy"])
    with pytest.raises(ValueError, match="no score 'f1'; there are accuracy, roc_auc"):
        GridDisplay.from_estimator(model, score="f1")


def test_a_grid_of_scikit_learn_can_be_drawn_if_it_is_over_C_and_gamma(moons):
    search = GridSearchCV(SVC(), {"C": [1, 4], "gamma": [0.1, 1]}).fit(*moons)
    assert GridDisplay.from_estimator(search).scores.T.ravel() == pytest.approx(search.cv_results_["mean_test_score"])
    other = GridSearchCV(SVC(), {"C": [1, 4], "shrinking": [True, False]}).fit(*moons)
    with pytest.raises(ValueError, match="this one is over C, shrinking"):
        GridDisplay.from_estimator(other)
    named = GridSearchCV(SVC(), {"C": [1, 4], "gamma": ["scale", 1.0]}).fit(*moons)
    with pytest.raises(ValueError, match="Only numbers have a place on an axis"):
        GridDisplay.from_estimator(named)


def test_scores_that_are_not_numbers_leave_gaps(moons):
    def some_fail(estimator, X, y):
        return np.nan if np.abs(estimator.decision_function(X)).max() > 2 else 0.5

    model = KernelSVCCV([0.01, 100], [0.01, 1], scoring=some_fail, **FAST).fit(*moons)
    display = GridDisplay.from_estimator(model)
    assert 0 < np.isnan(display.scores).sum() < 4
    assert not np.isnan(display.scores[display.best])
    display.figure_.canvas.draw()
    none = KernelSVCCV([1, 2], [1, 2], scoring=lambda estimator, X, y: np.nan, **FAST).fit(*moons)
    assert not GridDisplay.from_estimator(none).ax_.patches


def test_what_is_not_fitted_cannot_be_drawn():
    with pytest.raises(NotFittedError):
        GridDisplay.from_estimator(KernelSVCCV())


def test_without_matplotlib_it_says_what_to_install(model, monkeypatch):
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'parablock\[plot\]'"):
        GridDisplay.from_estimator(model)
