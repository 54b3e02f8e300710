"""Features in different units: `train` scales them, and the model does the same to the rows that it predicts."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

import parablock as library
from parablock.datasets import write_svmlight
from tests.cli.processes import ROOT

HINT = "the features are in different units"


@pytest.fixture
def homes(tmp_path):
    """Areas and years, in files of training and test rows; and the same as arrays."""
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.uniform(20, 300, 300), rng.integers(1900, 2025, 300), rng.uniform(0, 5, 300))).round(2)
    y = np.where(X[:, 0] / 100 + X[:, 2] > 4, "near", "far")
    for name, rows in (("train", slice(200)), ("test", slice(200, None))):
        lines = [f"{area},{year:.0f},{way},{kind}" for (area, year, way), kind in zip(X[rows], y[rows])]
        (tmp_path / f"{name}.csv").write_text("\n".join(["area,year,way,kind", *lines]) + "\n")
    return X[:200], y[:200], X[200:], y[200:]


@pytest.fixture
def wine(tmp_path):
    """Wines in a table: the file's name, and as arrays."""
    X, y = load_wine(return_X_y=True)
    names = [f"part {i}" for i in range(X.shape[1])]
    lines = [",".join((*map(repr, row), f"type {kind}")) for row, kind in zip(X.tolist(), y.tolist())]
    (tmp_path / "wine.csv").write_text("\n".join([",".join((*names, "type")), *lines]) + "\n")
    return "wine.csv", X, y


TRAIN = ("train", "train.csv", "--target", "kind", "-c", "10", "-o", "model.pbk")
PREDICT = ("predict", "model.pbk", "test.csv", "--target", "kind")


def expected(homes, **parameters):
    X, y, _, _ = homes
    return make_pipeline(StandardScaler(), SVC(C=10, **parameters)).fit(X, y)


# ------------------------------------------------------------------------------------------------------ as a user would


def test_the_first_thing_in_the_readme_gives_the_right_answers(shell, homes):
    """Train on a table, predict new rows, in processes of their own and with no option but the target."""
    X, y, X_test, _ = homes
    done = shell("train", "train.csv", "--target", "kind", "-o", "homes.pbk")
    assert done.returncode == 0, done.stderr
    done = shell("predict", "homes.pbk", "test.csv")
    assert done.returncode == 0, done.stderr
    peer = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    assert done.stdout.split() == peer.predict(X_test).tolist()
    commands = "parablock train flowers.csv --target species -o flowers.pbk\nparablock predict flowers.pbk new.csv\n"
    assert commands in (ROOT / "README.md").read_text()


def test_wines_are_told_apart(parablock, wine):
    name, X, y = wine
    assert parablock("train", name, "--target", "type", "-o", "w.pbk").status == 0
    right = make_pipeline(StandardScaler(), SVC()).fit(X, y).score(X, y)
    done = parablock("predict", "w.pbk", name, "--target", "type")
    assert f"Accuracy = {100 * right:g}%" in done.err
    assert right > 0.99
    assert parablock("train", name, "--target", "type", "-o", "w.pbk", "--no-scaling").status == 0
    done = parablock("predict", "w.pbk", name, "--target", "type")
    assert float(done.err.split("=")[1].split("%")[0]) < 75


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
def test_dense_files_of_every_kind_are_scaled(parablock, homes, ending):
    X, y, X_test, _ = homes
    labels = (y == "near").astype(int)
    if ending == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": labels}).to_parquet("d.parquet")
    elif ending == "csv":
        np.savetxt("d.csv", np.column_stack((X, labels)), delimiter=",")
    elif ending == "npy":
        np.save("d.npy", X)
        np.save("y.npy", labels)
    else:
        np.savez("d.npz", X=X, y=labels)
    options = {"npy": ["--labels", "y.npy"], "npz": []}.get(ending, ["--target", "-1"])
    done = parablock("train", f"d.{ending}", *options, "-c", "10", "-e", "1e-5", "-o", "model.pbk")
    assert done.status == 0, done.err
    assert "scaled 3 features to mean 0 and variance 1, as the model does with rows that it predicts\n" in done.err
    model = library.load("model.pbk")
    decision = expected(homes, tol=1e-5).decision_function(X_test)
    # Parquet's numbers are all exact in float64 alone.
    assert model.decision_function(X_test) == pytest.approx(decision, abs=1e-3)


@pytest.mark.usefixtures("homes")
def test_text_of_libsvm_is_scaled_when_it_is_asked_for(parablock, homes):
    X, y, X_test, _ = homes
    write_svmlight("train.svm", X, (y == "near").astype(int))
    train = ("train", "train.svm", "-c", "10", "-o", "model.pbk")
    done = parablock(*train)
    assert f"{HINT}, and kernels compare distances: try --scale\n" in done.err
    assert library.load("model.pbk")._scaling is None
    done = parablock(*train, "--scale", "-e", "1e-5")
    assert "scaled 3 features" in done.err
    assert HINT not in done.err
    decision = expected(homes, tol=1e-5).decision_function(X_test)
    assert library.load("model.pbk").decision_function(sp.csr_matrix(X_test)) == pytest.approx(decision, abs=1e-3)


def test_sparse_features_are_scaled_without_shift(parablock):
    X = sp.random(80, 30, density=0.1, format="csr", random_state=0) * 7
    y = np.arange(80) % 2
    write_svmlight("wide.svm", X, y)
    done = parablock("train", "wide.svm", "--scale", "-o", "model.pbk", "-c", "10", "-e", "1e-5")
    assert "scaled 30 features to at most 1" in done.err
    peer = make_pipeline(MaxAbsScaler(), SVC(C=10, tol=1e-5)).fit(X, y)
    model = library.load("model.pbk")
    assert sp.issparse(model.support_vectors_)
    assert model.decision_function(X) == pytest.approx(peer.decision_function(X), abs=1e-3)
    assert parablock("train", "wide.svm", "-o", "model.pbk").status == 0
    assert library.load("model.pbk")._scaling is None


@pytest.mark.usefixtures("homes")
def test_features_can_be_left_as_they_are(parablock):
    done = parablock(*TRAIN, "--no-scaling")
    assert done.status == 0
    assert "scaled" not in done.err
    assert HINT not in done.err  # who asks for it knows
    assert library.load("model.pbk")._scaling is None
    assert parablock(*TRAIN, "-q").err == ""


def test_rows_that_were_scaled_before_are_left_as_they_are(parablock, homes):
    """So that a file which was scaled by convert goes on working with --use-scaling."""
    X, y, _, _ = homes
    np.savez("scaled.npz", X=StandardScaler().fit_transform(X), y=y)
    assert "scaled 3" not in parablock("train", "scaled.npz", "-o", "model.pbk").err
    assert library.load("model.pbk")._scaling is None


def test_the_chi2_kernel_is_scaled_without_shift(parablock):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (80, 3)) * [1, 100, 10_000]
    np.savez("d.npz", X=X, y=(X[:, 0] > 0.5).astype(int))
    assert parablock("train", "d.npz", "-t", "chi2", "-o", "model.pbk").status == 0
    scaling = library.load("model.pbk")._scaling
    assert not scaling.shifts
    assert scaling.scale == pytest.approx(1 / X.max(axis=0))


def test_info_tells_of_the_scaling(parablock, homes):
    parablock(*TRAIN)
    assert re.search("^scaling +shift and scale$", parablock("info", "model.pbk").out, re.MULTILINE)
    told = json.loads(parablock("info", "model.pbk", "--json").out)
    assert (told["scaling"], told["format_version"]) == ("shift and scale", 2)
    parablock(*TRAIN, "--no-scaling")
    assert re.search("^scaling +none$", parablock("info", "model.pbk").out, re.MULTILINE)


# ------------------------------------------------------------------------------------------- folds and rows held out


def test_folds_are_scaled_by_their_training_rows(parablock, wine, tmp_path):
    name, X, y = wine
    done = parablock("train", name, "--target", "type", "-v", "5", "--seed", "3", "-e", "1e-5")
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    machine = library.KernelSVC(tol=1e-5)  # one class against the rest, as the command's
    right = np.mean(cross_val_predict(make_pipeline(StandardScaler(), machine), X, y, cv=folds) == y)
    assert done.out == f"Cross Validation Accuracy = {100 * right:g}%\n"
    plain = parablock("train", name, "--target", "type", "-v", "5", "--no-scaling").out
    assert float(plain.split()[-1].rstrip("%")) < 100 * right - 5
    assert parablock("train", name, "--target", "type", "-v", "5", "--save-scaling", "s.json").status == 0
    assert np.array(json.loads((tmp_path / "s.json").read_text())["offset"]) == pytest.approx(X.mean(axis=0))


def test_rows_that_are_held_out_are_scaled_by_those_that_are_trained_with(parablock, homes):
    X, y, X_test, y_test = homes
    done = parablock(*TRAIN, "--early-stopping", "--hold-out", "0.25", "--patience", "100")
    assert done.status == 0
    model = library.load("model.pbk")
    X_train, X_valid, _, y_valid = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    assert model._scaling.shift == pytest.approx(X_train.mean(axis=0))
    best = float(done.err.split("held out: ")[1].split()[0])
    assert best >= round(model.score(X_valid, y_valid), 4) - 1e-9
    assert best > 0.85
    assert model.score(X_test, y_test) > 0.85


# --------------------------------------------------------------------------------------------- files of scalings


def test_scripts_with_files_go_on_working(parablock, homes):
    done = parablock(*TRAIN, "--save-scaling", "scaling.json")
    assert "scaling.json has the same scaling, for convert; predict needs no --use-scaling\n" in done.err
    _, _, X_test, y_test = homes
    peer = expected(homes)
    plain = parablock(*PREDICT)
    done = parablock(*PREDICT, "--use-scaling", "scaling.json")
    assert done.out == plain.out
    assert done.out.split() == peer.predict(X_test).tolist()
    assert f"Accuracy = {100 * peer.score(X_test, y_test):g}%" in done.err
    assert "model.pbk scales the rows itself: --use-scaling is not needed\n" in done.err
    assert parablock(*TRAIN, "--use-scaling", "scaling.json").status == 0
    assert parablock(*PREDICT).out == plain.out


def test_a_model_without_scaling_is_scaled_for(parablock, homes):
    """As models of older versions are."""
    _, _, X_test, _ = homes
    convert = ("--target", "kind", "--use-scaling", "scaling.json")
    parablock(*TRAIN, "--save-scaling", "scaling.json")
    assert parablock("convert", "train.csv", "train.npz", *convert).status == 0
    assert parablock("train", "train.npz", "-c", "10", "--no-scaling", "-o", "model.pbk").status == 0
    assert library.load("model.pbk")._scaling is None
    done = parablock(*PREDICT, "--use-scaling", "scaling.json")
    assert done.out.split() == expected(homes).predict(X_test).tolist()
    assert "not needed" not in done.err
    assert parablock("convert", "test.csv", "test.npz", *convert).status == 0
    assert parablock("predict", "model.pbk", "test.npz").out == done.out


def test_another_scaling_than_the_models_is_refused(parablock, homes, tmp_path):
    parablock(*TRAIN, "--save-scaling", "scaling.json")
    told = json.loads((tmp_path / "scaling.json").read_text())
    told["factor"][0] *= 2
    (tmp_path / "other.json").write_text(json.dumps(told))
    done = parablock(*PREDICT, "--use-scaling", "other.json")
    assert done.status == 1
    assert "other.json is not the scaling of model.pbk, which scales the rows itself: leave --use-scaling" in done.err


def test_numbers_that_make_no_sense_are_the_files_fault(parablock, homes, tmp_path):
    parablock(*TRAIN, "--save-scaling", "scaling.json", "-q")
    text = (tmp_path / "scaling.json").read_text()
    for key, value in (("offset", float("nan")), ("factor", float("nan")), ("factor", 0.0), ("factor", float("inf"))):
        told = json.loads(text)
        told[key][1] = value
        (tmp_path / "bad.json").write_text(json.dumps(told))
        for command in (TRAIN, PREDICT, ("convert", "train.csv", "out.npz", "--target", "kind")):
            done = parablock(*command, "--use-scaling", "bad.json")
            assert done.status == 1
            assert done.err.startswith("parablock: error: bad.json: this is no file of --save-scaling (")
            assert "feature 2 has shift" in done.err


def test_a_kernel_matrix_has_no_features(parablock):
    np.save("K.npy", np.eye(4))
    np.save("y.npy", np.array([0, 1, 0, 1]))
    for option in (("--save-scaling", "scaling.json"), ("--scale",)):
        done = parablock("train", "K.npy", "--labels", "y.npy", "-t", "4", *option)
        assert done.status == 2
        assert "a precomputed kernel has no features to scale" in done.err
    assert parablock("train", "K.npy", "--labels", "y.npy", "-t", "4", "-o", "model.pbk").status == 0
    assert library.load("model.pbk")._scaling is None


def test_rows_on_disk_are_not_copied_into_too_little_memory(parablock, tmp_path):
    rng = np.random.default_rng(0)
    np.save("X.npy", rng.normal(3, size=(3000, 50)))
    np.save("y.npy", rng.integers(0, 2, 3000))
    train = ("train", "X.npy", "--labels", "y.npy", "-o", "model.pbk", "-m", "4", "--max-iter", "1")
    done = parablock(*train)
    assert done.status == 1
    assert "X.npy: its rows (1 MB) are used from disk, and scaled ones must be in memory" in done.err
    assert "--no-scaling" in done.err
    assert not (tmp_path / "model.pbk").exists()
    assert parablock(*train, "--no-scaling").status == 0


# ------------------------------------------------------------------------------------------------------ other formats


def test_onnx_scales_and_libsvm_where_it_can(parablock, homes, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, X_test, _ = homes
    peer = expected(homes)
    assert parablock(*TRAIN[:-1], "model.onnx").status == 0
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    labels = session.run(["label"], {"X": X_test.astype(np.float32)})[0]
    clear = np.abs(peer.decision_function(X_test)) > 0.01
    assert labels[clear].tolist() == peer.predict(X_test)[clear].tolist()
    numbers = ("train", "numbers.npz", "-c", "10", "-o", "numbers.model")
    np.savez("numbers.npz", X=X, y=(y == "near").astype(int))
    done = parablock(*numbers)
    assert done.status == 1
    assert "numbers.model: LIBSVM's format has no scaling, and with the rbf kernel it cannot be put" in done.err
    assert "--no-scaling" in done.err
    assert "trained" not in done.err
    assert not (tmp_path / "numbers.model").exists()
    assert parablock(*numbers, "-t", "linear").status == 0
    np.savez("test.npz", X=X_test)
    linear = expected(homes, kernel="linear")
    clear = np.abs(linear.decision_function(X_test)) > 0.01
    found = np.array(parablock("predict", "numbers.model", "test.npz").out.split())
    assert found[clear].tolist() == np.where(linear.predict(X_test) == "near", "1", "0")[clear].tolist()


def test_columns_are_found_by_the_names_that_the_scaling_knows(parablock, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 100.0] + [0.0, 500.0]
    kind = np.where(X[:, 0] > 0, "tall", "low")
    for name, order in (("train", ("height", "weight")), ("test", ("weight", "height"))):
        lines = [",".join((*order, "kind"))]
        values = dict(zip(("height", "weight"), X.T, strict=True))
        lines += [f"{values[order[0]][i]},{values[order[1]][i]},{kind[i]}" for i in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    scaling = ("--save-scaling", "scaling.json")
    assert parablock("train", "train.csv", "--target", "kind", "-o", "a.pbk", "-c", "100", *scaling).status == 0
    assert (
        parablock("convert", "train.csv", "train.npz", "--target", "kind", "--use-scaling", "scaling.json").status == 0
    )
    assert parablock("train", "train.npz", "-o", "b.pbk", "-c", "100").status == 0  # which is scaled already
    for model in ("a.pbk", "b.pbk"):
        done = parablock("predict", model, "test.csv", "--target", "kind", "--use-scaling", "scaling.json", "-o", "out")
        assert done.status == 0
        assert np.mean(np.loadtxt(tmp_path / "out", dtype=str) == kind) > 0.95
