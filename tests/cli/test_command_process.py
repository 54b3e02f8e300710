"""The command as a process: pipes, signals, ranks, and the program that pip installs."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import parablock as library
from parablock import cli
from parablock.solver.pbm import _Run
from tests.cli.processes import command, environment
from tests.engines.ranks import MPIEXEC, needs_mpi

pytestmark = pytest.mark.slow  # starts processes


def started(folder, *arguments):
    return subprocess.Popen(
        command(*arguments), env=environment(), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def after_iteration(process, number):
    """Reads standard error until so many iterations are done."""
    for line in process.stderr:
        if re.match(rf"\[parablock\] +{number} ", line):
            return
    raise AssertionError(f"the process ended: {process.communicate()}")


def test_a_pipeline(tmp_path, files, model_file):
    """zcat | predict - | head, with a reader that goes away early."""
    many = files.test.read_text() * 300  # 60,000 lines: more than a pipe holds
    (tmp_path / "many.svm").write_text(many)
    predict = " ".join(command("predict", model_file, "-"))
    line = f"set -o pipefail; gzip -c many.svm | {predict} -q | head -n 3"
    done = subprocess.run(["bash", "-c", line], env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(label) for label in library.load(model_file).predict(first_rows(files.test, 3))]
    assert done.stderr == ""
    assert done.returncode == 141  # as of any program whose reader has gone


def first_rows(path, count):
    from parablock.datasets import read_svmlight

    return read_svmlight(path, n_features=54)[0][:count]


def test_the_program_that_pip_installs(tmp_path):
    program = Path(sys.executable).with_name("parablock")
    if not program.exists():
        pytest.skip("the package is not installed beside Python")
    done = subprocess.run([program, "--version"], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"parablock {library.__version__}\n", "")


def test_errors_reach_the_shell(shell):
    done = shell("train", "nosuch.svm")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "parablock: error: nosuch.svm: No such file or directory\n"


def test_ctrl_c_writes_the_model_and_says_so(tmp_path, hard):
    process = started(tmp_path, "train", *hard, "-o", "model.pbk", "--verbose")
    after_iteration(process, 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    assert re.search(r"^parablock: warning: interrupted after \d+ iterations, .*the model is usable", err, re.MULTILINE)
    assert re.search(r"^wrote model.pbk \(", err, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pbk"]
    model = library.load(tmp_path / "model.pbk")
    assert model.n_iter_ >= 3
    assert model.predict(np.zeros((2, 5))).shape == (2,)


@pytest.fixture
def ctrl_c(monkeypatch):
    """Interrupts the first iteration of a fit, after others that are left alone."""

    def interrupt(in_fit):
        descend, alone = _Run.descend, iter(range(in_fit))

        def interrupted(run):
            if next(alone, None) is None:
                raise KeyboardInterrupt
            descend(run)

        monkeypatch.setattr(_Run, "descend", interrupted)

    return interrupt


@pytest.mark.parametrize("more", [[], ["--early-stopping"]])
def test_ctrl_c_before_there_is_a_model_leaves_the_old_one(parablock, ctrl_c, files, model_file, more):
    shutil.copy(model_file, "model.pbk")
    before = Path("model.pbk").read_bytes()
    ctrl_c(in_fit=0)
    done = parablock("train", files.train, "-o", "model.pbk", "-c", "2", *more)
    assert done.status == 130
    assert "interrupted after 0 iterations" in done.err
    assert "there is no model to write, and the file is left as it was" in done.err
    assert "usable" not in done.err
    assert "trained" not in done.err
    assert Path("model.pbk").read_bytes() == before
    assert os.listdir() == ["model.pbk"]


def test_an_interrupted_fit_without_an_iteration_is_not_called_usable(ctrl_c, covtype):
    ctrl_c(in_fit=0)
    with pytest.warns(ConvergenceWarning, match=r"Interrupted after 0 outer iterations.*The model is not trained; fit"):
        library.KernelSVC().fit(covtype.X, covtype.y)


def test_ctrl_c_ends_cross_validation(parablock, ctrl_c, files):
    ctrl_c(in_fit=2)
    done = parablock("train", files.train, "-v", "5", "-q")
    assert (done.status, done.out, done.err) == (130, "", "parablock: interrupted; no unfinished file is left\n")


def test_ctrl_c_ends_the_process_that_cross_validates(tmp_path, hard):
    process = started(tmp_path, "train", *hard, "-v", "5", "--verbose")
    after_iteration(process, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "parablock: interrupted; no unfinished file is left"


def test_a_model_can_be_written_to_a_pipe(tmp_path, files):
    os.mkfifo(tmp_path / "pipe")
    process = started(tmp_path, "train", files.train, "-o", "pipe")
    content = (tmp_path / "pipe").read_bytes()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err.splitlines()[-1] == "wrote pipe"
    (tmp_path / "model.pbk").write_bytes(content)
    assert library.load(tmp_path / "model.pbk").stop_reason_ == "converged"


@pytest.mark.parametrize(
    ("arguments", "ranks"),
    [(["--engine", "mpi"], True), (["--engine=mpi"], True), (["mpi", "-o", "mpi"], False), (["-o", "mpi"], False)],
)
def test_whether_mpi_looks_after_signals(monkeypatch, arguments, ranks):
    seen = []
    monkeypatch.setattr(cli, "muted_unless_first", lambda given: nullcontext())
    monkeypatch.setattr(cli, "guarded", lambda work, show_traceback, ranks: seen.append(ranks) or 0)
    assert cli.main(["train", "data.svm", *arguments]) == 0
    assert seen == [ranks]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_while_data_is_read(tmp_path, number, status):
    os.mkfifo(tmp_path / "rows")
    process = started(tmp_path, "train", "rows", "-o", "model.pbk")
    with open(tmp_path / "rows", "w"):  # which waits for the process to open it
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err == ("parablock: interrupted; no unfinished file is left\n" if number == signal.SIGINT else "")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_sigterm_leaves_a_checkpoint_to_go_on_from(tmp_path, hard):
    options = ["--checkpoint", "run.checkpoint", "--verbose", "-o", "model.pbk"]
    process = started(tmp_path, "train", *hard, *options)
    after_iteration(process, 3)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert out == ""
    assert "Traceback" not in err
    message = r"parablock: Terminated after iteration (\d+); the checkpoint run.checkpoint is of iteration (\d+)\."
    reached, kept = re.search(message, err).groups()
    assert reached == kept
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]


@needs_mpi
def test_ranks_train_together_and_the_first_one_speaks(tmp_path, covtype, files):
    def on_ranks(*arguments):
        line = [MPIEXEC, "-n", "2", *command(*arguments)]
        return subprocess.run(line, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=240)

    options = ["-c", "32", "-g", "32", "--engine", "mpi", "--jobs", "1"]
    done = on_ranks("train", files.train, "-o", "model.pbk", "--log", "run.jsonl", "--early-stopping", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == ""
    assert done.stderr.count("read 600 rows") == done.stderr.count("trained KernelSVC") == 1
    assert done.stderr.count("wrote model.pbk") == done.stderr.count("that were held out") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pbk", "run.jsonl"]
    model = library.load(tmp_path / "model.pbk")
    assert model._n_rows == 540
    assert model.score(covtype.X, covtype.y) > 0.9

    scale = ["--save-scaling", "scaling.json", "--engine", "mpi", "--jobs", "1", "-e", "1e-5"]
    done = on_ranks("train", files.train, "-o", "scaled.pbk", *scale)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("scaled 54 features") == 1
    scaled = make_pipeline(StandardScaler(), SVC(tol=1e-5)).fit(covtype.X, covtype.y)
    decision = library.load(tmp_path / "scaled.pbk").decision_function(covtype.X_test)
    assert decision == pytest.approx(scaled.decision_function(covtype.X_test), abs=1e-3)

    failed = on_ranks("train", "nosuch.svm", *options)
    assert failed.returncode == 1
    assert failed.stderr.count("parablock: error: ") == 1
    assert "nosuch.svm: No such file or directory" in failed.stderr
