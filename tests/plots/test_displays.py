"""Displays: what is drawn is what was measured, with labels and units; errors say what is missing."""

import json
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from benchmarks import scaling
from parablock.callbacks import JSONLog, LogError, ValidationScore
from parablock.plots import ConvergenceDisplay, PartitionDisplay, ScalingDisplay
from tests.callbacks.small_fits import fit_quietly, machine, moons
from tests.small_problems import rbf

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
X, y = moons()


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A model, its validation scores, and the log of its fit."""
    path = tmp_path_factory.mktemp("logs") / "run.jsonl"
    validation = ValidationScore(*moons(60, seed=1))
    model = machine().set_callbacks(JSONLog(path), validation).fit(X, y)
    model.set_callbacks()
    return model, validation.scores_, path


def points(line):
    return np.column_stack(line.get_data())


class TestConvergence:
    def test_lines_are_the_history(self, logged):
        model, _, _ = logged
        display = ConvergenceDisplay.from_estimator(model)
        assert display.axes_.shape == (2, 2)
        for column, name in enumerate(("seconds", "iteration")):
            across = [getattr(record, name) for record in model.history_]
            gaps = [record.relative_gap for record in model.history_]
            violations = [record.violation for record in model.history_]
            assert np.array_equal(points(display.lines_["gap"][column]), np.column_stack((across, gaps)))
            assert np.array_equal(points(display.lines_["violation"][column]), np.column_stack((across, violations)))
        for axes in display.axes_.ravel():
            assert axes.get_yscale() == "log"
            assert axes.get_xlabel()
            assert axes.get_ylabel()
            assert axes.get_xlim()[0] == 0
        assert "seconds" in display.axes_[0, 0].get_xlabel()
        assert "iteration" in display.axes_[0, 1].get_xlabel()
        assert display.figure_.get_suptitle().startswith(f"KernelSVC: converged after {model.n_iter_} iterations, ")
        assert "tol = 0.0001" in [text.get_text() for text in display.axes_[1, 0].texts]

    def test_objective_error_is_relative_to_the_optimum(self, logged):
        model, _, _ = logged
        optimum = 1.01 * model.history_[-1].objective
        (line, _) = ConvergenceDisplay.from_estimator(model, optimum=optimum).lines_["objective"]
        expected = [(record.objective - optimum) / abs(optimum) for record in model.history_]
        assert points(line)[:, 1] == pytest.approx(expected)
        (line, _) = ConvergenceDisplay.from_estimator(model).lines_["objective"]
        assert len(points(line)) < len(model.history_)  # the last one is the optimum then
        assert np.all(points(line)[:, 1] > 0)

    def test_a_log_draws_the_same_and_the_scores(self, logged):
        model, scores, path = logged
        display = ConvergenceDisplay.from_log(path)
        assert display.axes_.shape == (3, 2)
        assert np.array_equal(points(display.lines_["score"][1])[:, 1], scores)
        other = ConvergenceDisplay.from_estimator(model, scores=scores)
        for name, lines in other.lines_.items():
            for one, two in zip(lines, display.lines_[name], strict=True):
                assert np.array_equal(points(one), points(two))

    def test_scores_of_the_callbacks_are_found(self):
        model = machine().set_callbacks(ValidationScore(X, y)).fit(X, y)
        assert ConvergenceDisplay.from_estimator(model).axes_.shape == (3, 2)

    def test_one_column_on_given_axes(self, logged, pyplot):
        figure, axes = pyplot.subplots(2)
        display = ConvergenceDisplay.from_estimator(logged[0], x="iteration", ax=axes)
        assert display.figure_ is figure
        assert list(display.axes_[:, 0]) == list(axes)
        assert not figure.get_suptitle()

    def test_checks_are_marked(self):
        from sklearn.datasets import make_moons

        many, labels = make_moons(1500, noise=0.2, random_state=0)
        model = machine(C=10, gamma=5, n_blocks=6, partition="tree").fit(many, labels)
        display = ConvergenceDisplay.from_estimator(model, x="seconds")
        names = [text.get_text() for text in display.axes_[1, 0].get_legend().get_texts()]
        assert names == ["violation", "check of resting rows"]

    def test_a_run_that_was_killed_is_drawn_as_far_as_it_got(self, logged, tmp_path):
        lines = logged[2].read_text().splitlines()
        cut = tmp_path / "cut.jsonl"
        cut.write_text("\n".join(lines[:5]))
        display = ConvergenceDisplay.from_log(cut)
        assert display.figure_.get_suptitle().startswith("KernelSVC: still going on, or killed, after 3 iterations")
        cut.write_text("\n".join(lines[:2]))
        with pytest.raises(ValueError, match="There is no iteration to draw"):
            ConvergenceDisplay.from_log(cut)

    def test_mistakes_are_told(self, logged, pyplot, tmp_path):
        with pytest.raises(NotFittedError):
            ConvergenceDisplay.from_estimator(machine())
        with pytest.raises(ValueError, match="x must be 'both', 'seconds' or 'iteration', got 'minutes'"):
            ConvergenceDisplay.from_estimator(logged[0], x="minutes")
        with pytest.raises(ValueError, match=r"ax must be None or 4 matplotlib axes for this picture .*, got 1"):
            ConvergenceDisplay.from_estimator(logged[0], ax=pyplot.gca())
        with pytest.raises(LogError):
            ConvergenceDisplay.from_log(tmp_path / "none.jsonl")

    def test_one_iteration_is_enough(self):
        model = fit_quietly(machine(max_iter=1), X, y)
        assert "after 1 iteration," in ConvergenceDisplay.from_estimator(model).figure_.get_suptitle()


class TestPartition:
    def test_sizes_and_mass(self, logged):
        model = logged[0]
        display = PartitionDisplay.from_estimator(model)
        heights = [bar.get_height() for bar in display.axes_[0].patches]
        assert heights == sorted(model.partition_.sizes, reverse=True)
        inside, between = (bar.get_width() for bar in display.axes_[1].patches)
        assert inside == model.partition_.kernel_mass_inside
        assert inside + between == pytest.approx(1)
        assert f"4 blocks, {inside:.1%}" in display.figure_.get_suptitle()

    @pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
    def test_mass_between_blocks_equals_its_formula(self, kernel):
        weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
        data = X if kernel == "rbf" else rbf(X, gamma=3)
        model = machine(kernel=kernel).fit(data, y, sample_weight=weight)
        display = PartitionDisplay.from_estimator(model, data)
        squares = rbf(X, gamma=3)[np.ix_(weight > 0, weight > 0)] ** 2
        blocks = model.partition_.blocks
        expected = np.array([[squares[np.ix_(one, two)].sum() for two in blocks] for one in blocks])
        assert display.between == pytest.approx(expected / expected.sum(axis=1, keepdims=True))

    def test_a_sample_of_large_blocks_is_near_the_truth(self, monkeypatch):
        from parablock.plots import partition

        model = machine(partition="tree").fit(X, y)
        exact = PartitionDisplay.from_estimator(model, X).between
        monkeypatch.setattr(partition, "_SAMPLED_ROWS", 100)
        assert PartitionDisplay.from_estimator(model, X).between == pytest.approx(exact, abs=0.1)

    def test_other_data_is_refused(self, logged):
        with pytest.raises(ValueError, match="X must be the training data, which had 200 rows; got 50"):
            PartitionDisplay.from_estimator(logged[0], X[:50].tolist())


class TestScaling:
    RESULTS = {
        "optimum": -10.0,
        "results": [
            {"ranks": 1, "history": [[1.0, -5.0, 0, 0.0], [2.0, -9.0, 0, 0.0], [4.0, -10.0, 0, 0.0]]},
            {"ranks": 4, "history": [[0.5, -5.0, 9, 0.1], [1.0, -9.99, 9, 0.1]]},
        ],
    }

    def test_lines_are_error_against_work(self, tmp_path):
        (tmp_path / "scaling.json").write_text(json.dumps(self.RESULTS))
        display = ScalingDisplay.from_results(tmp_path / "scaling.json")
        one, four = display.lines_
        assert points(one) == pytest.approx(np.array([[1.0, 0.5], [2.0, 0.1]]))
        assert points(four) == pytest.approx(np.array([[2.0, 0.5], [4.0, 1e-3]]))
        assert [line.get_label() for line in display.lines_] == ["1 worker", "4 workers"]
        assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
        assert display.ax_.get_xlabel() == "seconds × workers"
        assert len({line.get_color() for line in display.lines_}) == len({line.get_marker() for line in display.lines_})

    def test_the_benchmark_draws_with_it(self, tmp_path):
        scaling.draw(self.RESULTS["results"], -10.0, tmp_path / "scaling.png")
        assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        "content", ["{}", "nonsense", '{"optimum": 1, "results": [{}]}', '{"optimum": 1, "results": 3}']
    )
    def test_other_files_are_refused(self, tmp_path, content):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(ValueError, match=r"other.json' holds no results of benchmarks.scaling"):
            ScalingDisplay.from_results(tmp_path / "other.json")


def test_every_picture_can_be_saved(logged, tmp_path):
    displays = [
        ConvergenceDisplay.from_log(logged[2]),
        PartitionDisplay.from_estimator(logged[0], X),
        ScalingDisplay.from_results(TestScaling.RESULTS),
    ]
    for number, display in enumerate(displays):
        display.figure_.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5_000


def test_without_matplotlib_the_advice_is_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"ScalingDisplay needs matplotlib: pip install 'parablock\[plot\]'"):
        ScalingDisplay.from_results(TestScaling.RESULTS)
