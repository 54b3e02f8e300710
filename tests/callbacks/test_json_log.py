"""The log of a fit: written line by line, readable whatever happens to the run, and never mistaken for another file."""

import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.model_selection import GridSearchCV

import parablock
from parablock.callbacks import EarlyStopping, JSONLog, LogError, ValidationScore, read_log
from parablock.callbacks.log_file import number_or_none
from parablock.callbacks.surroundings import plain
from parablock.monitor import relative_gap
from tests.callbacks.small_fits import Recorder, fit_quietly, machine, moons

X, y = moons()
X_valid, y_valid = moons(60, seed=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# ------------------------------------------------------------------------------------------------------------- writing


def test_a_log_tells_everything_about_a_run(path):
    model = machine().set_callbacks(JSONLog(path)).fit(X, y)
    start, ready, *iterations, end = lines(path)
    assert start["event"] == "start"
    assert start["estimator"] == "KernelSVC"
    assert start["settings"] == json.loads(json.dumps(model.get_params()))
    assert start["data"] == {"rows": 200, "features": 2}
    assert start["versions"]["parablock"] == parablock.__version__
    assert start["versions"]["numpy"] == np.__version__
    assert start["machine"]["cores"] >= 1
    assert ready["data"] == {"rows": 200, "features": 2, "type": "float64", "classes": 2}
    assert (ready["gamma"], ready["processes"]) == (3.0, 1)
    assert ready["partition"]["sizes"] == model.partition_.sizes.tolist()
    assert ready["partition"]["mass"] == model.partition_.kernel_mass_inside
    assert [line["violation"] for line in iterations] == [record.violation for record in model.history_]
    assert end["reason"] == "converged"
    assert end["certificate"] == {
        "dual_objective": model.dual_objective_,
        "duality_gap": model.duality_gap_,
        "relative_gap": relative_gap(-model.dual_objective_, model.duality_gap_),
        "violation": model.violation_,
        "tol": model.tol,
    }
    assert (end["iterations"], end["support_vectors"]) == (model.n_iter_, len(model.support_))
    assert len({line["run"] for line in lines(path)}) == 1
    elapsed = [line["elapsed"] for line in lines(path)]
    assert elapsed == sorted(elapsed)


def test_what_is_read_is_what_was_written(path):
    validation = ValidationScore(X_valid, y_valid)
    model = machine().set_callbacks(JSONLog(path), validation).fit(X, y)  # the log first: the order must not matter
    log = read_log(path)
    assert log.history == model.history_
    assert log.scores == validation.scores_
    assert log.has_scores
    assert log.tol == model.tol
    assert log.end["kept_iteration"] == model.n_iter_


def test_early_stopping_tells_which_iteration_was_kept(path):
    stopping = EarlyStopping(X_valid, y_valid, patience=2)
    machine().set_callbacks(JSONLog(path), stopping).fit(X, y)
    log = read_log(path)
    assert log.end["reason"] == "stopped"
    assert log.end["kept_iteration"] == stopping.best_iteration_ == log.end["iterations"] - 2
    then = log.history[stopping.best_iteration_ - 1]
    assert then.watched == len(y)  # so that what was said then holds for all rows
    assert log.end["certificate"]["violation"] == pytest.approx(then.violation, rel=1e-9)


def test_without_validation_there_are_no_scores(path):
    machine().set_callbacks(JSONLog(path)).fit(X, y)
    assert not read_log(path).has_scores


def test_lines_are_there_as_soon_as_iterations_end(path):
    class Reads(Recorder):
        counts = ()

        def on_fit_task_end(self, estimator, context):
            self.counts = (*self.counts, len(read_log(path).history))

    reads = Reads()
    model = machine().set_callbacks(JSONLog(path), reads).fit(X, y)
    assert reads.counts[:-1] == tuple(range(1, len(model.history_) + 1))


def test_runs_are_added_and_told_apart(path):
    log = JSONLog(path)
    machine().set_callbacks(log).fit(X, y)
    first = path.read_bytes()
    fit_quietly(machine(max_iter=1).set_callbacks(log), X, y)
    assert path.read_bytes().startswith(first)
    last = read_log(path)
    assert (last.number, last.count, len(last.history), last.end["reason"]) == (2, 2, 1, "out of iterations")
    assert read_log(path, run=0).end["reason"] == "converged"
    with pytest.raises(LogError, match=r"run=2 was asked for, and .* has 2 runs: 0 to 1"):
        read_log(path, run=2)


def test_fits_side_by_side_are_told_apart(path):
    search = GridSearchCV(machine().set_callbacks(JSONLog(path)), {"C": [1, 5, 20]}, cv=2, n_jobs=2)
    with parallel_backend("threading"):
        search.fit(X, y)
    logs = [read_log(path, run=number) for number in range(7)]
    assert logs[0].count == 7
    assert sorted(log.start["settings"]["C"] for log in logs[:6]) == [1, 1, 5, 5, 20, 20]
    for log in logs:
        assert log.end["reason"] == "converged"
        assert [record.iteration for record in log.history] == list(range(1, log.end["iterations"] + 1))


def test_a_fit_that_fails_says_so(path):
    with pytest.raises(ValueError, match="NaN"):
        machine().set_callbacks(JSONLog(path)).fit(np.full_like(X, np.nan), y)
    log = read_log(path)
    assert (log.history, log.end["reason"]) == ([], "failed")
    assert log.end["error"].startswith("ValueError: Input X contains NaN")


@pytest.mark.parametrize("wrong", [3, [1, 2, 3], [[1, 2], [3]], "text"])
def test_data_of_no_shape_fails_as_it_does_without_a_log(path, wrong):
    with pytest.raises((ValueError, TypeError)) as without:
        machine().fit(wrong, y)
    with pytest.raises(type(without.value), match=re.escape(str(without.value))):
        machine().set_callbacks(JSONLog(path)).fit(wrong, y)
    assert read_log(path).end["reason"] == "failed"


def test_an_interrupted_fit_says_so(path):
    class Impatient(Recorder):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "iteration":
                raise KeyboardInterrupt

    fit_quietly(machine().set_callbacks(JSONLog(path), Impatient()), X, y)
    assert read_log(path).end["reason"] == "interrupted"


def test_a_fit_inside_the_handling_of_an_error_is_no_failure(path):
    try:
        raise RuntimeError("something else")
    except RuntimeError:
        with pytest.raises(KeyError):
            machine().set_callbacks(JSONLog(path), Failing()).fit(X, y)
    assert read_log(path).end["error"] == "KeyError: 'mine'"


class Failing(Recorder):
    def on_fit_task_begin(self, estimator, context):
        raise KeyError("mine")


@pytest.mark.parametrize("content", [b"precious", b'{"event": "other"}\n', bytes(range(256))])
def test_another_file_is_left_as_it_is(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"exists and is no log of parablock\. It was left as it is"):
        machine().set_callbacks(JSONLog(path)).fit(X, y)
    assert path.read_bytes() == content


def test_an_empty_file_is_filled(path):
    path.touch()
    machine().set_callbacks(JSONLog(path)).fit(X, y)
    assert read_log(path).end["reason"] == "converged"


def test_a_log_goes_through_a_pipe(path):
    os.mkfifo(path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE, text=True) as reader:
        machine().set_callbacks(JSONLog(path)).fit(X, y)
        events = [json.loads(line)["event"] for line in reader.stdout]
    assert (events[0], events[-1]) == ("start", "end")


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The folder of the log .* does not exist: create it first"):
        machine().set_callbacks(JSONLog(tmp_path / "no" / "run.jsonl")).fit(X, y)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_does_not_end_a_fit(path):
    class Full(JSONLog):
        def started(self, run):
            super().started(run)
            run.memory(self).file.close()
            run.memory(self).file = open("/dev/full", "w")  # noqa: SIM115

        def ended(self, run):
            if run.ended:
                self.finished = True

    log = Full(path)
    with pytest.warns(UserWarning, match=r"Could not write the log .*No space left on device") as caught:
        model = machine().set_callbacks(log).fit(X, y)
    assert len(caught) == 1
    assert model.stop_reason_ == "converged"
    assert log.finished


def test_a_log_can_be_pickled_during_a_fit(path):
    log = JSONLog(path)

    class Pickles(Recorder):
        def on_fit_task_end(self, estimator, context):
            self.copy = pickle.loads(pickle.dumps(log))

    pickles = Pickles()
    machine().set_callbacks(log, pickles).fit(X, y)
    assert pickles.copy.path == path


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (float("inf"), None),
        (np.zeros((3, 2)), "ndarray of shape (3, 2)"),
        ({1: np.nan}, {"1": None}),
        ((1, 2.5), [1, 2.5]),
        (list(range(100)), "list of 100 values"),
        (plain, "plain"),
        ("x" * 500, "x" * 500),
        (slice(1, 2), "slice(1, 2, None)"),
    ],
)
def test_settings_become_plain(value, expected):
    assert plain(value) == expected


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from parablock.callbacks import Callback, JSONLog
from tests.callbacks.small_fits import machine, moons

class Kill(Callback):
    def iterated(self, run):
        if run.record.iteration == 3:
            os.kill(os.getpid(), signal.SIGKILL)

machine().set_callbacks(JSONLog(sys.argv[1]), Kill()).fit(*moons())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_killed_run_leaves_a_readable_log(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), *sys.path])
    assert done.returncode == -signal.SIGKILL
    log = read_log(path)
    assert [record.iteration for record in log.history] == [1, 2, 3]
    assert log.end is None


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.fixture
def written(path):
    machine().set_callbacks(JSONLog(path)).fit(X, y)
    return path


def test_a_cut_off_line_is_left_out_and_the_next_run_begins_on_a_new_one(written):
    content = written.read_bytes()
    count = len(read_log(written).history)
    written.write_bytes(content[: content.rindex(b'"event": "end"') - 20])
    cut = read_log(written)
    assert (len(cut.history), cut.end) == (count - 1, None)
    machine().set_callbacks(JSONLog(written)).fit(X, y)
    assert read_log(written).end["reason"] == "converged"
    assert (len(read_log(written, run=0).history), read_log(written).count) == (count - 1, 2)


@pytest.mark.parametrize("length", [30, 200])
def test_half_a_first_line_is_left_out_once_a_run_was_added(written, length):
    written.write_bytes(written.read_bytes()[:length])
    with pytest.raises(LogError, match=r"Line 1 .*: it is not JSON"):
        read_log(written)
    machine().set_callbacks(JSONLog(written)).fit(X, y)
    log = read_log(written)
    assert (log.end["reason"], log.count) == ("converged", 1)


def test_half_a_letter_in_a_setting_is_kept(path):
    """As of a file whose name is not UTF-8."""
    machine(checkpoint=os.fsdecode(bytes(path.parent / "run") + b"\xff")).set_callbacks(JSONLog(path)).fit(X, y)
    assert read_log(path).start["settings"]["checkpoint"].endswith("run\udcff")
    path.read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, math.nan, "1", True, None])
def test_what_is_no_finite_number_is_none(value):
    assert number_or_none(value) is None


def test_every_beginning_of_a_log_is_read_or_refused_in_words(written):
    content = written.read_bytes()
    start = content.index(b"\n")
    for length in {*range(0, len(content), 97), start - 1, start, start + 1}:
        written.write_bytes(content[:length])
        if length >= start:
            assert read_log(written).start["estimator"] == "KernelSVC"
        else:
            with pytest.raises(LogError):
                read_log(written)


def with_values(line, **values):
    return json.dumps({**json.loads(line), **values})


def changed(path, number, change):
    """Write the log with one of its lines changed."""
    every = path.read_text().splitlines()
    every[number - 1] = change(every[number - 1])
    path.write_text("\n".join(every) + "\n")


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (4, lambda line: line[:30], "Line 4 of the log .* cannot be read: it is not JSON"),
        (4, lambda line: "[1, 2]", "Line 4 .*: it is no event of a run"),
        (
            4,
            lambda line: line.replace("violation", "violence"),
            r"Line 4 .*: it lacks or misspells .* \('violation'\)",
        ),
        (4, lambda line: line.replace('"seconds": ', '"seconds": "soon", "s": '), "Line 4 .*seconds is 'soon'"),
        (4, lambda line: with_values(line, iteration=10**400), "Line 4 .*: it lacks or misspells a value"),
        (4, lambda line: with_values(line, objective=10**400), "Line 4 .*: it lacks or misspells a value"),
        (4, lambda line: with_values(line, iteration=math.inf), "Line 4 .*: it lacks or misspells a value"),
        (4, lambda line: with_values(line, iteration=-1), "Line 4 .*: .*iteration is -1"),
        (4, lambda line: line.replace('"kind"', f'"deep": {"[" * 100_000}, "kind"'), "Line 4 .*: it is not JSON"),
        (
            4,
            lambda line: line.replace('"iteration": ', f'"more": {"1" * 5000}, "iteration": '),
            "Line 4 .*: it is not J",
        ),
        (4, lambda line: line.replace('"run": "', '"run": "x'), "Line 4 .*: it lacks or misspells"),
        (1, lambda line: line.replace('"format": 1', '"format": 2'), "has log format 2; this parablock reads format 1"),
        (1, lambda line: line.replace('"settings": ', '"settings": 3, "s": '), "Line 1 .* misspells a value .settings"),
        (1, lambda line: line[:50], "Line 1 .*: it is not JSON"),
    ],
)
def test_a_damaged_log_is_refused_with_the_line(written, number, change, message):
    changed(written, number, change)
    with pytest.raises(LogError, match=message):
        read_log(written)


def test_numbers_that_are_not_finite_come_back_as_nan(written):
    changed(written, 3, lambda line: json.dumps({**json.loads(line), "duality_gap": None}))
    assert math.isnan(read_log(written).history[0].duality_gap)


def test_files_that_are_no_logs(tmp_path):
    for name, content, message in (
        ("empty", b"", "has no run in it"),
        ("binary", bytes(range(256)) * 10, "cannot be read"),
        ("text", b"hello\nworld\n", "Line 1 .* is not JSON"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(LogError, match=message):
            read_log(tmp_path / name)
    with pytest.raises(LogError, match=r"Cannot read the log .*: Is a directory"):
        read_log(tmp_path)
