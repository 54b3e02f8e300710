"""What is read stays as it is, what is written is one thing a file, and labels of any kind are one line each."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes

import parablock as library
from parablock.datasets import save_csr

COMMANDS = [
    ("train d.svm -o d.svm", "the model -o d.svm would overwrite the data (d.svm), which is read; name another file"),
    ("train d.svm -o link.svm", "the model -o link.svm would overwrite the data (d.svm)"),
    ("train d.svm -o hard.svm", "the model -o hard.svm would overwrite the data (d.svm)"),
    ("train link.svm -o folder/../d.svm", "the model -o folder/../d.svm would overwrite the data (link.svm)"),
    ("train d.pbk --format svmlight", "the model -o d.pbk would overwrite the data (d.pbk)"),
    ("train d.svm -o m.pbk --log d.svm", "--log d.svm would overwrite the data"),
    ("train d.svm -o m.pbk --checkpoint link.svm", "--checkpoint link.svm would overwrite the data"),
    ("train d.svm -o m.pbk --save-scaling d.svm", "--save-scaling d.svm would overwrite the data"),
    ("train d.svm -v 3 --save-scaling d.svm", "--save-scaling d.svm would overwrite the data"),
    ("train X.npy --labels y.txt -o y.txt", "the model -o y.txt would overwrite --labels (y.txt)"),
    ("train d.svm --use-scaling s.json -o s.json", "the model -o s.json would overwrite --use-scaling (s.json)"),
    ("train rows --labels y.txt -o rows/data.npy", "the model -o rows/data.npy would overwrite the data (rows)"),
    ("train d.svm -o new.pbk --log new.pbk", "the model -o and --log name the same file (new.pbk); name two"),
    ("train d.svm -o new.pbk --log ./folder/../new.pbk", "the model -o and --log name the same file"),
    ("train d.svm -o m.pbk --checkpoint n --save-scaling n", "--save-scaling and --checkpoint name the same file (n)"),
    ("train d.svm -o to-nowhere --checkpoint nowhere", "the model -o and --checkpoint name the same file"),
    ("predict m.pbk d.svm -o m.pbk", "-o m.pbk would overwrite the model (m.pbk), which is read; name another file"),
    ("predict m.pbk d.svm -o hard.svm", "-o hard.svm would overwrite the data (d.svm)"),
    ("predict m.pbk X.npy --labels y.txt -o y.txt", "-o y.txt would overwrite --labels (y.txt)"),
    ("predict m.pbk d.svm --use-scaling s.json -o s.json", "-o s.json would overwrite --use-scaling (s.json)"),
    ("convert d.svm d.svm", "TO d.svm would overwrite FROM (d.svm)"),
    ("convert d.svm link.svm", "TO link.svm would overwrite FROM (d.svm)"),
    ("convert m.pbk m.pbk", "TO m.pbk would overwrite FROM (m.pbk)"),
    ("convert d.svm x.npy --labels-out d.svm", "--labels-out d.svm would overwrite FROM"),
    ("convert d.svm x.npy --labels-out x.npy", "TO and --labels-out name the same file (x.npy)"),
    ("convert d.svm x.npz --save-scaling x.npz", "TO and --save-scaling name the same file"),
    ("report run.jsonl -o run.jsonl", "the page -o run.jsonl would overwrite the log (run.jsonl)"),
    ("report run.html", "the page -o run.html would overwrite the log (run.html)"),
]


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A folder with files of every kind, and links to them."""
    from parablock.cli import main
    from parablock.datasets import write_svmlight

    folder = tmp_path_factory.mktemp("scene")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    write_svmlight(folder / "d.svm", X, y)
    write_svmlight(folder / "d.pbk", X, y)
    np.save(folder / "X.npy", X)
    np.savetxt(folder / "y.txt", y, fmt="%d")
    save_csr(folder / "rows", sp.csr_matrix(X))
    (folder / "folder").mkdir()
    (folder / "link.svm").symlink_to("d.svm")
    (folder / "to-nowhere").symlink_to("nowhere")
    os.link(folder / "d.svm", folder / "hard.svm")
    options = ["--log", str(folder / "run.jsonl"), "--save-scaling", str(folder / "s.json"), "-q"]
    assert main(["train", str(folder / "d.svm"), "-o", str(folder / "m.pbk"), *options]) == 0
    (folder / "run.html").write_bytes((folder / "run.jsonl").read_bytes())
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("line", "message"), COMMANDS)
def test_nothing_that_is_read_is_written_over(parablock, monkeypatch, scene, line, message):
    monkeypatch.chdir(scene)
    before = contents(scene)
    done = parablock(*line.split())
    assert done.status == 2
    assert done.err.startswith("parablock: error: ")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert contents(scene) == before


def test_what_is_no_file_can_be_written_to_twice(parablock, files):
    done = parablock("train", files.train, "-o", "/dev/null", "--log", "/dev/null", "--save-scaling", "/dev/null", "-q")
    assert done.status == 0, done.err


def test_a_model_that_is_written_elsewhere_overwrites_nothing(parablock, tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(20)))
    (tmp_path / "m.model.pbk").write_text("something else")
    done = parablock("train", "d.csv", "--target", "b", "--no-scaling", "-o", "m.model")
    assert "was written to m.model.1.pbk instead" in done.err
    assert (tmp_path / "m.model.pbk").read_text() == "something else"
    assert library.load(tmp_path / "m.model.1.pbk").classes_.tolist() == ["x", "y"]


# ------------------------------------------------------------------------------------------------- columns and targets


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_columns_of_one_name_are_refused(parablock, tmp_path, ending):
    if ending == "csv":
        (tmp_path / "d.csv").write_text("a,b,a,y\n" + "".join(f"{i},{-i},{i % 3},{i % 2}\n" for i in range(20)))
    else:
        np.savez(tmp_path / "d.npz", X=np.eye(6)[:, :3], y=np.arange(6) % 2, feature_names=np.array(["a", "b", "a"]))
    options = ["--target", "y"] if ending == "csv" else []
    done = parablock("train", f"d.{ending}", *options, "-o", "m.pbk")
    assert done.status == 1
    assert f"d.{ending}: several columns are called 'a', and predict finds columns by their names" in done.err
    if ending == "csv":
        assert parablock("train", "d.csv", *options, "--drop", "3", "-o", "m.pbk").status == 0
        assert library.load("m.pbk").feature_names_in_.tolist() == ["a", "b"]


def test_numbers_that_are_taken_for_classes_are_warned_of(parablock):
    X, y = load_diabetes(return_X_y=True)
    np.savez("d.npz", X=X, y=y.astype(int))
    train = ("train", "d.npz", "--tol", "1", "--max-iter", "1", "-o", "m.pbk", "-q")
    words = "the target has 214 different numbers in 442 rows, and each is taken for a class; if they are numbers to "
    assert f"warning: {words}predict, train with --task svr or ridge\n" in parablock(*train).err
    assert "taken for a class" not in parablock(*train, "--task", "ridge").err
    np.savez("d.npz", X=X, y=np.arange(442) % 26)
    assert "taken for a class" not in parablock(*train).err


# ---------------------------------------------------------------------------------------------------- labels in output

LABELS = {
    "two\nlines": '"two\\nlines"',
    "\r\n": '"\\r\\n"',
    "a\u2028b": '"a\\u2028b"',
    "\x1b[31mred": '"\\u001b[31mred"',
    "=SUM(A1)": '"\\u003dSUM(A1)"',
    "+x": '"\\u002bx"',
    "-x": '"\\u002dx"',
    "@x\n": '"\\u0040x\\n"',
    '"quoted"': '"\\"quoted\\""',
    " padded ": '" padded "',
    "-1.5": "-1.5",
    "+": "+",
    "-": "-",
    "two words": "two words",
    "schön": "schön",
}


def test_every_label_is_one_line_that_gives_it_back(parablock):
    names = list(LABELS)
    np.savez("d.npz", X=5.0 * np.eye(len(names)), y=np.array(names))
    assert parablock("train", "d.npz", "--no-scaling", "--task", "logistic", "-c", "100", "-o", "m.pbk").status == 0
    done = parablock("predict", "m.pbk", "d.npz", "-q")
    assert done.out.split("\n")[:-1] == list(LABELS.values())
    for line, name in zip(done.out.split("\n"), names):
        assert name == (json.loads(line) if line.startswith('"') else line)
    first, *rows = parablock("predict", "m.pbk", "d.npz", "-q", "-b", "1").out.split("\n")[:-1]
    assert len(rows) == len(names)
    assert all(line.startswith(text + " ") for line, text in zip(rows, LABELS.values()) if " " not in text)
    assert rows[names.index("two words")].startswith('"two words" 0.')
    assert '"two words"' in first
    shown = parablock("info", "m.pbk").out
    assert "\x1b" not in shown
    assert shown.count("\n") == len(shown.splitlines())


def test_messages_do_not_steer_the_terminal(parablock, tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n1,\x1b[2J\n2,b\n")
    done = parablock("train", "d.csv", "--target", "y", "--task", "ridge")
    assert done.status == 1
    assert "\x1b" not in done.err
    assert r"\x1b[2J is none" in done.err
