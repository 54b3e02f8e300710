"""Every option of every command with values that make no sense: one line that says so, whatever they are."""

import random
import shlex
import shutil
from importlib import import_module

import numpy as np
import pytest

from parablock.cli import COMMANDS
from parablock.datasets import write_svmlight

GOOD = {
    "train": [
        "d.svm -o o.pbk --max-iter 3",
        "d.csv --target kind -o o.pbk --max-iter 3",
        "d.npz --task svr -o o.onnx -q --max-iter 3",
        "d.npz --task logistic -v 2 --max-iter 3",
    ],
    "predict": ["m.pbk d.svm", "m.model d.npz -o out.txt"],
    "certify": ["m.pbk d.svm"],
    "info": ["m.pbk"],
    "convert": ["d.csv o.npy --target kind --labels-out l.npy", "d.svm o.npz", "m.pbk o.model"],
    "plan": ["--rows 1000 --features 10"],
    "report": ["run.jsonl"],
}
VALUES = [
    "0", "-1", "1", "2", "nan", "inf", "-inf", "1e400", "1e-400", "1e300", "1e9", "99999999999999999999", "", "x",
    "0x10", "1_0", "1,5", "None", "1e", "--", "2GB", "0MB", "a\0b", "\x1b[2J", "é\n", "auto", "balanced", "1=2",
    "x=1", "1=1e300", "kind", "a,b", "10s", "1e9h", "nosuch/file", "d.svm", "m.pbk", "folder", "circle", "x" * 300,
]  # fmt: skip
TRIED = 7  # values of each option
NOT_TRIED = {"--engine", "--device", "--help", "--checkpoint-every", "--patience", "--measure"}


@pytest.fixture(scope="module")
def files_of_all(tmp_path_factory):
    from parablock.cli import main

    folder = tmp_path_factory.mktemp("scene")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 3)), np.arange(24) % 2
    write_svmlight(folder / "d.svm", X, y)
    np.savez(folder / "d.npz", X=X, y=y)
    rows = [",".join((*map(repr, row), "xy"[kind])) for row, kind in zip(X.tolist(), y)]
    (folder / "d.csv").write_text("\n".join(["a,b,c,kind", *rows]) + "\n")
    (folder / "folder").mkdir()
    (folder / "circle").symlink_to("circle")
    train = ["train", str(folder / "d.svm"), "-q"]
    assert main([*train, "-o", str(folder / "m.pbk"), "--log", str(folder / "run.jsonl")]) == 0
    assert main([*train, "-o", str(folder / "m.model")]) == 0
    return folder


@pytest.fixture
def scene(files_of_all, tmp_path, monkeypatch):
    folder = tmp_path / "scene"
    shutil.copytree(files_of_all, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


def options_of(command):
    """The longest name of every option, and whether it takes a value."""
    parser = import_module(f"parablock.cli.{command}").make_parser()
    for action in parser._actions:
        if action.option_strings and not NOT_TRIED & set(action.option_strings):
            yield max(action.option_strings, key=len), action.nargs != 0


@pytest.mark.parametrize(("command", "line"), [(command, line) for command, lines in GOOD.items() for line in lines])
def test_no_value_of_any_option_ends_in_anything_but_one_line(command, line, parablock, monkeypatch, scene):
    monkeypatch.chdir(scene)
    chosen = random.Random(line)
    kept = {scene / name: (scene / name).read_bytes() for name in line.split()[:2] if (scene / name).is_file()}
    tried = 0
    for option, takes_value in options_of(command):
        for value in chosen.sample(VALUES, TRIED) if takes_value else [None]:
            arguments = [command, *shlex.split(line), option, *([] if value is None else [value])]
            done = parablock(*arguments)
            tried += 1
            assert done.status in (0, 1, 2), arguments
            assert "this should not happen" not in done.err, arguments
            assert "\x1b" not in done.err, arguments
            errors = [text for text in done.err.splitlines() if text.startswith("parablock: error: ")]
            assert len(errors) == (done.status > 0), arguments
    assert tried >= (1 if command == "info" else 5)
    assert {path: path.read_bytes() for path in kept} == kept


def test_every_command_is_tried():
    assert {*GOOD, "demo"} >= {*COMMANDS} - {"warm-up"}
