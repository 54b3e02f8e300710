"""`parablock predict`: what is written, what is told, and data that does not quite fit the model."""

import io
import os
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import parablock as library
from parablock.datasets import write_svmlight


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def test_one_prediction_a_line_and_the_accuracy(parablock, covtype, files, model_file):
    done = parablock("predict", model_file, files.test, "-o", "out.txt")
    assert done.status == 0
    expected = library.load(model_file).predict(covtype.X_test)
    assert lines("out.txt") == [str(label) for label in expected]
    right = int(np.sum(expected == covtype.y_test))
    assert done.out == f"Accuracy = {100 * right / 200:g}% ({right}/200) (classification)\n"
    assert done.err == ""


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_standard_output_has_nothing_but_predictions(parablock, covtype, files, model_file, output):
    done = parablock("predict", model_file, files.test, *output)
    assert [int(line) for line in done.out.splitlines()] == library.load(model_file).predict(covtype.X_test).tolist()
    assert done.err.startswith("Accuracy = ")
    assert parablock("predict", model_file, files.test, "-q").err == ""


def test_a_device_is_written_to(parablock, files, model_file):
    done = parablock("predict", model_file, files.test, "-o", os.devnull)
    assert done.status == 0
    assert done.out.startswith("Accuracy = ")


def test_scores(parablock, covtype, files, model_file):
    done = parablock("predict", model_file, files.test, "--scores")
    assert done.err == ""
    expected = library.load(model_file).decision_function(covtype.X_test)
    assert np.array_equal([float(line) for line in done.out.splitlines()], expected)


def test_standard_input(parablock, files, model_file, monkeypatch):
    expected = parablock("predict", model_file, files.test)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(files.test.read_bytes())))
    assert parablock("predict", model_file, "-").out == expected.out


@pytest.mark.parametrize("option", [["--probabilities"], ["-b", "1"]])
def test_probabilities_are_written_as_svm_predict_does(parablock, covtype, files, option):
    parablock("train", files.train, "--task", "logistic", "-g", "8", "-o", "model.pbk", "-q")
    done = parablock("predict", "model.pbk", files.test, *option, "-o", "out.txt")
    assert done.out.startswith("Accuracy = ")
    header, *rows = lines("out.txt")
    expected = library.load("model.pbk").predict_proba(covtype.X_test)
    assert header == "labels -1 1"
    values = np.array([[float(cell) for cell in row.split()] for row in rows])
    assert np.array_equal(values[:, 1:], expected)
    assert np.array_equal(values[:, 0], np.where(expected[:, 1] > 0.5, 1, -1))


def test_a_model_without_probabilities(parablock, files, model_file, tmp_path):
    done = parablock("predict", model_file, files.test, "--probabilities", "-o", "out.txt")
    assert done.status == 1
    assert done.err == "parablock: error: KernelSVC has no probabilities; train with --task logistic for them\n"
    assert not list(tmp_path.iterdir())


def test_regression_is_told_with_r2_and_errors(parablock):
    X, y = load_diabetes(return_X_y=True)
    write_svmlight("train.svm", X[:200] * 20, y[:200])
    write_svmlight("test.svm", X[200:] * 20, y[200:])
    parablock("train", "train.svm", "-s", "3", "-c", "50", "-o", "model.pbk", "-q")
    done = parablock("predict", "model.pbk", "test.svm", "-o", "out.txt")
    predicted = library.load("model.pbk").predict(X[200:] * 20)
    assert np.array_equal([float(line) for line in lines("out.txt")], predicted)
    assert done.out.splitlines() == [
        f"R2 = {r2_score(y[200:], predicted):g} (regression)",
        f"Mean absolute error = {mean_absolute_error(y[200:], predicted):g} (regression)",
        f"Mean squared error = {mean_squared_error(y[200:], predicted):g} (regression)",
    ]
    refused = parablock("predict", "model.pbk", "test.svm", "--scores")
    assert refused.status == 1
    assert "KernelSVR has no decision values" in refused.err


@pytest.fixture
def iris(parablock):
    bunch = load_iris(as_frame=True)
    frame = bunch.data.assign(species=bunch.target_names[bunch.target])
    frame.to_csv("train.csv", index=False)
    parablock("train", "train.csv", "--target", "species", "-o", "iris.pbk", "-q")
    return frame


def test_columns_are_found_by_name(parablock, iris):
    straight = parablock("predict", "iris.pbk", "train.csv", "--target", "species")
    assert straight.status == 0, straight.err
    assert set(straight.out.split()) == {"setosa", "versicolor", "virginica"}
    right = sum(one == other for one, other in zip(straight.out.split(), iris["species"]))
    assert straight.err == f"Accuracy = {100 * right / 150:g}% ({right}/150) (classification)\n"
    shuffled = iris[iris.columns[::-1]].assign(number=range(150), remark="text")
    shuffled.to_csv("shuffled.csv", index=False)
    assert parablock("predict", "iris.pbk", "shuffled.csv").out == straight.out
    shuffled.to_parquet("shuffled.parquet")
    assert parablock("predict", "iris.pbk", "shuffled.parquet", "--target", "species").out == straight.out
    iris.drop(columns="species").to_csv("bare.csv", index=False, header=False)
    bare = parablock("predict", "iris.pbk", "bare.csv")
    assert (bare.out, bare.err) == (straight.out, "")
    confused = parablock("predict", "iris.pbk", "train.csv", "--target", "sepal length (cm)")
    assert confused.status == 1
    assert "the target 'sepal length (cm)' is one of the features" in confused.err
    iris.to_csv("bare.csv", index=False, header=False)
    confused = parablock("predict", "iris.pbk", "bare.csv", "--target", "1")
    assert confused.status == 1
    iris.drop(columns="petal width (cm)").to_csv("fewer.csv", index=False)
    missing = parablock("predict", "iris.pbk", "fewer.csv")
    assert missing.status == 1
    assert "there is no column 'petal width (cm)'; its columns are 'sepal length (cm)'" in missing.err


def test_labels_of_another_kind_have_no_accuracy(parablock, iris):
    iris.assign(species=1).to_csv("numbers.csv", index=False)
    done = parablock("predict", "iris.pbk", "numbers.csv", "--target", "species", "-o", "out.txt")
    assert done.status == 0
    assert done.out == "no accuracy: the model's labels are like setosa, and those of the data like 1\n"


def test_text_may_lack_the_last_features_but_not_have_more(parablock, files, model_file):
    (files.folder / "short.svm").write_text("1 1:0.5 3:0.25\n-1\n")
    done = parablock("predict", model_file, files.folder / "short.svm")
    expected = np.zeros((2, 54))
    expected[0, [0, 2]] = 0.5, 0.25
    assert [int(line) for line in done.out.split()] == library.load(model_file).predict(expected).tolist()
    (files.folder / "long.svm").write_text("1 1:0.5\n1 1:0.5 55:1\n")
    done = parablock("predict", model_file, files.folder / "long.svm", "-o", "out.txt")
    assert done.status == 1
    assert done.err.endswith("long.svm, line 2: index 55 is too large: the largest that is expected is 54\n")


def test_arrays_must_have_all_features(parablock, model_file, tmp_path):
    np.save("X.npy", np.zeros((3, 53)))
    done = parablock("predict", model_file, "X.npy", "-o", "out.txt")
    assert done.status == 1
    assert done.err == "parablock: error: X.npy: there are 53 features, and 54 are expected\n"
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


def test_a_model_of_svm_train(parablock, covtype, files):
    from libsvm.svmutil import svm_predict, svm_problem, svm_save_model, svm_train

    theirs = svm_train(svm_problem(covtype.y, covtype.X), "-c 8 -g 16 -q")
    svm_save_model("theirs.model", theirs)
    done = parablock("predict", "theirs.model", files.test, "-o", "out.txt")
    assert done.status == 0, done.err
    expected, accuracy, _ = svm_predict(covtype.y_test, covtype.X_test, theirs, "-q")
    assert [int(line) for line in lines("out.txt")] == expected
    assert done.out.startswith(f"Accuracy = {accuracy[0]:g}% (")


def test_several_targets_are_several_columns(parablock):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    model = library.KernelRidge().fit(X, y)
    library.save(model, "two.pbk")
    pd.DataFrame(X).to_csv("X.csv", index=False, header=False)
    done = parablock("predict", "two.pbk", "X.csv")
    values = np.array([[float(cell) for cell in line.split()] for line in done.out.splitlines()])
    assert np.array_equal(values, model.predict(X))
