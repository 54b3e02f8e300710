"""Features in different units: `train` notices, scales them and keeps how; `predict` scales alike."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from parablock.cli.scaling import Scaling

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


def test_rows_to_predict_are_scaled_as_those_of_training_were(parablock, homes):
    X, y, X_test, y_test = homes
    train = ("train", "train.csv", "--target", "kind", "-c", "10", "-o", "model.pbk")
    assert HINT not in parablock(*train, "--save-scaling", "scaling.json").err
    done = parablock("predict", "model.pbk", "test.csv", "--target", "kind", "--use-scaling", "scaling.json")
    peer = make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y)
    assert done.out.split() == peer.predict(X_test).tolist()
    assert f"Accuracy = {100 * peer.score(X_test, y_test):g}%" in done.err
    assert parablock(*train, "--use-scaling", "scaling.json").status == 0


def test_cross_validation_scales_too(parablock, homes):
    plain, scaled = (
        float(parablock("train", "train.csv", "--target", "kind", "-v", "5", *more).out.split()[-1].rstrip("%"))
        for more in ((), ("--save-scaling", "scaling.json"))
    )
    assert scaled > plain + 5


@pytest.mark.usefixtures("homes")
def test_features_in_different_units_are_noticed(parablock, files):
    train = ("train", "train.csv", "--target", "kind", "-o", "model.pbk")
    assert f"{HINT}, and kernels compare distances: try --save-scaling FILE\n" in parablock(*train).err
    assert HINT not in parablock(*train, "-q").err
    assert HINT not in parablock("train", files.train, "-o", "model.pbk").err


def test_a_kernel_matrix_has_no_features(parablock):
    np.save("K.npy", np.eye(4))
    done = parablock("train", "K.npy", "--labels", "y.txt", "-t", "4", "--save-scaling", "scaling.json")
    assert done.status == 2
    assert "a precomputed kernel has no features to scale" in done.err


@pytest.mark.parametrize(("given", "expected"), [("float32", "float32"), ("float64", "float64"), ("int64", "float64")])
def test_scaling_keeps_the_precision(given, expected):
    X = np.arange(12, dtype=given).reshape(4, 3)
    scaled = Scaling.of(X, None).apply(X, "X")
    assert scaled.dtype == expected
    assert scaled == pytest.approx(StandardScaler().fit_transform(X.astype(float)), rel=1e-6)


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
    assert parablock("train", "train.npz", "-o", "b.pbk", "-c", "100").status == 0
    for model in ("a.pbk", "b.pbk"):
        done = parablock("predict", model, "test.csv", "--target", "kind", "--use-scaling", "scaling.json", "-o", "out")
        assert done.status == 0
        assert np.mean(np.loadtxt(tmp_path / "out", dtype=str) == kind) > 0.95
