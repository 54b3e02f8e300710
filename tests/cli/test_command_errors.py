"""What goes wrong: one line on standard error, the right exit status, and nothing half-written."""

import argparse
import os
import re
from pathlib import Path

import numpy as np
import pytest

from parablock.cli import options as kinds
from parablock.cli.failures import UsageError, guarded

WRONG_USAGE = [
    ("trian", "'trian' is no command; did you mean 'train'?"),
    ("xyz", "'xyz' is no command; there are train, predict, certify, info, convert, plan, report, warm-up, demo"),
    ("train", "the following arguments are required: DATA"),
    ("train {train} --nonsense", "unrecognized arguments: --nonsense"),
    ("train {train} --tas svc", "unrecognized arguments: --tas svc"),
    ("train {train} -s 1", "1 (nu-SVC) is not offered; there are svc (0), logistic, svr (3), ridge and quantile"),
    ("train {train} -s 2", "2 (one-class SVM) is not offered"),
    ("train {train} --task forest", "'forest' is not offered"),
    ("train {train} -t 5", "'5' is no kernel; there are chi2, cosine, "),
    ("train {train} -c 0", "argument -c/--C: '0' is not a positive number"),
    ("train {train} -c many", "argument -c/--C: 'many' is no number"),
    ("train {train} -c nan", "'nan' is not a positive number"),
    ("train {train} -g -1", "'-1' is not a positive number"),
    ("train {train} -e inf", "'inf' is not a positive number"),
    ("train {train} -r inf", "'inf' is not a finite number"),
    ("train {train} -d 1.5", "'1.5' is not a whole number"),
    ("train {train} -p 0.1", "--epsilon is an option of --task svr, not svc"),
    ("train {train} --quantile 0.5", "--quantile is an option of --task quantile, not svc"),
    ("train {train} -s 3 -p -1", "'-1' is not zero or a positive number"),
    ("train {train} -s 3 -w1 2", "--class-weight is an option of --task svc and logistic, not svr"),
    ("train {train} -w1 0", "'1=0' is neither LABEL=WEIGHT, with a positive weight, nor balanced"),
    ("train {train} -w", "'-w' should be -wLABEL WEIGHT, such as -w1 5"),
    ("train {train} --class-weight balanced -w1 2", "balanced cannot be combined"),
    ("train {train} --memory-limit lots", "'lots' is no amount of memory; give one such as 500MB or 2GB"),
    ("train {train} --time-limit soon", "'soon' is no time; give seconds, or a unit as in 90s, 10min or 2h"),
    ("train {train} --early-stopping --hold-out 2", "'2' is not a share"),
    ("train {train} --resume", "--resume needs --checkpoint"),
    ("train {train} --early-stopping -t 4", "--early-stopping cannot hold out rows of a precomputed kernel"),
    ("train {train} -v 1", "-v needs at least 2 folds"),
    ("train {train} -v 3 -o m.pbk", "--output has no place beside -v, which writes no model"),
    ("train {train} -v 3 --engine mpi", "-v runs on one machine"),
    ("train - -v 3 --checkpoint c", "--checkpoint has no place beside -v"),
    ("train -", "name the model's file with -o when data comes from standard input"),
    ("train table.csv", "a table needs --target"),
    ("train {train} -o nowhere/m.pbk", "the folder of 'nowhere/m.pbk' does not exist; create it first"),
    ("train {train} -o .", "'.' is a folder, not a file"),
    ("train {train} -o -", "this is not written to standard output; name a file"),
    ("train {train} -t 4 --use-scaling s.json", "a precomputed kernel has no features to scale"),
    ("train {train} --save-scaling s.json --use-scaling s.json", "not allowed with argument --save-scaling"),
    ("train {train} --device tpu", "invalid choice: 'tpu'"),
    ("predict {model} {test} --scores -b 1", "--scores and --probabilities cannot be had at the same time"),
    ("predict {model} {test} -o nowhere/out.txt", "the folder of 'nowhere/out.txt' does not exist"),
    ("convert {model} model.xyz", "'model.xyz' does not say in which format to write the model"),
    ("convert {model} m.model --to npz", "--to is for data, and "),
    ("plan --rows 0 --features 3", "argument --rows: '0' is not a whole number of at least 1"),
    ("train {train} --seed 1e10", "argument --seed: '1e10' is too large; the most is 4,294,967,295"),
    ("train {train} -m 0", "'0MB' is no amount of memory; give one such as 500MB or 2GB"),
    ("train {train} -o " + 300 * "x", "cannot be a file: File name too long"),
    ("train {train} --jobs 99999999999999999999", "is more than can be counted; the most is 1e+15"),
    ("train {train} --jobs 5000", "argument --jobs: '5000' is too many threads; the most is 4,096"),
    ("train {train} --jobs 0", "argument --jobs: '0' is not a whole number of at least 1"),
    ("plan --rows=1e300 --features 3", "argument --rows: '1e300' is more than can be counted; the most is 1e+15"),
    ("plan --rows 10", "the following arguments are required: --features"),
    ("demo --rows 7", "7 was given; use 100 to 50000"),
]  # fmt: skip

FAILURES = [
    ("train nosuch.svm", "nosuch.svm: No such file or directory"),
    ("train {folder}", "is not there. A CSR matrix on disk is a folder with"),
    ("train bad.svm", "bad.svm, line 2: '1:x' is no label"),
    ("train empty.svm", "empty.svm: there is no row in it"),
    ("train one.svm", "needs samples of at least 2 classes"),
    ("train half.svm", "half.svm: 0.5 is no class; for numbers to predict there are --task svr and ridge"),
    ("train table.csv --target kind", "table.csv, line 2, column 2 ('text'): 'x' is no finite number"),
    ("train table.csv --target nothing", "no column is called 'nothing'; its columns are 'a', 'text', 'kind'"),
    ("train table.csv --target kind --drop text --task ridge", "--task ridge needs numbers as targets; u is none"),
    ("train X.npy", "X.npy: there are no labels; name their column (--target) or a file of their own (--labels)"),
    ("train nan.npz", "Input X contains NaN"),
    ("train {train} -w7 2", "a weight was given for the class '7'; the data has -1, 1"),
    ("train {train} --labels y.npy", "it has labels of its own"),
    ("train {train} -t 4", "in a kernel matrix the entries 0:1, 0:2"),
    ("train X.npy --labels y.npy -t 4", "a kernel matrix must be square, and this one is 4 x 2"),
    ("train {train} -v 1000", "1000 folds were asked for; there are 600 rows"),
    ("predict nosuch.pbk {test}", "nosuch.pbk: No such file or directory"),
    ("predict {test} {test}", "is no model file"),
    ("predict broken.pbk {test}", "broken.pbk"),
    ("predict {model} nosuch.svm", "nosuch.svm: No such file or directory"),
    ("predict {model} bad.svm -o out.txt", "bad.svm, line 2: "),
    ("info nosuch.pbk", "nosuch.pbk: No such file or directory"),
    ("info {train}", "is no model file"),
    ("convert nosuch.svm out.npz", "nosuch.svm: No such file or directory"),
    ("convert {train} out.csv", "data can be written as svmlight, npy, npz, and not as csv"),
    ("convert {train} out.npy", "a .npy file has no place for labels"),
    ("convert bad.svm out.npz", "bad.svm, line 2: "),
    ("report nosuch.jsonl", "nosuch.jsonl"),
    ("plan --rows 10 --features 3 --ranks 20", "ranks must be at most 10; got 20."),
]  # fmt: skip


@pytest.fixture
def scene(tmp_path, files, model_file):
    """Files that are not as they should be."""
    (tmp_path / "bad.svm").write_text("1 1:1\n1:x\n")
    (tmp_path / "empty.svm").write_text("\n")
    (tmp_path / "one.svm").write_text("1 1:1\n1 1:2\n")
    (tmp_path / "half.svm").write_text("0.5 1:1\n1.5 1:2\n2.25 1:3\n")
    (tmp_path / "table.csv").write_text("a,text,kind\n1,x,u\n2,y,v\n")
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    np.save(tmp_path / "y.npy", np.arange(4))
    np.savez(tmp_path / "nan.npz", X=[[1.0], [np.nan]], y=[0, 1])
    (tmp_path / "broken.pbk").write_bytes(model_file.read_bytes()[:-100])
    (tmp_path / "folder").mkdir()
    names = {"train": files.train, "test": files.test, "model": model_file, "folder": tmp_path / "folder"}
    before = sorted(os.listdir(tmp_path))
    yield lambda line: line.format(**names).split()
    assert sorted(os.listdir(tmp_path)) == before  # nothing was written, half or whole


@pytest.mark.parametrize(("line", "message"), WRONG_USAGE, ids=[line for line, _ in WRONG_USAGE])
def test_wrong_usage_is_one_line_and_status_2(parablock, scene, line, message):
    done = parablock(*scene(line))
    assert done.status == 2
    assert_one_line(done, message)


@pytest.mark.parametrize(("line", "message"), FAILURES, ids=[line for line, _ in FAILURES])
def test_a_failure_is_one_line_and_status_1(parablock, scene, line, message):
    done = parablock(*scene(line), *(["-q"] if line.startswith("train") else []))
    assert done.status == 1
    assert_one_line(done, message)


def assert_one_line(done, message):
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("parablock: error: ")
    assert message in done.err


def test_output_that_was_there_survives_a_failure(parablock, files, model_file, tmp_path):
    (tmp_path / "out.txt").write_text("old")
    (tmp_path / "bad.svm").write_text("1 1:1\n1:x\n")
    assert parablock("predict", model_file, "bad.svm", "-o", "out.txt").status == 1
    assert (tmp_path / "out.txt").read_text() == "old"


def test_a_folder_that_may_not_be_written_to(parablock, files, tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" or mode != os.W_OK)
    done = parablock("train", files.train, "-o", "closed/model.pbk")
    assert done.status == 2
    assert "may not be written to" in done.err


def test_a_traceback_where_it_is_wanted(parablock, monkeypatch):
    done = parablock("train", "nosuch.svm", "--traceback")
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1] == "parablock: error: nosuch.svm: No such file or directory"
    monkeypatch.setenv("PARABLOCK_TRACEBACK", "1")
    assert "Traceback" in parablock("train", "nosuch.svm").err


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("several\n  lines"), 1, "error: several lines"),
        (UsageError("so"), 2, "error: so"),
        (argparse.ArgumentTypeError("so"), 2, "error: so"),
        (MemoryError("Unable to allocate 7 TiB"), 1, "error: there is not enough memory (Unable to allocate 7 TiB)"),
        (ImportError("device='cuda' needs PyTorch"), 1, "error: device='cuda' needs PyTorch"),
        (KeyError("x"), 1, "error: KeyError: 'x'; this should not happen, --traceback shows where it did"),
        (PermissionError(13, "Permission denied", "file"), 1, "error: file: Permission denied"),
        (OSError(28, "No space left on device", "runs/out.txt"), 1, "error: runs/out.txt: No space left"),
        (KeyboardInterrupt(), 130, "interrupted; no unfinished file is left"),
    ],
)  # fmt: skip
def test_errors_of_all_kinds(error, status, message, capsys):
    assert guarded(raising(error), show_traceback=False) == status
    assert capsys.readouterr().err.startswith(f"parablock: {message}")


def test_a_warning_is_a_line(capsys):
    import warnings

    def work():
        warnings.warn("something\nodd")
        return 0

    assert guarded(work, show_traceback=False) == 0
    assert capsys.readouterr().err == "parablock: warning: something odd\n"


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("1.5s", 1.5), ("10min", 600), ("2h", 7200), ("1d", 86_400)])
def test_times(text, value):
    assert kinds.seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-1", "1y", "h"])
def test_what_is_no_time(text):
    with pytest.raises(argparse.ArgumentTypeError, match=re.escape(f"{text!r} is no time")):
        kinds.seconds(text)
