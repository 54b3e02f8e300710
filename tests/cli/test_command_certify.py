"""`parablock certify`: what `certify` says of the model in a file, for the file it was trained on."""

import json

import numpy as np
import pytest

import parablock as library
from benchmarks.exact import values_of
from parablock.datasets import read_data
from tests.small_problems import features, targets

X, Y = features(), targets("labels")


@pytest.fixture
def table(tmp_path):
    """Rows in very different units, with the names of three kinds."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 3)) * [1, 1000, 0.01] + [0, 5000, 1]
    kinds = np.array(["oak", "ash", "elm"])[np.digitize(rows[:, 1] / 1000 + rows[:, 0], [4.5, 5.5])]
    lines = [",".join([*map(repr, row.tolist()), kind]) for row, kind in zip(rows, kinds)]
    path = tmp_path / "trees.csv"
    path.write_text("\n".join(["age,height,ring,kind", *lines]) + "\n")
    return path


def test_it_tells_what_the_library_computes(parablock, files, model_file):
    done = parablock("certify", model_file, files.train)
    assert done.status == 0, done.err
    data = read_data(str(files.train))
    model = library.load(model_file)
    assert done.out.strip() == str(model.certify(data.X, data.y))
    told = json.loads(parablock("certify", model_file, files.train, "--json", "-q").out)
    expected = values_of(model, data.X, data.y)
    assert told["primal_objective"] == pytest.approx(expected.primal, rel=1e-9)
    assert told["dual_objective"] == pytest.approx(expected.dual, rel=1e-9)
    assert told["violation"] == pytest.approx(expected.violation, abs=1e-9)
    assert told["outputs"] == []


@pytest.mark.parametrize("scaling", [[], ["--no-scaling"], ["--dtype", "float32"]], ids=str)
def test_a_table_with_a_model_that_scales_its_rows(parablock, table, scaling):
    done = parablock("train", table, "--target", "kind", "-o", "trees.pbk", *scaling)
    assert done.status == 0, done.err
    done = parablock("certify", "trees.pbk", table, "--target", "kind")
    assert done.status == 0, done.err
    assert [line.split()[1] for line in done.out.splitlines()[-3:]] == ["ash", "elm", "oak"]
    told = json.loads(parablock("certify", "trees.pbk", table, "--target", "kind", "--json").out)
    assert [output["name"] for output in told["outputs"]] == ["class ash", "class elm", "class oak"]
    assert 0 <= told["duality_gap"] < 2e-2 * told["primal_objective"]


def test_other_rows_are_refused(parablock, files, model_file, table, tmp_path):
    done = parablock("certify", model_file, files.test)
    assert done.status == 1
    assert done.out == ""
    assert "not the rows, targets and weights that the model was trained on" in done.err
    parablock("train", table, "--target", "kind", "-o", "trees.pbk")
    text = table.read_text().splitlines()
    other = tmp_path / "other.csv"
    beech = text[-1].rsplit(",", 1)[0] + ",beech"
    for lines in ([*text[:-1], beech], [text[0], *text[:0:-1]]):  # another kind, another order
        other.write_text("\n".join(lines) + "\n")
        done = parablock("certify", "trees.pbk", other, "--target", "kind")
        assert done.status == 1
        assert "not the rows" in done.err


def test_models_that_do_not_know_their_rows_are_refused(parablock, files, model_file):
    parablock("convert", model_file, "same.model")
    done = parablock("certify", "same.model", files.train)
    assert done.status == 1
    assert "same.model: LibsvmClassifier cannot be certified" in done.err


def test_rows_that_were_held_out(parablock, files):
    options = ["--early-stopping", "--hold-out", "0.2", "--seed", "3", "-c", "32", "-g", "32", "-q"]
    assert parablock("train", files.train, "-o", "early.pbk", *options).status == 0
    assert parablock("certify", "early.pbk", files.train).status == 1
    done = parablock("certify", "early.pbk", files.train, "--hold-out", "0.2", "--seed", "3")
    assert done.status == 0, done.err
    assert "duality gap" in done.out


def test_a_kernel_matrix(parablock, tmp_path):
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.save(tmp_path / "K.npy", K)
    np.save(tmp_path / "y.npy", Y)
    data = [tmp_path / "K.npy", "--labels", tmp_path / "y.npy"]
    assert parablock("train", *data, "-t", "precomputed", "-o", "K.pbk", "-q").status == 0
    done = parablock("certify", "K.pbk", *data, "--json")
    assert done.status == 0, done.err
    expected = values_of(library.load(tmp_path / "K.pbk"), K, Y)
    assert json.loads(done.out)["dual_objective"] == pytest.approx(expected.dual, rel=1e-9)


def test_labels_are_needed(parablock, table):
    parablock("train", table, "--target", "kind", "-o", "trees.pbk")
    done = parablock("certify", "trees.pbk", table, "--drop", "kind")
    assert done.status == 1
    assert "there are no labels" in done.err
