"""Callbacks where several processes train: heard on one, obeyed by all."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from parablock.callbacks import Callback, EarlyStopping, JSONLog, TimeLimit, read_log
from parablock.engines import DaskEngine
from tests.callbacks.small_fits import Recorder, machine, moons

pytestmark = pytest.mark.slow  # starts processes

X, y = moons()


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What two ranks found."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    from tests.engines.ranks import mpi_works, results

    if not mpi_works():
        pytest.skip("no working mpiexec")
    return results(2, Path(__file__).with_name("watch_on_ranks.py"), tmp_path_factory.mktemp("logs"))


@pytest.fixture(params=["replicated", "sharded"])
def found(request, everything):
    return everything[request.param]


@pytest.fixture(scope="module")
def engine():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    settings = {"threads_per_worker": 1, "dashboard_address": None, "worker_dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        yield DaskEngine(client)


class TestRanks:
    def test_the_first_rank_writes_the_log(self, found):
        expected = {"runs": 1, "reason": "converged", "rows": 200, "processes": 2, "iterations": found["history"]}
        assert found["log"] == expected

    def test_models_and_scores_of_every_iteration_are_those_of_shorter_fits(self, found):
        assert found["models"] == pytest.approx(found["scores"])
        assert len(found["scores"]) == found["history"]

    def test_every_rank_keeps_the_best_model(self, found):
        assert found["early"]["score"] == found["best"]["score"] == max(found["scores"])
        assert found["early"]["iterations"] == found["best"]["iteration"] + 2
        assert found["early"]["reason"] == "stopped"

    def test_what_is_published_of_the_best_model_holds_for_the_rows_of_all_ranks(self, found):
        assert found["published"] == pytest.approx(found["expected"], rel=1e-6)

    def test_a_limit_of_time_ends_all_ranks(self, found):
        limit = found["limit"]
        assert (limit["reason"], limit["iterations"], len(limit["warnings"])) == ("stopped", 1, 1)
        assert "The time limit of 1e-06 s was reached after 1 outer iterations" in limit["warnings"][0]

    def test_callbacks_of_the_first_rank_count(self, found):
        assert found["first alone"] == 2
        assert found["second alone"] == "converged"

    @pytest.mark.parametrize("hook", ["setup", "on_fit_task_begin", "on_fit_task_end"])
    def test_an_error_of_a_callback_is_everyones(self, found, hook):
        assert found[hook] == f"On rank 0 of 2: no more at {hook}"


class TestDask:
    def test_callbacks_are_heard_at_the_client(self, engine, tmp_path):
        pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        recorder, path = Recorder(), tmp_path / "run.jsonl"
        rows = frames.from_pandas(pandas.DataFrame(X), npartitions=2)
        model = machine(engine=engine).set_callbacks(recorder, JSONLog(path)).fit(rows, y)
        log = read_log(path)
        assert log.history == model.history_
        assert (log.end["reason"], log.ready["processes"]) == ("converged", 2)
        assert (log.start["data"]["rows"], log.ready["data"]["rows"]) == (None, 200)  # nobody counts them before
        assert {given[:2] for given in recorder.given} == {(None, None)}
        assert recorder.heard.count(("on_fit_task_end", "iteration")) == len(model.history_)
        assert recorder.heard[-1] == ("teardown", "fit")
        assert recorder.models[:-1] == [None] * len(model.history_)  # these stay on the workers
        assert model._skl_callbacks[0] is recorder
        again = clone(model).set_params(warm_start=True).fit(X, y).fit(X, y)
        assert again.n_iter_ < model.n_iter_

    def test_a_stop_reaches_the_workers(self, engine):
        model = machine(engine=engine, C=1e4, gamma=0.05, tol=1e-10, regroup=False, n_blocks=10, max_iter=10**6)
        noise = np.random.default_rng(0).choice([-1, 1], size=len(y))
        with pytest.warns(ConvergenceWarning, match=r"The time limit of 0.5 s was reached after \d+ outer iterations"):
            model.set_callbacks(TimeLimit(0.5)).fit(X, noise)
        assert model.stop_reason_ == "stopped"
        assert model.predict(X).shape == noise.shape

    def test_an_error_of_a_callback_ends_the_fit_and_the_cluster_is_free_again(self, engine):
        with pytest.raises(OSError, match="no more at on_fit_task_end"):
            machine(engine=engine).set_callbacks(Recorder(fail_at="on_fit_task_end")).fit(X, y)
        assert machine(engine=engine).fit(X, y).stop_reason_ == "converged"

    def test_what_needs_models_is_refused(self, engine):
        with pytest.raises(ValueError, match=r"needs the model of every iteration\. On a Dask cluster it stays on the"):
            machine(engine=engine).set_callbacks(EarlyStopping(X, y)).fit(X, y)

    def test_models_are_not_to_be_had(self, engine):
        class Asks(Callback):
            def iterated(self, run):
                run.fitted()

        with pytest.raises(RuntimeError, match="where the fit runs"):
            machine(engine=engine).set_callbacks(Asks()).fit(X, y)
