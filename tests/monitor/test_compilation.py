"""The first fit on a machine says that it compiles; later ones need not. Compilation is a phase of its own."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from numba import njit

from parablock import KernelSVC
from parablock.callbacks import JSONLog, read_log
from parablock.models import load, save
from parablock.monitor import Stopwatch
from parablock.report import write_report
from parablock.report.figures import phases

FIT = """
import numpy as np
from parablock import KernelSVC
X = np.random.default_rng(0).normal(size=(60, 2))
model = KernelSVC(verbose=1).fit(X, X[:, 0] > 0)
(record,) = model.history_
print(record.seconds_compiling, record.seconds)
"""


@pytest.mark.slow
def test_compilation_is_announced_once_and_only_when_it_happens(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first, second = (subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stderr.count("Compiling") == 1
    assert "'parablock warm-up' compiles all of it" in first.stderr
    assert "[parablock] compiled for" in first.stderr
    compiling, seconds = map(float, first.stdout.split())
    assert compiling > seconds  # 60 rows are one small block
    assert "ompil" not in second.stderr
    assert second.stdout.startswith("0.0 ")


class CompilesOnCall:
    """A kernel function that compiles something of its own at its last calls; Numba has never seen it before."""

    def __init__(self, at):
        self.calls, self.at, self.took = 0, at, 0.0

    def __call__(self, X, Z):
        self.calls += 1
        if self.calls == self.at:
            started = time.perf_counter()
            njit(lambda x: x + 1.0)(1.0)
            self.took = time.perf_counter() - started
        return np.exp(-3.0 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def problem():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return X, X[:, 0] * X[:, 1] > 0


SETTINGS = {"C": 5, "tol": 1e-4, "n_blocks": 4, "random_state": 0, "n_jobs": 1}


def test_seconds_of_compilation_are_not_those_of_training(tmp_path, capsys):
    X, y = problem()
    KernelSVC(kernel=CompilesOnCall(0), **SETTINGS).fit(X, y)  # compiles everything else, where that is needed
    counts = CompilesOnCall(0)
    KernelSVC(kernel=counts, **SETTINGS).fit(X, y)
    kernel, log = CompilesOnCall(counts.calls // 2), JSONLog(tmp_path / "run.jsonl")
    started = time.perf_counter()
    model = KernelSVC(kernel=kernel, verbose=1, **SETTINGS).set_callbacks(log).fit(X, y)
    took = time.perf_counter() - started
    compiling = [record.seconds_compiling for record in model.history_]
    assert 0 < sum(compiling) <= kernel.took
    assert np.count_nonzero(compiling) == 1
    assert model.history_[-1].seconds + sum(compiling) <= took
    assert capsys.readouterr().err.count("[parablock] compiled for") == 1
    spent = dict(phases(read_log(log.path)))
    assert spent["compiling"] == pytest.approx(sum(compiling))
    assert sum(spent.values()) == pytest.approx(read_log(log.path).end["elapsed"])
    write_report(log.path, tmp_path / "report.html")
    assert '<th scope="row">' in (page := (tmp_path / "report.html").read_text())
    assert "compiling</th>" in page


def test_without_compilation_a_log_and_a_model_say_nothing_of_it(tmp_path):
    X, y = problem()
    for _ in range(2):
        log = JSONLog(tmp_path / "run.jsonl")
        model = KernelSVC(gamma=3, **SETTINGS).set_callbacks(log).fit(X, y)
    assert "compiling" not in dict(phases(read_log(log.path)))
    save(model, tmp_path / "model.pbk")
    assert b"seconds_compiling" not in (tmp_path / "model.pbk").read_bytes()
    assert load(tmp_path / "model.pbk").history_ == model.history_


def test_a_model_file_keeps_the_time_of_compilation(tmp_path):
    X, y = problem()
    model = KernelSVC(gamma=3, **SETTINGS).fit(X, y)
    model.history_[0] = replace(model.history_[0], seconds_compiling=1.5)
    save(model, tmp_path / "model.pbk")
    assert load(tmp_path / "model.pbk").history_ == model.history_


def test_a_stopwatch_stands_still_while_anything_is_compiled():
    started, watch = time.perf_counter(), Stopwatch()
    njit(lambda x: x - 1.0)(1.0)
    compiling, seconds = watch.seconds_compiling(), watch.seconds()
    assert compiling > 0
    assert 0 <= seconds <= time.perf_counter() - started - compiling
    assert watch.seconds_compiling() == 0.0
    watch.go_on_from(100.0)
    assert watch.seconds() >= 100.0
