"""The paper's experiments on a few rows: their numbers, tables, figures, page and command line."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.paper import (
    comparison,
    courses,
    dcsvm,
    kdda,
    kdda_blocks,
    logistic,
    partition,
    rate,
    scaling,
    table1,
    table2,
)
from benchmarks.paper.__main__ import EXPERIMENTS, main
from benchmarks.paper.courses import Request, measure
from benchmarks.paper.kdda_like import FEATURES, PART, field_sizes, kdda_like, kdda_part
from benchmarks.paper.problems import SETS, Problem, load_problem
from benchmarks.paper.rates import Rate, best_objective, constants, run_algorithm_1
from benchmarks.paper.solvers import Place, logistic_solvers, partition_solvers, svm_solvers
from benchmarks.paper.store import FOLDER, Store
from benchmarks.paper.tracing import Course, Point, _Listener, least_objective, trace
from benchmarks.rivals import DCSVM, FirstStep, Model, Moment, Parablock, PPackSVM
from parablock import BlockSolver, KernelSVC
from parablock.datasets import load_covtype_sample
from parablock.partition import TreePartitioner
from tests.small_problems import rbf

PNG = b"\x89PNG"


@pytest.fixture
def request_for(tmp_path):
    def make(**options):
        return Request(**{"rows": 300, "folder": tmp_path, **options})

    return make


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Warm up on little, and forget what was measured before."""
    monkeypatch.setattr("benchmarks.paper.tracing.WARM_UP_ROWS", {"cpu": 100})
    monkeypatch.setattr(courses, "_measured", {})
    monkeypatch.setattr(courses, "_optima", {})


@pytest.fixture(scope="module")
def covtype():
    X, y, X_test, y_test = load_covtype_sample()
    return Problem("covtype", 4.0, 8.0, X[:400], y[:400], X_test[:300], y_test[:300])


# ----------------------------------------------------------------------------------------------------------- kdda-like


def test_kdda_like_rows_are_sparse_wide_and_repeat():
    X, y = kdda_like(12_000)
    assert X.shape == (12_000, FEATURES)
    assert X.nnz / 12_000 == pytest.approx(36, abs=0.2)
    assert X.has_canonical_format or (X.sort_indices() or X.has_canonical_format)
    assert set(np.unique(X.data)) == {1.0}
    assert 0.8 < np.mean(y > 0) < 0.92
    second, labels = kdda_part(1)
    assert (X[PART:] != second[:2_000]).nnz == 0
    assert np.array_equal(y[PART:], labels[:2_000])
    other, _ = kdda_like(100, test=True)
    assert (other != X[:100]).nnz > 0
    assert (kdda_like(100, seed=1)[0] != X[:100]).nnz > 0


def test_kdda_like_sizes_and_errors():
    assert field_sizes().sum() == FEATURES
    assert np.all(np.diff(field_sizes()) > 0)
    assert kdda_like(0)[0].shape == (0, FEATURES)
    with pytest.raises(ValueError, match="n=-1"):
        kdda_like(-1)


def test_features_in_use_are_counted_once():
    X, _ = kdda_like(50)
    X_test, _ = kdda_like(30, test=True)
    assert kdda_blocks.features_in_use(X, X_test) == len(set(X.indices) | set(X_test.indices))


def test_forecasts_grow_from_measured_fits():
    measured = [{"rows": rows, "whole": {"support": support}} for rows, support in ((1_000, 400), (4_000, 800))]
    found = kdda._forecasts(measured)
    assert found[0]["power"] == pytest.approx(0.5)
    assert found[0]["support_vectors"] == pytest.approx(800 * (8_407_752 / 4_000) ** 0.5, rel=1e-3)
    by_threads = {(one["what"], one["threads"]): sum(one["seconds"].values()) for one in found}
    assert by_threads["first step", 1] < by_threads["whole fit", 1]
    assert by_threads["whole fit", 16] < by_threads["whole fit", 1]
    assert kdda._forecasts([{"rows": 1_000}, {"rows": 2_000, "solved": []}]) == []


# ------------------------------------------------------------------------------------------------------------- tracing


def test_a_course_holds_objectives_and_accuracies(covtype):
    course = trace(DCSVM(covtype.C, covtype.gamma, levels=1, n_jobs=1), covtype)
    exact = KernelSVC(covtype.C, gamma=covtype.gamma, fit_intercept=False, random_state=0).fit(covtype.X, covtype.y)
    assert course.last.objective == pytest.approx(-exact.dual_objective_, rel=1e-4)
    assert course.last.accuracy == pytest.approx(exact.score(covtype.X_test, covtype.y_test), abs=0.01)
    optimum = least_objective(covtype, "hinge", "cpu")
    assert optimum == pytest.approx(-exact.dual_objective_, rel=1e-4)
    assert course.reached(optimum).objective <= optimum + 1e-3 * abs(optimum)
    assert course.reached(optimum - abs(optimum)) is None
    assert json.loads(json.dumps([point.__dict__ for point in course.points]))


def test_objectives_of_many_moments_are_those_of_numpy(covtype):
    moments = []
    rival = PPackSVM(covtype.C, covtype.gamma, epochs=3, moments=4, n_jobs=1)
    course = trace(rival, covtype)
    rival.fit(covtype.X, covtype.y, watch=moments.append)
    K = rbf(covtype.X.astype(float), gamma=covtype.gamma)
    for point, moment in zip(course.points, moments, strict=True):
        coef = moment.model.coef
        assert point.objective == pytest.approx(0.5 * coef @ K @ coef - np.abs(coef).sum(), rel=1e-4)


def test_the_goal_takes_the_next_known_accuracy():
    course = Course(4.0, 5.0, [Point(1.0, -9.0, 0.5), Point(2.0, -9.995, None), Point(4.0, -10.0, 0.7)])
    assert course.reached(-10.0) == Point(2.0, -9.995, 0.7)
    assert course.errors(-10.0)[0] == pytest.approx((1.0, 0.1))
    assert course.accuracies() == [(1.0, 0.5), (4.0, 0.7)]


def test_long_courses_are_looked_at_here_and_there(covtype, monkeypatch):
    monkeypatch.setattr("benchmarks.paper.tracing._MOST_MOMENTS", 4)
    options = {"partition": "random", "regroup": False, "n_blocks": 8, "max_iter": 12, "tol": 1e-9}
    course = trace(Parablock(covtype.C, covtype.gamma, n_jobs=1, options=options), covtype)
    known = [number for number, point in enumerate(course.points) if point.accuracy is not None]
    assert len(course.points) == 12
    assert known == [0, 1, 2, 11]


def test_a_rival_is_stopped_at_the_limit_and_keeps_what_it_had(covtype):
    rival = PPackSVM(covtype.C, covtype.gamma, epochs=50, moments=30, n_jobs=1)
    whole, stopped = trace(rival, covtype), trace(rival, covtype, limit=0.0)
    assert not whole.stopped
    assert stopped.stopped
    assert len(stopped.points) == 1
    assert len(whole.points) > 1
    assert stopped.points[0].objective is not None
    assert Course.of(json.loads(json.dumps(asdict(stopped)))) == stopped
    ours = Parablock(covtype.C, covtype.gamma, n_jobs=1)
    assert not trace(ours, covtype, limit=0.0).stopped  # it goes on for its own max_iter, and tells all at the end


def test_moments_near_each_other_are_not_kept():
    listener = _Listener(None)
    model = Model(lambda rows: np.zeros(rows.shape[0]), coef=np.zeros(3))
    for seconds in (1.0, 1.01, 1.02, 1.1, 1.11):
        listener(Moment(seconds, model))
    listener(Moment(1.12, model, last=True))
    assert [moment.seconds for moment in listener.moments] == [1.0, 1.1, 1.12]
    listener(Moment(1.13, replace(model, objective=-1.0)))
    assert listener.moments[-1].seconds == 1.13


# --------------------------------------------------------------------------------------------------------- experiments


@pytest.mark.parametrize("name", SETS)
def test_every_set_loads(name):
    assert set(SETS[name].sizes) == {"small", "full"}
    try:
        problem = load_problem(name, "small", 200)
    except FileNotFoundError:
        pytest.skip("the data is not here")
    assert problem.X.shape[0] == len(problem.y) == 200
    assert set(np.unique(problem.y)) <= {-1, 1}
    assert problem.X_test.shape[1] == problem.X.shape[1]


def test_few_rows_are_taken_from_everywhere():
    X, _, X_test, _ = load_covtype_sample()
    problem = load_problem("covtype", "small", 3)
    assert np.array_equal(problem.X, X[[0, (len(X) - 1) // 2, len(X) - 1]])
    assert len(problem.X_test) == min(5_000, len(X_test))


@pytest.mark.parametrize("scale", ["small", "full"])
def test_every_solver_can_be_made_for_every_place(scale, covtype):
    for device in ("cpu", "cuda"):
        place = Place(scale, device)
        for solvers in (svm_solvers(scale), logistic_solvers(scale), partition_solvers()):
            made = [solver.make(covtype, place) for solver in solvers.values()]
            assert len({repr(rival) for rival in made}) == len(made)
            assert {rival.device for rival in made if hasattr(rival, "device")} == {device}
            styles = {(solver.colour, solver.marker, solver.line) for solver in solvers.values()}
            assert len(styles) == len({solver.series or solver.label for solver in solvers.values()})


def test_table2_and_its_figures_share_fits(request_for, monkeypatch):
    monkeypatch.setattr(table2, "SETS", {"small": ("covtype",)})
    monkeypatch.setattr(comparison, "SETS", {"small": ("covtype",)})
    monkeypatch.setattr(dcsvm, "SETS", ("covtype",))
    request = request_for()
    table2.run(request)
    numbers = json.loads((request.folder / "table2.json").read_text())
    assert set(numbers["sets"]["covtype"]["courses"]) == set(svm_solvers("small"))
    assert numbers["machine"]["cores"] >= 1
    assert "numpy" in numbers["machine"]["versions"]
    page = (request.folder / "index.md").read_text()
    for solver in svm_solvers("small").values():
        assert f"| {solver.label} |" in page
    assert "Measured on" in page
    assert "Seed 0" in page

    monkeypatch.setattr(courses, "trace", lambda rival, problem, limit: pytest.fail(f"{rival} was measured again"))
    comparison.run(request)
    dcsvm.run(request)
    for name in ("comparison", "dcsvm"):
        assert (request.folder / f"{name}.png").read_bytes()[:4] == PNG
        assert f"({name}.png)" in (request.folder / "index.md").read_text()


def test_only_measures_some_and_keeps_the_others(request_for, monkeypatch):
    solvers = {key: svm_solvers("small")[key] for key in ("parablock", "casvm")}
    first = measure("table2", request_for(), ("covtype",), solvers)["covtype"]
    monkeypatch.setattr(courses, "_measured", {})
    second = measure("table2", request_for(only=["casvm"]), ("covtype",), solvers)["covtype"]
    assert first.courses["parablock"] == second.courses["parablock"]
    assert first.courses["casvm"].seconds != second.courses["casvm"].seconds
    drawn = measure("table2", request_for(draw=True), ("covtype",), solvers)["covtype"]
    assert drawn == second
    with pytest.raises(ValueError, match="--only nobody"):
        measure("table2", request_for(only=["nobody"]), ("covtype",), solvers)
    with pytest.raises(FileNotFoundError, match="no results yet"):
        measure("other", request_for(draw=True), ("covtype",), solvers)


def test_numbers_of_other_runs_are_taken_in(request_for, tmp_path):
    solvers = {key: svm_solvers("small")[key] for key in ("parablock", "casvm", "rff-100")}
    few = measure("table2", request_for(only=["parablock"], folder=tmp_path / "a"), ("covtype",), solvers)["covtype"]
    features = request_for(only=["rff-100"], folder=tmp_path / "b")
    assert np.isnan(measure("table2", features, ("covtype",), solvers)["covtype"].optimum)  # none is needed
    files = [tmp_path / name / "table2.json" for name in "ab"]
    both = measure("comparison", request_for(draw=True, take=files), ("covtype",), solvers)["covtype"]
    assert list(both.courses) == ["parablock", "rff-100"]
    assert both.optimum == few.optimum
    assert both.courses["parablock"] == few.courses["parablock"]
    taken, first = (json.loads(path.read_text()) for path in (tmp_path / "comparison.json", files[1]))
    assert taken["time"] == first["time"]
    with pytest.raises(ValueError, match="small and hinge; use one of small and logistic"):
        measure("logistic", request_for(take=files), ("covtype",), solvers, loss="logistic")
    with pytest.raises(ValueError, match="--sets kdda: table2 knows covtype"):
        measure("table2", request_for(sets=["kdda"]), ("covtype",), solvers)


def test_numbers_are_kept_where_nothing_can_be_drawn(tmp_path, monkeypatch, capsys):
    def missing():
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("benchmarks.paper.figures.pyplot", missing)
    arguments = ["dcsvm", "--rows", "200", "--sets", "covtype", "--limit", "60", "--docs", str(tmp_path)]
    assert main([*arguments, "--only", "first-step"]) == 0
    assert "draw them elsewhere" in capsys.readouterr().err
    assert "first-step" in json.loads((tmp_path / "dcsvm.json").read_text())["sets"]["covtype"]["courses"]


def test_a_set_that_is_missing_and_a_solver_that_fails_do_not_end_the_others(request_for, monkeypatch, capsys):
    def missing(rows, test_rows):
        raise FileNotFoundError("no such set: set PARABLOCK_DATA")

    def too_large(rival, problem, limit):
        if isinstance(rival, DCSVM):
            raise MemoryError("no room")
        return trace(rival, problem, limit)

    monkeypatch.setitem(SETS, "ijcnn1", SETS["ijcnn1"].__class__(**{**SETS["ijcnn1"].__dict__, "make": missing}))
    monkeypatch.setattr(courses, "trace", too_large)
    solvers = {key: svm_solvers("small")[key] for key in ("dcsvm", "casvm")}
    found = measure("table2", request_for(), ("covtype", "ijcnn1"), solvers)
    assert list(found) == ["covtype"]
    assert list(found["covtype"].courses) == ["casvm"]
    told = capsys.readouterr().err
    assert "ijcnn1 is left out" in told
    assert "MemoryError: no room" in told
    table1.run(request_for())
    assert "| ijcnn1 | missing |" in (request_for().folder / "index.md").read_text()


def test_partition_and_logistic_experiments(request_for, monkeypatch):
    monkeypatch.setattr(partition, "SETS", ("covtype",))
    monkeypatch.setattr(logistic, "SETS", {"small": ("covtype",)})
    few = {key: logistic_solvers("small")[key] for key in ("first-step", "algorithm-1", "ppack", "rff-100")}
    monkeypatch.setattr(logistic, "logistic_solvers", lambda scale: few)
    request = request_for()
    partition.run(request)
    logistic.run(request)
    page = (request.folder / "index.md").read_text()
    assert "| k-means, local |" in page
    assert "| P-packSGD |" in page
    courses_of = json.loads((request.folder / "logistic.json").read_text())["sets"]["covtype"]["courses"]
    assert courses_of["ppack"]["points"][-1]["objective"] is None  # another dual problem than that of the hinge loss
    assert courses_of["algorithm-1"]["points"][-1]["objective"] < 0
    for name in ("partition", "logistic"):
        assert (request.folder / f"{name}.png").read_bytes()[:4] == PNG


def test_scaling_draws_what_the_ranks_tell(request_for, monkeypatch):
    def pretend(ranks, rows, data, exchange, tol):
        history = [[seconds / ranks, objective, 1000 * (ranks - 1), 0.0, 5, rows, "regrouped"]
                   for seconds, objective in ((1.0, -9.0), (2.0, -9.999), (3.0, -10.0))]  # fmt: skip
        return {"ranks": ranks, "history": history, "accuracy": 0.9, "sv": 10}

    monkeypatch.setattr(scaling.scaling, "run", pretend)
    request = request_for()
    scaling.run(request)
    page = (request.folder / "index.md").read_text()
    assert "| 1 | 2.00 | 2.00 | 100% | 3 | 0.0 | 90.00 |" in page
    assert "| 2 | 1.00 | 2.00 | 100% | 3 | 0.0 | 90.00 |" in page
    assert (request.folder / "scaling.png").read_bytes()[:4] == PNG


def test_kdda_experiment_measures_and_forecasts(request_for):
    request = request_for(rows=600)
    kdda.run(request)
    stored = json.loads((request.folder / "kdda.json").read_text())
    one = stored["measured"][0]
    assert one["rows"] == 600
    assert one["whole"]["accuracy"] > 0.5
    assert {forecast["ranks"] for forecast in stored["forecasts"]} == {32}
    page = (request.folder / "index.md").read_text()
    assert "| first step | 1 |" in page
    assert "30.5 min" in page  # the paper's 1,832 s


def dual_optimum(signed_gram, C):
    found = minimize(
        lambda alpha: (0.5 * alpha @ signed_gram @ alpha - alpha.sum(), signed_gram @ alpha - 1),
        np.zeros(len(signed_gram)), jac=True, bounds=[(0, C)] * len(signed_gram), method="L-BFGS-B",
    )  # fmt: skip
    return found.x


@pytest.mark.slow
def test_kdda_at_full_scale_solves_every_block_as_if_it_were_alone(request_for, monkeypatch):
    monkeypatch.setitem(kdda.TEST_ROWS, "full", 400)
    monkeypatch.setattr(kdda_blocks, "WORKING_SET", 100)
    monkeypatch.setattr(kdda_blocks, "AT_ONCE", 4)
    request = request_for(rows=900, place=Place("full"))
    kdda.run(request)
    one = json.loads((request.folder / "kdda-full.json").read_text())["measured"][0]
    assert one["blocks"] == 9
    assert [some["blocks"] for some in one["solved"]] == [4, 4, 1]
    assert [some["rows"] for some in one["solved"]] == [400, 400, 100]
    assert sum(some["test_rows"] for some in one["solved"]) == 400
    # The same by scipy, for each block of the same tree.
    (X, y), (X_test, y_test), problem = kdda_like(900), kdda_like(400, test=True), SETS["kdda-like"]
    with FirstStep(problem.C, problem.gamma).workshop(X, y.astype(float)) as workshop:
        place = workshop.device, workshop.kernel
        parts = TreePartitioner().partition(*place, workshop.samples, 9, workshop.rng)
        nearest = parts.centres.nearest(*place, workshop.device.samples(X_test, workshop.kernel))
    right, support = 0, 0
    for number, rows in enumerate(parts.blocks):
        coef = y[rows] * dual_optimum(rbf_kernel(X[rows], gamma=problem.gamma) * np.outer(y[rows], y[rows]), problem.C)
        support += np.sum(np.abs(coef) > 1e-3 * problem.C)
        for row in np.flatnonzero(nearest == number):
            decision = rbf_kernel(X_test[row], X[rows], gamma=problem.gamma)[0] @ coef
            right += (decision > 0) == (y_test[row] > 0)
    assert sum(some["test_right"] for some in one["solved"]) == pytest.approx(right, abs=4)
    assert sum(some["support"] for some in one["solved"]) == pytest.approx(support, rel=0.03)
    page = (request.folder / "index.md").read_text()
    assert "| 9 of 9 |" in page
    assert "about" not in page


def test_kdda_at_full_scale_begins_no_block_after_the_limit(request_for, monkeypatch):
    monkeypatch.setitem(kdda.TEST_ROWS, "full", 400)
    request = request_for(rows=900, place=Place("full"), limit=1e-9)
    kdda.run(request)
    assert json.loads((request.folder / "kdda-full.json").read_text())["measured"][0]["solved"] == []


def test_kdda_tells_of_all_blocks_by_those_that_were_solved():
    solved = [
        {"blocks": 2, "rows": 120, "seconds": 3.0, "support": 40, "test_rows": 10, "test_right": 9, "test_positive": 6},
        {"blocks": 1, "rows": 80, "seconds": 1.0, "support": 20, "test_rows": 10, "test_right": 8, "test_positive": 1},
    ]
    found = {"rows": 8_407_752, "features_in_use": 77, "seconds_to_make": 2.0, "seconds_of_partition": 5.0, "blocks": 9}
    line = kdda_blocks.table([{**found, "solved": solved}]).splitlines()[-1]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == [
        "8,407,752", "77", "2.0", "5.0", "3 of 9", "200", "4.0", "30.0", "85.00", "65.00", "about 168,155", "5,260",
        "1,832",
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- rates


def test_a_straight_line_has_its_rate():
    objectives = -10 + 3 * 0.8 ** np.arange(60)
    found = Rate.of(objectives, -10.0)
    assert found.rate == pytest.approx(0.8)
    assert found.fit == pytest.approx(1.0)
    assert found.until(1e-2) == 1 + int(np.ceil(np.log(1e-2 / 0.3) / np.log(0.8)))
    assert found.until(1e-20) is None
    at_once = Rate.of(np.array([-9.0, -10.0]), -10.0)
    assert (at_once.iterations, at_once.until(1e-6)) == (1, 2)
    assert Rate.of(objectives[:5], -10.0).rate is None


def test_the_theorem_holds_with_measured_constants():
    X, y, _, _ = load_covtype_sample()
    X, y = X[:120].astype(float), np.where(y[:120] > 0, 1, -1)
    for partition_name in ("kmeans", "random"):
        found = constants(X, y, 1.0, 2.0, 4, partition_name, 60)
        assert found.worst <= found.promised < 1
        assert found.kappa > 0
        assert found.lipschitz > 0
    kernel = {"C": 1.0, "kernel": "rbf", "gamma": 2.0}
    optimum = best_objective(X, y, "hinge", kernel)
    objectives = run_algorithm_1(X, y, "hinge", kernel, 30, BlockSolver(max_updates=1), partition="random", n_blocks=4)
    assert np.all(np.diff(objectives) <= 1e-12)
    assert objectives[-1] > optimum


def test_rate_experiment(request_for, monkeypatch):
    monkeypatch.setattr(rate, "KERNELS", {"positive definite (rbf)": rate.KERNELS["positive definite (rbf)"]})
    monkeypatch.setattr(rate, "MANY", {"small": (2, 4)})
    monkeypatch.setattr(rate, "BLOCKS", 4)
    monkeypatch.setattr(rate, "ITERATIONS", dict.fromkeys(rate.ITERATIONS, 30))
    request = request_for(rows=100)
    rate.run(request)
    stored = json.loads((request.folder / "rate.json").read_text())
    assert len(stored["solvers"]) == 12
    assert {one["partition"] for one in stored["blocks"]} == {"kmeans", "tree", "random"}
    assert all(one["worst"] <= one["promised"] for many in stored["constants"].values() for one in many)
    assert (request.folder / "rate.png").read_bytes()[:4] == PNG


# --------------------------------------------------------------------------------------------------- page, command line


def test_a_page_keeps_what_people_wrote(tmp_path):
    (tmp_path / "index.md").write_text("words\n\n<!-- measured: table1 -->\n<!-- end -->\n\nmore words\n")
    store = Store("table1", "small", tmp_path)
    store.save({"sets": {}})
    store.publish("| a table |")
    store.publish("| another table |")
    page = (tmp_path / "index.md").read_text()
    assert page.startswith("words\n")
    assert page.rstrip().endswith("more words")
    assert "| another table |" in page
    assert "| a table |" not in page
    assert Store("table1", "full", tmp_path).path.name == "table1-full.json"
    assert not list(tmp_path.glob("*.part"))


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(table2, "SETS", {"small": ("covtype",)})
    arguments = ["table2", "--rows", "200", "--docs", str(tmp_path)]
    assert main([*arguments, "--only", "parablock", "casvm"]) == 0
    assert main(["table2", "--docs", str(tmp_path), "--draw"]) == 0
    assert main([*arguments, "--only", "nobody"]) == 2
    assert "knows first-step" in capsys.readouterr().err
    for wrong in (["table2", "--rows", "300"], ["table2", "--rows", "3", "--docs", "x"], ["table3"]):
        with pytest.raises(SystemExit):
            main(wrong)


def test_the_page_has_a_place_for_every_experiment():
    page = (FOLDER / "index.md").read_text()
    for name in EXPERIMENTS:
        assert f"<!-- measured: {name} -->" in page
        assert f"python -m benchmarks.paper {name}" in page


def test_sparse_rows_can_be_traced():
    X, y = kdda_like(300)
    X_test, y_test = kdda_like(200, test=True)
    assert sp.issparse(X)
    course = trace(DCSVM(4.0, 2.0**-7, levels=1, n_jobs=1), Problem("kdda-like", 4.0, 2.0**-7, X, y, X_test, y_test))
    assert course.last.accuracy > 0.7
