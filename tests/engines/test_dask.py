"""Workers of a Dask cluster: the same solutions as one process, wherever the data comes from; deaths are survived."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parablock import CertificateError, KernelLogisticRegression, KernelRidge, KernelSVC
from parablock.engines import DaskEngine
from parablock.scaling import Scaling
from tests.engines.problems import PROBLEMS, moons, numbers, outcome

pytestmark = pytest.mark.slow  # starts processes

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

SETTINGS = {"C": 5, "gamma": 3, "tol": 1e-6, "n_blocks": 5, "random_state": 0, "n_jobs": 1}


def cluster_of(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    )


@pytest.fixture(scope="module", params=[2, 3])
def client(request):
    with cluster_of(request.param) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def fresh_client():
    """For tests that kill workers."""
    with cluster_of(3) as cluster, distributed.Client(cluster) as client:
        yield client


def assert_same(found, expected, decisions=1e-4):
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-6)
    scale = np.abs(expected["decision"]).max()
    np.testing.assert_allclose(found["decision"], expected["decision"], atol=decisions * scale)


@pytest.mark.parametrize("name", PROBLEMS)
def test_workers_find_the_same_solutions(client, name):
    make, load = PROBLEMS[name]
    X, y = load()
    model = make(engine=DaskEngine(client)).fit(X, y)
    assert_same(outcome(model, X), outcome(make().fit(X, y), X), decisions=2e-3)
    assert sum(record.bytes_sent for record in model.history_) > 0


def test_a_model_that_scales_rows_does_so_on_workers(client):
    X, y = moons()
    X = X * [1.0, 1000.0] + [5.0, 1e5]
    model = KernelSVC(**SETTINGS)
    model._scaling = Scaling.of(X)
    expected = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(da.from_array(X, chunks=(90, 2))).compute(), expected, atol=1e-9)
    model.set_params(engine=DaskEngine(client))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    model.set_params(warm_start=True, C=10).fit(X, y)  # on every worker its own rows
    peer = make_pipeline(StandardScaler(), KernelSVC(**{**SETTINGS, "C": 10})).fit(X, y)
    assert model.dual_objective_ == pytest.approx(peer[-1].dual_objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


class TestCollections:
    def test_array_in_chunks_of_any_shape(self, client):
        X, y = moons()
        model = KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(90, 1)), da.from_array(y, chunks=90))
        expected = KernelSVC(**SETTINGS).fit(X, y)
        assert_same(outcome(model, X), outcome(expected, X))
        np.testing.assert_array_equal(model.support_, expected.support_)
        np.testing.assert_allclose(model.support_vectors_, X[model.support_])

    def test_fewer_chunks_than_workers(self, client):
        X, y = moons()
        model = KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(400, 2)), y)
        assert_same(outcome(model, X), outcome(KernelSVC(**SETTINGS).fit(X, y), X))

    def test_targets_and_weights_may_be_plain_arrays(self, client):
        X, y = moons()
        weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
        model = KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(80, 2)), y, sample_weight=weight)
        assert_same(outcome(model, X), outcome(KernelSVC(**SETTINGS).fit(X, y, sample_weight=weight), X))
        assert model.certify(X, y, weight).dual_objective == pytest.approx(model.dual_objective_, rel=1e-9)
        with pytest.raises(CertificateError, match="on this machine alone"):
            model.certify(da.from_array(X, chunks=(80, 2)), y, weight)

    def test_sparse_chunks(self, client):
        X, y = PROBLEMS["csr"][1]()
        chunks = da.from_array(X.toarray(), chunks=(100, 30)).map_blocks(sp.csr_matrix)
        model = KernelSVC(**SETTINGS).fit(chunks, y)
        assert sp.issparse(model.support_vectors_)
        assert_same(outcome(model, X), outcome(KernelSVC(**SETTINGS).fit(X, y), X))

    def test_dataframe_and_its_names(self, client):
        pd = pytest.importorskip("pandas")
        dd = pytest.importorskip("dask.dataframe", reason="dask's dataframes are not installed")
        X, y = moons()
        frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
        model = KernelSVC(**SETTINGS).fit(frame, dd.from_pandas(pd.Series(y), npartitions=4))
        assert model.feature_names_in_.tolist() == ["a", "b"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(frame.compute()))

    @pytest.mark.parametrize("lengths", [(0, 400), (400, 0), (100, 0, 300)])
    def test_empty_parts(self, client, lengths):
        X, y = moons()
        chunks = da.concatenate([da.from_array(part) for part in np.split(X, np.cumsum(lengths)[:-1])])
        labels = da.concatenate([da.from_array(part) for part in np.split(y, np.cumsum(lengths)[:-1])])
        keep = da.concatenate([da.ones(length, dtype=bool, chunks=max(1, length)) for length in lengths])
        model = KernelSVC(**SETTINGS).fit(chunks[keep], labels[keep])  # of unknown lengths
        assert_same(outcome(model, X), outcome(KernelSVC(**SETTINGS).fit(X, y), X))
        np.testing.assert_array_equal(model.predict(chunks).compute(), model.predict(X))

    def test_a_later_fit_forgets_the_names(self, client):
        pd = pytest.importorskip("pandas")
        X, y = moons()
        model = KernelSVC(**SETTINGS, engine=DaskEngine(client)).fit(pd.DataFrame(X, columns=["a", "b"]), y)
        assert hasattr(model, "feature_names_in_")
        assert not hasattr(model.fit(X, y), "feature_names_in_")

    def test_parts_of_different_lengths_are_refused(self, client):
        X, y = moons()
        with pytest.raises(ValueError, match="divided alike"):
            KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=150))

    def test_another_number_of_targets_is_refused(self, client):
        X, y = moons()
        with pytest.raises(ValueError, match="X has 400 rows, but y has 399"):
            KernelSVC(engine=DaskEngine(client)).fit(X, y[1:])


class TestPredictions:
    @pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
    def test_of_a_collection_are_a_collection(self, client, method):
        X, y = moons()
        model = KernelLogisticRegression(**SETTINGS).fit(X, y)
        lazy = getattr(model, method)(da.from_array(X, chunks=(90, 1)))
        here = getattr(model, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == here.shape
        assert lazy.dtype == here.dtype
        np.testing.assert_allclose(lazy.compute(), here)

    def test_of_few_rows_and_of_lists(self, client):
        X, y = moons()
        model = KernelSVC(**SETTINGS, engine=DaskEngine(client)).fit(X.tolist(), y.tolist())
        assert model.predict(X[:1]).shape == (1,)
        np.testing.assert_array_equal(model.predict(X[:7].tolist()), model.predict(X)[:7])

    def test_of_the_same_rows_again_and_again(self, client):
        """What the last prediction leaves to be forgotten must not be what this one needs."""
        X, y = moons()
        model = KernelSVC(**SETTINGS, engine=DaskEngine(client)).fit(X, y)
        expected = model.predict(X)
        for _ in range(40):
            assert model.predict(X[:1]) == expected[:1]
            np.testing.assert_array_equal(model.predict(X), expected)

    def test_of_an_array_are_computed_by_the_workers(self, client):
        X, y = numbers()
        model = KernelRidge(C=2, engine=DaskEngine(client), random_state=0).fit(X, y)
        here = clone(model).set_params(engine="local").fit(X, y)
        predicted = model.predict(X)
        assert isinstance(predicted, np.ndarray)
        np.testing.assert_allclose(predicted, here.predict(X), atol=1e-3)


class TestFailures:
    def test_a_given_kernel_matrix_is_refused(self, client):
        with pytest.raises(ValueError, match="engine='local'"):
            KernelSVC(kernel="precomputed", engine=DaskEngine(client)).fit(np.eye(6), [0, 1] * 3)

    def test_nothing_is_left_behind(self, client):
        for _ in range(2):
            KernelSVC(**SETTINGS, engine=DaskEngine(client)).fit(*moons())
        assert len([topic for topic in client._event_handlers if topic.startswith("parablock")]) == 1
        for _ in range(50):  # the scheduler forgets tasks a little later
            if not any(client.who_has().values()):
                break
            time.sleep(0.1)
        assert not [key for key in client.who_has() if "parablock" in str(key)]

    def test_bad_data_of_one_worker_is_an_error(self, client):
        X, y = moons()
        X[399, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            KernelSVC(engine=DaskEngine(client)).fit(X, y)

    def test_a_part_that_cannot_be_computed_is_an_error(self, client):
        def broken(block):
            raise OSError("the disk is on fire")

        X, y = moons()
        with pytest.raises(OSError, match="on fire"):
            KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(100, 2)).map_blocks(broken, dtype=float), y)

    def test_no_client(self, monkeypatch):
        def none():
            raise ValueError("No clients found")

        monkeypatch.setattr(distributed, "default_client", none)
        with pytest.raises(ValueError, match="no Dask client"):
            KernelSVC().fit(da.ones((10, 2)), np.arange(10) % 2)

    def test_warnings_reach_the_client(self, client):
        X, y = moons()
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            KernelSVC(max_iter=1, **SETTINGS, engine=DaskEngine(client)).fit(X, y)

    @pytest.mark.parametrize("rows_rest", [False, True])
    def test_ctrl_c_leaves_a_usable_model(self, client, rows_rest, capfd):
        X, y = numbers(3000)
        settings = {"C": 1e6, "gamma": 0.5, "tol": 1e-12, "n_blocks": 40, "random_state": 0, "verbose": 1}
        if rows_rest:
            X, y = moons(3000)
            model = KernelSVC(**settings, engine=DaskEngine(client))
        else:
            model = KernelRidge(**settings, engine=DaskEngine(client))
        ended = threading.Event()

        def interrupt_after_the_first_iteration():
            lines = ""
            while not ended.wait(0.05):
                lines += capfd.readouterr().err
                if " regrouped " in lines:
                    os.kill(os.getpid(), signal.SIGINT)
                    return

        workers = set(client.nthreads())
        thread = threading.Thread(target=interrupt_after_the_first_iteration)
        thread.start()
        try:
            with pytest.warns(ConvergenceWarning, match="Interrupted"):
                model.fit(X, y)
        finally:
            ended.set()
            thread.join()
        assert set(client.nthreads()) == workers
        assert model.dual_objective_ > 0
        assert model.predict(X).shape == y.shape


def _die_after(calls):
    """The worker that this runs on kills itself in the middle of a later fit."""
    from parablock.engines.mailbox import MailboxTalk

    original, left = MailboxTalk._share_array, [calls]

    def counted(self, values):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, values)

    MailboxTalk._share_array = counted


class TestDeaths:
    def test_workers_that_always_die_are_given_up(self, fresh_client, monkeypatch):
        class Deadly(KernelSVC):
            def _fit_here(self, X, y, sample_weight):
                os.kill(os.getpid(), signal.SIGKILL)

        with pytest.raises(RuntimeError, match="without any progress"):
            Deadly(engine=DaskEngine(fresh_client)).fit(*moons())

    @pytest.mark.parametrize("source", ["array", "collection"])
    @pytest.mark.parametrize("calls", [3, 90], ids=["at the start", "in the middle"])
    def test_a_worker_that_is_killed_is_survived(self, fresh_client, source, calls, caplog):
        X, y = moons()
        victim = sorted(fresh_client.nthreads())[1]
        fresh_client.run(_die_after, calls, workers=[victim])
        before = set(fresh_client.nthreads())
        if source == "array":
            model = KernelSVC(engine=DaskEngine(fresh_client), **SETTINGS).fit(X, y)
        else:
            model = KernelSVC(**SETTINGS).fit(da.from_array(X, chunks=(50, 2)), da.from_array(y, chunks=50))
        assert victim in before
        assert victim not in fresh_client.nthreads()
        assert "A Dask worker was lost" in caplog.text
        assert_same(outcome(model.set_params(engine="local"), X), outcome(KernelSVC(**SETTINGS).fit(X, y), X))
        iterations = [record.iteration for record in model.history_ if record.kind != "check"]
        assert iterations == list(range(1, len(iterations) + 1))  # it went on where it was
        if calls > 3:
            assert "after iteration 0" not in caplog.text


def test_a_client_that_dies_leaves_no_worker_waiting():
    program = Path(__file__).with_name("client_that_dies.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert "the workers are free again" in done.stdout, done.stdout + done.stderr


def test_models_and_engines_travel(client):
    import pickle

    model = KernelSVC(**SETTINGS, engine=DaskEngine(client)).fit(*moons())
    again = pickle.loads(pickle.dumps(model)).set_params(engine="local")
    np.testing.assert_allclose(again.decision_function(moons()[0]), model.decision_function(moons()[0]))
