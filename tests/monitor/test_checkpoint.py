"""Checkpoints: whole or not at all, refused when they do not fit, and a resumed run ends at the same optimum."""

import errno
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons

from parablock import Checkpoint, CheckpointError, KernelLogisticRegression, KernelRidge, KernelSVC
from parablock.callbacks import Callback
from parablock.monitor import checkpoint as module
from parablock.monitor.checkpoint import Snapshot, read, write
from parablock.monitor.history import Record
from tests.engines.ranks import command, environment, needs_mpi, run
from tests.privileges import locked_folder

SETTINGS = {"C": 10.0, "gamma": 5.0, "tol": 1e-4, "n_blocks": 6, "random_state": 0}
HERE = __file__.rsplit("/", 1)[0]


@pytest.fixture(scope="module")
def moons():
    return make_moons(1500, noise=0.2, random_state=0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


def stopped_early(path, X, y, iterations=3, **more):
    """A run that ended after some iterations and left a checkpoint of the last one."""
    settings = {**SETTINGS, "checkpoint": Checkpoint(path, seconds=0), "max_iter": iterations, **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelSVC(**settings).fit(X, y)


def snapshot(n=5):
    rng = np.random.default_rng(0)
    memory = {
        "schedule": {"kind": "regrouped", "iteration": 3, "most_blocks": 2},
        "random": np.random.default_rng(1).bit_generator.state,
        "lookout": {"spread": 1.5, "stage": "late", "looked": 2, "patience": 4},
        "idle": 0,
    }
    last_step = rng.normal(size=(2, n)), rng.normal(size=(2, n))
    coef, decision = rng.normal(size=(2, n)), rng.normal(size=(2, n))
    coef[:, -1] = 0.0  # of a row that is not watched
    history = [Record(i, "regrouped", 1.0, -1.0, 0.5, 0.1, 1.0, 2, 4, 3, 9, 4, 25) for i in (1, 2, 3)]
    return Snapshot(coef, decision, last_step, np.arange(n - 1), 3, history, 1.5, memory)


# ------------------------------------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize("iterations", [1, 2, 4])
@pytest.mark.parametrize("regroup", [True, False], ids=["regrouped", "fixed"])
def test_a_resumed_run_ends_at_the_same_optimum(moons, path, iterations, regroup):
    settings = {**SETTINGS, "regroup": regroup, "tol": 1e-4 if regroup else 1e-2}
    straight = KernelSVC(**settings).fit(*moons)
    early = stopped_early(path, *moons, iterations=iterations, regroup=regroup, tol=settings["tol"])
    resumed = KernelSVC(**settings, checkpoint=path, resume=True).fit(*moons)
    assert early.n_iter_ == iterations < resumed.n_iter_
    assert resumed.violation_ <= settings["tol"]
    assert resumed.dual_objective_ == pytest.approx(straight.dual_objective_, rel=1e-6 if regroup else 1e-4)
    objectives = np.array([record.objective for record in resumed.history_])
    assert np.all(np.diff(objectives) <= 1e-14 * np.abs(objectives[1:]))  # but for rounding
    turns = [record.iteration for record in resumed.history_ if record.kind != "check"]
    assert turns == list(range(1, resumed.n_iter_ + 1))
    assert resumed.kernel_evaluations_ > early.history_[-1].kernel_evaluations


def test_several_outputs_and_logistic_loss_resume(moons, path):
    X, y = moons
    y = y + 2 * (X[:, 0] > 0.5)
    settings = {"C": 5.0, "gamma": 5.0, "tol": 1e-4, "n_blocks": 6, "random_state": 0}
    with pytest.warns(UserWarning, match="max_iter"):
        KernelLogisticRegression(**settings, max_iter=2, checkpoint=Checkpoint(path, iterations=1)).fit(X, y)
    resumed = KernelLogisticRegression(**settings, checkpoint=path, resume=True).fit(X, y)
    straight = KernelLogisticRegression(**settings).fit(X, y)
    assert resumed.dual_objective_ == pytest.approx(straight.dual_objective_, rel=1e-6)


def test_a_resumed_run_goes_on_with_the_next_blocks(moons, path):
    X, y = moons
    settings = {"C": 10.0, "gamma": 5.0, "tol": 1e-3, "n_blocks": 6, "random_state": 0}
    straight = KernelRidge(**settings).fit(X, y)
    with pytest.warns(UserWarning, match="max_iter"):
        KernelRidge(**settings, max_iter=4, checkpoint=Checkpoint(path, iterations=1)).fit(X, y)
    resumed = KernelRidge(**settings, checkpoint=path, resume=True).fit(X, y)
    assert straight.n_iter_ > 6

    def steps(model, first, last, *names):
        return [[getattr(record, name) for name in names] for record in model.history_[first:last]]

    before = "kind", "blocks", "active", "step", "objective"
    assert steps(resumed, 0, 4, *before) == steps(straight, 0, 4, *before)
    # Decisions are computed anew on resuming, so from here on the last digits differ, and with them what they decide.
    assert steps(resumed, 4, 5, "kind", "blocks", "active") == steps(straight, 4, 5, "kind", "blocks", "active")
    assert resumed.stop_reason_ == straight.stop_reason_ == "converged"
    gap = max(resumed.duality_gap_, straight.duality_gap_)
    assert resumed.dual_objective_ == pytest.approx(straight.dual_objective_, abs=gap)


@pytest.mark.parametrize(("first", "second"), [(1, 6), (6, 1)])
def test_one_block_becomes_several_and_back(moons, path, first, second):
    stopped_early(path, *moons, iterations=2, n_blocks=first, tol=1e-9)
    settings = {**SETTINGS, "n_blocks": second}
    resumed = KernelSVC(**settings, checkpoint=path, resume=True).fit(*moons)
    assert resumed.violation_ <= SETTINGS["tol"]
    assert resumed.dual_objective_ == pytest.approx(KernelSVC(**settings).fit(*moons).dual_objective_, rel=1e-6)


def test_regrouped_blocks_become_the_papers(moons, path):
    stopped_early(path, *moons)
    resumed = KernelSVC(**{**SETTINGS, "regroup": False, "tol": 1e-2}, checkpoint=path, resume=True).fit(*moons)
    assert resumed.dual_objective_ == pytest.approx(KernelSVC(**SETTINGS).fit(*moons).dual_objective_, rel=1e-4)


def test_local_prediction_of_what_had_converged(moons, path):
    settings = {**SETTINGS, "regroup": False, "tol": 1e-2, "prediction": "local", "partition": "kmeans"}
    straight = KernelSVC(**settings, checkpoint=Checkpoint(path, seconds=0)).fit(*moons)
    resumed = KernelSVC(**settings, checkpoint=path, resume=True).fit(*moons)
    assert resumed.violation_ <= settings["tol"]
    assert np.mean(resumed.predict(moons[0]) == straight.predict(moons[0])) > 0.99
    warm = KernelSVC(**settings, warm_start=True).fit(*moons)
    assert np.mean(warm.fit(*moons).predict(moons[0]) == straight.predict(moons[0])) > 0.99


def test_functions_are_told_apart_by_their_values(moons, path):
    def wide(scale):
        return functools.partial(_exponential, scale=scale)

    stopped_early(path, *moons, kernel=wide(1.0))
    with pytest.raises(CheckpointError, match="another problem"):
        KernelSVC(**SETTINGS, kernel=wide(2.0), checkpoint=path, resume=True).fit(*moons)
    KernelSVC(**SETTINGS, kernel=wide(1.0), checkpoint=path, resume=True).fit(*moons)


def _exponential(X, Z, scale):
    return np.exp(-np.linalg.norm(X[:, None] - Z[None], axis=2) / scale)


def test_sigterm_at_the_very_end_is_not_lost():
    keeper = module.Keeper(None, "", np.arange(2), writes=True)
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with keeper.listening():
            signal.raise_signal(signal.SIGTERM)
            assert not heard
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_auto_starts_where_there_is_nothing_and_goes_on_where_there_is(moons, path):
    first = stopped_early(path, *moons, resume="auto")
    second = KernelSVC(**SETTINGS, checkpoint=path, resume="auto").fit(*moons)
    assert second.n_iter_ > first.n_iter_
    assert second.history_[: len(first.history_)] == first.history_


def test_how_often(moons, path, monkeypatch):
    written = []
    monkeypatch.setattr(module, "write", lambda path, snapshot, fingerprint: written.append(snapshot.iteration))
    KernelSVC(**SETTINGS, checkpoint=Checkpoint(path, seconds=1e9, iterations=3)).fit(*moons)
    assert written == list(range(3, 3 * len(written) + 1, 3))
    assert written
    written.clear()
    KernelSVC(**SETTINGS, checkpoint=Checkpoint(path, seconds=1e9)).fit(*moons)
    assert not written


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(("first", "second"), [(1, 3), (3, 1), (2, 3)])
def test_another_number_of_ranks_goes_on(moons, path, first, second):
    straight = KernelSVC(**SETTINGS).fit(*moons)
    for ranks, iterations in ((first, 3), (second, 1000)):
        done = run(ranks, f"{HERE}/fit_with_checkpoint.py", path, iterations)
        assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert int(words[-2]) > 3
    assert float(words[-1]) == pytest.approx(straight.dual_objective_, rel=1e-6)


@pytest.mark.slow
@needs_mpi
def test_rows_that_are_divided_among_another_number_of_ranks_go_on(moons, path):
    """With gamma="scale", whose last digits depend on how rows are divided."""
    straight = KernelSVC(**{**SETTINGS, "gamma": "scale"}).fit(*moons)
    for ranks, iterations in ((3, 2), (2, 4), (1, 1000)):
        done = run(ranks, f"{HERE}/fit_with_checkpoint.py", path, iterations, "sharded")
        assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert int(words[-2]) > 4
    assert float(words[-1]) == pytest.approx(straight.dual_objective_, rel=1e-6)


# ----------------------------------------------------------------------------------------------- what can go wrong


def test_it_is_never_overwritten_silently(moons, path):
    stopped_early(path, *moons)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="resume=True"):
        KernelSVC(**SETTINGS, checkpoint=path).fit(*moons)
    assert path.read_bytes() == before


@pytest.mark.parametrize("change", [{"C": 11.0}, {"gamma": 4.0}, {"loss": "squared_hinge"}, {"fit_intercept": False}])
def test_another_problems_checkpoint_is_refused(moons, path, change):
    stopped_early(path, *moons)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="another problem"):
        KernelSVC(**{**SETTINGS, **change}, checkpoint=path, resume=True).fit(*moons)
    X, y = moons
    with pytest.raises(CheckpointError, match="another problem"):
        KernelSVC(**SETTINGS, checkpoint=path, resume=True).fit(X + 1e-3, y)
    assert path.read_bytes() == before


def test_other_rows_beside_a_few_that_are_the_same_are_refused(path):
    """What a look at 256 rows did not see."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    stopped_early(path, X, y, iterations=1)
    kept = np.unique(np.linspace(0, 5999, 256).astype(int))
    other, other_y = rng.normal(size=(6000, 3)), np.where(rng.random(6000) < 0.5, 1, -1)
    other[kept], other_y[kept] = X[kept], y[kept]
    for rows, labels in ((other, y), (X, other_y)):
        with pytest.raises(CheckpointError, match="another problem"):
            KernelSVC(**SETTINGS, checkpoint=path, resume=True).fit(rows, labels)
    one = X.copy()
    one[4321, 2] = np.nextafter(one[4321, 2], 9)
    with pytest.raises(CheckpointError, match="another problem"):
        KernelSVC(**SETTINGS, checkpoint=path, resume=True).fit(one, y)
    weight = np.ones(6000)
    weight[17] = 2
    with pytest.raises(CheckpointError, match="another problem"):
        KernelSVC(**SETTINGS, checkpoint=path, resume=True).fit(X, y, weight)


def test_to_resume_from_nothing_is_an_error(moons, path):
    with pytest.raises(CheckpointError, match="No such file"):
        KernelSVC(**SETTINGS, checkpoint=path, resume=True).fit(*moons)
    with pytest.raises(ValueError, match="set checkpoint"):
        KernelSVC(**SETTINGS, resume=True).fit(*moons)


@pytest.mark.parametrize("resume", [False, True, "auto"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/run.checkpoint", "No such file or directory"),
        ("file/run.checkpoint", "Not a directory"),
        ("folder", "Is a directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error_before_the_fit(moons, tmp_path, name, message, resume):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))

    def never(X, Z):
        raise AssertionError("The fit has begun.")

    model = KernelSVC(**SETTINGS, kernel=never, checkpoint=tmp_path / name, resume=resume)
    with pytest.raises(CheckpointError, match=f"Cannot write the checkpoint .*{name}': {message}"):
        model.fit(*moons)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_may_not_be_written_to_is_an_error_before_the_fit(moons):
    def never(X, Z):
        raise AssertionError("The fit has begun.")

    with locked_folder() as folder:
        model = KernelSVC(**SETTINGS, kernel=never, checkpoint=folder / "run.checkpoint")
        with pytest.raises(CheckpointError, match=r"Cannot write the checkpoint .*run\.checkpoint': Permission denied"):
            model.fit(*moons)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(path, share):
    write(path, snapshot(1000), "mine")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=r"damaged|no parablock checkpoint"):
        read(path, "mine")


@pytest.mark.parametrize("position", [0.1, 0.5, 0.9])
def test_a_corrupted_file_is_refused(path, position):
    write(path, snapshot(1000), "mine")
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        read(path, "mine")


def test_foreign_files_and_versions_are_refused(path):
    path.write_bytes(b"not a checkpoint at all, but long enough to hold a header of one" * 10)
    with pytest.raises(CheckpointError, match="no parablock checkpoint"):
        read(path)
    write(path, snapshot(), "mine")
    content = bytearray(path.read_bytes())
    content[len(b"parablock checkpoint\n")] = 99
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="version 99"):
        read(path)


def test_what_is_written_is_read_again(path):
    there = snapshot()
    write(path, there, "mine")
    back = read(path, "mine")
    np.testing.assert_array_equal(back.coef, there.coef)
    np.testing.assert_array_equal(back.decision, there.decision)
    np.testing.assert_array_equal(back.watched, there.watched)
    assert (back.iteration, back.seconds, back.memory) == (there.iteration, there.seconds, there.memory)
    assert back.history == there.history
    order = np.random.default_rng(2).permutation(5)
    np.testing.assert_array_equal(there.put_back(order).taken(order).coef, there.coef)
    np.testing.assert_array_equal(there.put_back(order).taken(order).watched, there.watched)


SMALL_DISK = """
set -e
mount -t tmpfs -o size=128k none "$1"
"$2" "$3" "$1/run.checkpoint" 2
cp "$1/run.checkpoint" "$4"
dd if=/dev/zero of="$1/filler" bs=1k 2>/dev/null || true   # now nothing fits any more
"$2" -W always "$3" "$1/run.checkpoint" 1000 loud
cmp "$1/run.checkpoint" "$4" && echo the last checkpoint is intact
ls -A "$1"
"""


def mounting_is_allowed():
    unshare = shutil.which("unshare")
    tries = unshare and subprocess.run([unshare, "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return bool(tries) and tries.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not mounting_is_allowed(), reason="this system does not let tests mount a small file system")
def test_a_disk_that_is_really_full(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    arguments = [disk, sys.executable, f"{HERE}/fit_with_checkpoint.py", tmp_path / "copy"]
    command = ["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No space left on device. Training goes on" in done.stderr
    assert "the last checkpoint is intact" in done.stdout
    iterations, objective = done.stdout.splitlines()[1].split()
    assert int(iterations) > 2
    assert float(objective) > 0
    assert ".part" not in done.stdout


def test_a_full_disk_leaves_the_last_checkpoint_and_training_goes_on(moons, path, monkeypatch):
    stopped_early(path, *moons)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left"):
        model = KernelSVC(**SETTINGS, checkpoint=Checkpoint(path, seconds=0), resume=True).fit(*moons)
    assert model.violation_ <= SETTINGS["tol"]
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]  # nothing half-written is left


# --------------------------------------------------------------------------------------------------------- signals


def wait_for(path, process, seconds=120):
    until = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_sigterm_writes_a_checkpoint_and_leaves_without_a_traceback(path):
    process = subprocess.Popen(
        [sys.executable, f"{HERE}/fit_with_checkpoint.py", str(path), "1000", "slow"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(path, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, out + err
    assert "Traceback" not in err
    assert f"the checkpoint {path} is of iteration {read(path).iteration}" in err
    assert read(path).iteration >= 1


@pytest.mark.parametrize("written", [0, 2])
def test_sigterm_tells_of_the_checkpoint_that_there_is(moons, path, written, monkeypatch, caplog):
    """Where no more could be written."""

    class Terminate(Callback):
        def iterated(self, run):
            if run.record.iteration == 3:
                signal.raise_signal(signal.SIGTERM)

    def full(path, snapshot, *more):
        if snapshot.iteration > written:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, snapshot, *more)

    monkeypatch.setattr(module, "write", full)
    model = KernelSVC(**SETTINGS, checkpoint=Checkpoint(path, iterations=1)).set_callbacks(Terminate())
    with pytest.warns(UserWarning, match="No space left"), pytest.raises(SystemExit):
        model.fit(*moons)
    (message,) = [record.message for record in caplog.records if "Terminated" in record.message]
    assert "after iteration 3" in message
    if written:
        assert f"the checkpoint {path} is of iteration 2" in message
        assert read(path).iteration == 2
    else:
        assert "no checkpoint was written" in message
        assert str(path) not in message
        assert not path.exists()


@pytest.mark.slow
@needs_mpi
def test_ranks_that_were_killed_lose_at_most_one_interval(moons, path):
    process = subprocess.Popen(
        command(2, f"{HERE}/fit_with_checkpoint.py", path, 1000, "slow"),
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(path, process)
    listed = subprocess.run(["pgrep", "-f", str(path)], capture_output=True, text=True).stdout.split()
    ranks = [int(number) for number in listed if int(number) != process.pid and is_python(int(number))]
    os.kill(ranks[0], signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    kept = read(path).iteration
    done = run(2, f"{HERE}/fit_with_checkpoint.py", path, 1000)
    assert done.returncode == 0, done.stdout + done.stderr
    straight = KernelSVC(**SETTINGS).fit(*moons)
    assert int(done.stdout.split()[-2]) >= kept >= 1
    assert float(done.stdout.split()[-1]) == pytest.approx(straight.dual_objective_, rel=1e-6)


def is_python(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"python" in file.read().split(b"\0")[0]
    except OSError:
        return False
