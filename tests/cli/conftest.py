"""What the tests of the command line share: data files, and the command in this process or in one of its own."""

import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from parablock.cli import main
from parablock.datasets import load_covtype_sample, write_svmlight
from tests.cli.processes import command, environment


@pytest.fixture
def shell(tmp_path):
    """Runs a command in a process of its own, in an empty folder."""

    def run(*arguments, **options):
        options = {"env": environment(), "cwd": tmp_path, "capture_output": True, "timeout": 120, **options}
        return subprocess.run(command(*arguments), text=True, **options)

    return run


@pytest.fixture
def parablock(tmp_path, monkeypatch, capsys):
    """Runs a command in this process, in an empty folder: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return SimpleNamespace(status=status, out=printed.out, err=printed.err)

    return run


@pytest.fixture(scope="session")
def covtype():
    """Rows of real data, exact in text of float32: (X, y, X_test, y_test)."""
    X, y, X_test, y_test = load_covtype_sample()
    arrays = X[:600].astype(np.float64), y[:600].astype(int), X_test[:200].astype(np.float64), y_test[:200].astype(int)
    return SimpleNamespace(**dict(zip(("X", "y", "X_test", "y_test"), arrays)))


@pytest.fixture(scope="session")
def files(covtype, tmp_path_factory):
    """The same as LIBSVM's text."""
    folder = tmp_path_factory.mktemp("data")
    write_svmlight(folder / "train.svm", covtype.X, covtype.y)
    write_svmlight(folder / "test.svm", covtype.X_test, covtype.y_test)
    return SimpleNamespace(train=folder / "train.svm", test=folder / "test.svm", folder=folder)


@pytest.fixture(scope="session")
def model_file(files):
    """A model of them, C = gamma = 32."""
    path = files.folder / "model.pbk"
    assert main(["train", str(files.train), "-o", str(path), "-c", "32", "-g", "32", "-q"]) == 0
    return path


@pytest.fixture(scope="session")
def hard(tmp_path_factory):
    """Options of a fit that goes on and on, in short iterations: the labels have nothing to do with the rows."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("hard") / "hard.svm"
    write_svmlight(path, rng.normal(size=(3000, 5)).round(3), rng.choice([-1, 1], size=3000))
    options = "--task logistic -c 100 -g 0.1 -e 1e-13 --max-iter 1000000 --jobs 1"
    return [str(path), *options.split()]
