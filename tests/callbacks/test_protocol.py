"""scikit-learn's protocol for callbacks, with its own support (from version 1.9 on) and with ours for earlier ones."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parablock.callbacks import Callback, TimeLimit, contexts, run_of, support
from tests.callbacks.small_fits import Recorder, fit_quietly, machine, moons
from tests.small_problems import CASES

X, y = moons()
ITERATION = [("on_fit_task_begin", "iteration"), ("on_fit_task_end", "iteration")]


def sklearn_has_callbacks():
    return contexts.callback_support()[0] is not contexts.OwnSupport


needs_sklearn_callbacks = pytest.mark.skipif(not sklearn_has_callbacks(), reason="scikit-learn before 1.9")


@pytest.fixture(params=["scikit-learn", "own"])
def either_support(request, monkeypatch):
    """Tests that ask for it run with scikit-learn's contexts and with ours."""
    if request.param == "own":
        own = contexts.OwnSupport, contexts.torn_down_after
        monkeypatch.setattr(support, "callback_support", lambda: own)
    elif not sklearn_has_callbacks():
        pytest.skip("scikit-learn before 1.9")


def test_every_hook_is_called_in_order(either_support):
    recorder = Recorder()
    model = machine().set_callbacks(recorder).fit(X, y)
    assert len(model.history_) > 3
    expected = [("setup", "fit"), ("on_fit_task_begin", "fit"), *ITERATION * len(model.history_)]
    assert recorder.heard == [*expected, ("on_fit_task_end", "fit"), ("teardown", "fit")]


def test_hooks_get_the_data_as_it_was_passed(either_support):
    recorder, weight = Recorder(), np.ones(len(y))
    machine().set_callbacks(recorder).fit(X, y, sample_weight=weight)
    for given_X, given_y, metadata in recorder.given:
        assert given_X is X
        assert given_y is y
        assert metadata["sample_weight"] is weight


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_fitted_estimator_is_the_model_of_a_fit_that_ends_there(case, either_support):
    recorder = Recorder()
    settings = {"n_blocks": 3, "partition": "random"}
    final = case.model(**settings).set_callbacks(recorder).fit(case.X, case.y)
    for iteration in {1, 2, final.n_iter_}:
        expected = fit_quietly(case.model(**settings, max_iter=iteration), case.X, case.y)
        model = recorder.models[[record.iteration for record in final.history_].index(iteration)]
        assert model.n_iter_ == iteration
        assert np.array_equal(model.predict(case.X), expected.predict(case.X))
        assert model.dual_objective_ == pytest.approx(expected.dual_objective_)
    assert np.array_equal(recorder.models[-1].predict(case.X), final.predict(case.X))


def test_a_callback_ends_the_fit_in_good_order(either_support):
    model = machine().set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning, match="A callback stopped training after 2 outer iterations: the larg"):
        model.fit(X, y)
    expected = fit_quietly(machine(max_iter=2), X, y)
    assert (model.n_iter_, model.stop_reason_) == (2, "stopped")
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("hook", ["setup", "on_fit_task_begin", "on_fit_task_end", "teardown"])
def test_an_error_of_a_callback_is_raised_and_everything_is_torn_down(hook, either_support):
    failing, other = Recorder(fail_at=hook), Recorder()
    model = machine().set_callbacks(other, failing)
    with pytest.raises(OSError, match=f"no more at {hook}"):
        model.fit(X, y)
    assert other.heard[-1] == failing.heard[-1] == ("teardown", "fit")
    assert not [name for name in vars(model) if "callback" in name and name != "_skl_callbacks"]


def test_errors_of_several_callbacks_at_the_end_are_all_told(either_support):
    model = machine().set_callbacks(Recorder(fail_at="teardown"), Recorder(fail_at="teardown"))
    with pytest.raises(ExceptionGroup) as caught:
        model.fit(X, y)
    assert [str(error) for error in caught.value.exceptions] == ["no more at teardown"] * 2


def test_an_error_of_the_fit_tears_callbacks_down(either_support):
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        machine().set_callbacks(recorder).fit(np.full_like(X, np.nan), y)
    assert recorder.heard == [("setup", "fit"), ("on_fit_task_begin", "fit"), ("teardown", "fit")]


def test_callbacks_do_not_change_the_result(either_support):
    watched = machine().set_callbacks(Recorder(), TimeLimit(1000)).fit(X, y)
    alone = machine().fit(X, y)
    assert np.array_equal(watched.dual_coef_, alone.dual_coef_)
    assert watched.stop_reason_ == alone.stop_reason_ == "converged"


def test_set_callbacks_replaces_and_removes():
    first, second = Recorder(), Recorder()
    model = machine().set_callbacks(first).set_callbacks(second).fit(X, y)
    assert not first.heard
    count = len(second.heard)
    model.set_callbacks().fit(X, y)
    assert len(second.heard) == count > 0


class HasNoTeardown:
    setup = on_fit_task_begin = on_fit_task_end = print


@pytest.mark.parametrize(
    ("callback", "message"),
    [(Recorder, "got the class Recorder, of which an instance"), (HasNoTeardown(), "has no teardown"), (3, "got 3")],
)
def test_what_is_no_callback_is_refused(callback, message):
    with pytest.raises(TypeError, match=message):
        machine().set_callbacks(callback)


def test_clones_share_callbacks_and_pickles_keep_them():
    recorder = Recorder()
    model = machine().set_callbacks(recorder, TimeLimit(100))
    clone(model).fit(X, y)
    assert recorder.heard[-1] == ("teardown", "fit")
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert again._skl_callbacks[1].seconds == 100
    assert np.array_equal(again.predict(X), model.predict(X))


def test_a_model_of_an_iteration_can_be_pickled_while_the_fit_goes_on(either_support):
    class Pickles(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            model = clone(fitted_estimator).set_callbacks()
            vars(model).update(support_=fitted_estimator.support_)
            self.copies = [*getattr(self, "copies", []), pickle.loads(pickle.dumps(model))]
            assert not hasattr(fitted_estimator, "_callback_watch")

    callback = Pickles()
    model = machine().set_callbacks(callback).fit(X, y)
    assert np.array_equal(callback.copies[-1].support_, model.support_)


def test_ctrl_c_in_a_callback_leaves_a_model(either_support):
    class Impatient(Callback):
        def iterated(self, run):
            if run.record.iteration == 2:
                raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted after 2 outer iterations"):
        model = machine().set_callbacks(Impatient()).fit(X, y)
    assert np.array_equal(model.predict(X), fit_quietly(machine(max_iter=2), X, y).predict(X))


def test_resting_rows_are_part_of_the_models_of_iterations():
    """The first iterations watch some of the rows only; the numbering of the coefficients must not suffer."""
    many, labels = make_moons(1500, noise=0.2, random_state=0)
    recorder = Recorder()
    model = machine(C=10, gamma=5, n_blocks=6, partition="tree").set_callbacks(recorder).fit(many, labels)
    assert model.history_[0].watched < len(labels)
    for record, one in zip(model.history_, recorder.models, strict=False):
        assert np.array_equal(one.support_vectors_, many[one.support_])
        inner = one.decision_function(many)[one.support_] - one.intercept_
        value = np.abs(one.dual_coef_).sum() - 0.5 * one.dual_coef_[0] @ inner
        assert value == pytest.approx(-record.objective, rel=1e-6)


class TestInsideOtherEstimators:
    def test_a_pipeline_and_a_search_fit_with_callbacks(self):
        recorder = Recorder()
        pipeline = make_pipeline(StandardScaler(), machine().set_callbacks(recorder))
        pipeline.fit(X, y)
        assert recorder.heard[-1] == ("teardown", "fit")
        search = GridSearchCV(pipeline, {"kernelsvc__C": [1, 5]}, cv=2).fit(X, y)
        assert recorder.heard.count(("teardown", "fit")) == 1 + 2 * 2 + 1
        assert search.best_estimator_.predict(X).shape == y.shape

    @needs_sklearn_callbacks
    def test_one_of_ours_says_where_it_belongs(self):
        pipeline = make_pipeline(StandardScaler(), machine()).set_callbacks(TimeLimit(10))
        with pytest.raises(TypeError, match=r"Pipeline is not being fitted with callbacks\. Set a callback of"):
            pipeline.fit(X, y)

    def test_run_of_something_else(self):
        with pytest.raises(TypeError, match="KernelSVC is not being fitted"):
            run_of(machine())


@needs_sklearn_callbacks
class TestCallbacksOfScikitLearn:
    def test_scoring_monitor(self):
        from sklearn.callback import ScoringMonitor

        monitor = ScoringMonitor(scoring="accuracy")
        model = machine().set_callbacks(monitor).fit(X, y)
        scores = {row["task_id_path"]: row["accuracy"] for row in monitor.get_logs().data}
        assert scores[(0,)] == model.score(X, y)
        assert len(scores) == 1 + len(model.history_)
        for number, record in enumerate(model.history_[:3]):
            expected = fit_quietly(machine(max_iter=record.iteration), X, y).score(X, y)
            assert scores[(0, number)] == pytest.approx(expected)

    def test_scoring_monitor_weighs_rows(self):
        from sklearn.callback import ScoringMonitor

        monitor, weight = ScoringMonitor(scoring="accuracy"), np.linspace(0.1, 2, len(y))
        model = machine(C=0.1).set_callbacks(monitor).fit(X, y, sample_weight=weight)
        assert monitor.get_logs().data[0]["accuracy"] == pytest.approx(model.score(X, y, sample_weight=weight))

    def test_progress_bar_alone_and_of_a_search(self, capsys):
        from sklearn.callback import ProgressBar

        machine().set_callbacks(ProgressBar()).fit(X, y)
        assert "KernelSVC - fit" in capsys.readouterr().out
        search = GridSearchCV(machine(), {"C": [1, 5]}, cv=2).set_callbacks(ProgressBar())
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "does not support callbacks" would be one
            search.fit(X, y)
        assert "KernelSVC - fit" in capsys.readouterr().out
