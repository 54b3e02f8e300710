"""`parablock train`: options reach the estimator, data of all kinds is trained on, models are those of Python."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import parablock as library
from parablock.datasets import write_svmlight


@pytest.fixture(scope="session")
def iris():
    bunch = load_iris(as_frame=True)
    return bunch.data.assign(species=bunch.target_names[bunch.target])


@pytest.fixture(scope="session")
def diabetes(tmp_path_factory):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:250] * 20, (y[:250] - 150) / 75
    path = tmp_path_factory.mktemp("diabetes") / "diabetes.svm"
    write_svmlight(path, X, y)
    return X, y, path


def test_a_model_of_svm_trains_options_is_that_of_scikit_learn(parablock, covtype, files):
    done = parablock("train", files.train, "-s", "0", "-t", "2", "-c", "8", "-g", "16", "-e", "1e-4", "-o", "model.pbk")
    assert done.status == 0, done.err
    assert done.out == ""
    model = library.load("model.pbk")
    expected = SVC(C=8, gamma=16, tol=1e-4).fit(covtype.X, covtype.y)
    assert model.decision_function(covtype.X_test) == pytest.approx(
        expected.decision_function(covtype.X_test), abs=2e-3
    )
    assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-3)


def test_what_is_said_of_a_fit(parablock, files):
    done = parablock("train", files.train, "-o", "model.pbk")
    read, trained, wrote = done.err.splitlines()[-3:]
    assert read.startswith("read 600 rows x 54 features (dense float64) in ")
    assert trained.startswith("trained KernelSVC in ")
    assert f"{len(library.load('model.pbk').support_)} support vectors" in trained
    assert "(tolerance 0.001), duality gap" in trained
    assert "of the kernel matrix in the precision of the data" in trained
    assert wrote.startswith("wrote model.pbk (")


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("-s 0 -t 0 -c 2 -e 0.01 -q", "--task svc --kernel linear --C 2 --tol 0.01 --quiet"),
        ("-s 3 -t 1 -d 2 -r 1 -g 2 -p 0", "--task svr --kernel polynomial --degree 2 --coef0 1 --gamma 2 --epsilon 0"),
        ("-t 3 -r -0.5 -g 0.01 -m 50", "--kernel sigmoid --coef0 -0.5 --gamma 0.01 --memory-limit 50MB"),
        ("-w1 5 -w-1 0.5", "--class-weight 1=5 --class-weight=-1=0.5"),
    ],
)  # fmt: skip
def test_short_options_mean_the_long_ones(parablock, files, short, long):
    for options, name in ((short, "short.pbk"), (long, "long.pbk")):
        assert parablock("train", files.train, *options.split(), "-o", name).status == 0
    one, other = library.load("short.pbk"), library.load("long.pbk")
    assert one.get_params() == other.get_params()
    assert np.array_equal(one.dual_coef_, other.dual_coef_)


def test_options_reach_the_estimator(parablock, files):
    options = (
        "--task logistic --kernel laplacian -c 3 -g auto --no-intercept --tol 0.5 --max-iter 7 --jobs 1 "
        "--memory-limit 300MB --seed 5 --class-weight balanced --verbose"
    )
    done = parablock("train", files.train, *options.split(), "-o", "model.pbk")
    assert done.status == 0
    assert "[parablock]" in done.err
    model = library.load("model.pbk")
    assert isinstance(model, library.KernelLogisticRegression)
    expected = {
        "kernel": "laplacian", "C": 3.0, "gamma": "auto", "fit_intercept": False, "tol": 0.5, "max_iter": 7,
        "n_jobs": 1, "memory_limit": "300MB", "random_state": 5, "class_weight": "balanced", "verbose": 1,
    }  # fmt: skip
    assert expected.items() <= model.get_params().items()


def test_class_weights_are_those_of_svm_train(parablock, covtype, files):
    parablock("train", files.train, "-c", "4", "-g", "8", "-e", "1e-4", "-w1", "3", "-w-1", "0.5", "-o", "model.pbk")
    expected = SVC(C=4, gamma=8, tol=1e-4, class_weight={1: 3, -1: 0.5}).fit(covtype.X, covtype.y)
    decision = library.load("model.pbk").decision_function(covtype.X_test)
    assert decision == pytest.approx(expected.decision_function(covtype.X_test), abs=2e-3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("-s 3 -c 2 -g 0.1 -p 0.05", library.KernelSVR(C=2, gamma=0.1, epsilon=0.05)),
        ("--task ridge -c 2 -g 0.1", library.KernelRidge(C=2, gamma=0.1)),
        ("--task quantile -c 2 -g 0.1 --quantile 0.9", library.KernelQuantileRegressor(C=2, gamma=0.1, quantile=0.9)),
    ],
)
def test_regression(parablock, diabetes, options, expected):
    X, y, path = diabetes
    assert parablock("train", path, *options.split(), "-o", "model.pbk").status == 0
    model = library.load("model.pbk")
    assert type(model) is type(expected)
    assert model.predict(X) == pytest.approx(expected.fit(X, y).predict(X), abs=5e-3)


def test_the_default_name_is_that_of_the_data(parablock, files, tmp_path):
    assert parablock("train", files.train, "-q").status == 0
    assert [path.name for path in tmp_path.iterdir()] == ["train.pbk"]


def test_quiet_says_nothing(parablock, files):
    assert parablock("train", files.train, "-q", "-o", "model.pbk").err == ""


def test_an_old_model_is_replaced(parablock, files, tmp_path):
    (tmp_path / "model.pbk").write_text("old")
    assert parablock("train", files.train, "-q", "-o", "model.pbk").status == 0
    assert library.load("model.pbk").n_features_in_ == 54


# ------------------------------------------------------------------------------------------------------ kinds of data


def test_a_csv_file_with_names_and_text_labels(parablock, iris):
    iris.assign(note="text").to_csv("iris.csv", index=False)
    done = parablock("train", "iris.csv", "--target", "species", "--drop", "note", "-o", "model.pbk", "-c", "10")
    assert done.status == 0, done.err
    model = library.load("model.pbk")
    X, y = iris.drop(columns="species"), iris["species"]
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.feature_names_in_.tolist() == list(X.columns)
    expected = make_pipeline(StandardScaler(), library.KernelSVC(C=10)).fit(X, y)
    assert np.array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("kind", ["parquet", "npz", "csr npz", "npy", "headerless csv", "tsv.gz"])
def test_the_same_rows_in_other_files_give_the_same_model(parablock, iris, kind):
    X, y = iris.drop(columns="species").to_numpy(), pd.factorize(iris["species"])[0]
    frame = iris.assign(species=y)
    options = []
    if kind == "parquet":
        frame.to_parquet("data.parquet")
        path, options = "data.parquet", ["--target", "species"]
    elif kind == "npz":
        path = "data.npz"
        np.savez(path, X=X, y=y)
    elif kind == "csr npz":
        path, options = "data.npz", ["--labels", "y.txt"]
        sp.save_npz(path, sp.csr_matrix(X))
        np.savetxt("y.txt", y, fmt="%d")
    elif kind == "npy":
        path, options = "data.npy", ["--labels", "y.npy"]
        np.save(path, X)
        np.save("y.npy", y)
    elif kind == "headerless csv":
        path, options = "data.csv", ["--target", "-1"]
        frame.to_csv(path, index=False, header=False)
    else:
        path, options = "data.tsv.gz", ["--target", "5"]
        frame.to_csv(path, index=False, sep="\t")
    done = parablock("train", path, *options, "--no-scaling", "-o", "model.pbk")
    assert done.status == 0, done.err
    expected = library.KernelSVC(random_state=0).fit(X, y)
    assert np.array_equal(library.load("model.pbk").dual_coef_, expected.dual_coef_)


def test_a_precomputed_kernel_as_svm_train_takes_it(parablock, covtype):
    kernel = rbf_kernel(covtype.X[:100], gamma=16)
    numbered = np.column_stack((np.arange(1, 101), kernel))
    write_svmlight("kernel.svm", numbered, covtype.y[:100], zero_based=True)
    assert parablock("train", "kernel.svm", "-t", "4", "-c", "8", "-e", "1e-4", "-o", "model.pbk").status == 0
    given = library.load("model.pbk")
    expected = SVC(C=8, kernel="precomputed", tol=1e-4).fit(kernel, covtype.y[:100])
    assert given.decision_function(kernel) == pytest.approx(expected.decision_function(kernel), abs=2e-3)

    new = rbf_kernel(covtype.X_test, covtype.X[:100], gamma=16)
    write_svmlight("new.svm", np.column_stack((np.full(200, 7), new)), covtype.y_test, zero_based=True)
    done = parablock("predict", "model.pbk", "new.svm", "-o", "out.txt")
    assert done.status == 0, done.err
    assert np.array_equal(np.loadtxt("out.txt"), expected.predict(new))

    write_svmlight("kernel.svm", numbered[::-1], covtype.y[:100], zero_based=True)
    done = parablock("train", "kernel.svm", "-t", "4", "-o", "other.pbk")
    assert done.status == 1
    assert "the entries 0:1, 0:2, 0:3, ... number the rows" in done.err


@pytest.mark.parametrize(
    ("options", "kind"),
    [([], "dense float64"), (["--storage", "sparse"], "sparse float64"), (["--dtype", "float32"], "dense float32")],
)
def test_how_features_are_kept(parablock, files, options, kind):
    done = parablock("train", files.train, "-o", "model.pbk", *options)
    assert f"({kind})" in done.err


def test_wide_sparse_rows_stay_sparse(parablock):
    X = sp.random(60, 500, density=0.02, format="csr", random_state=0)
    write_svmlight("wide.svm", X, np.arange(60) % 2)
    done = parablock("train", "wide.svm", "-o", "model.pbk")
    assert "(sparse float64)" in done.err
    assert sp.issparse(library.load("model.pbk").support_vectors_)


# --------------------------------------------------------------------------------------------------- cross-validation


def test_cross_validation_prints_what_svm_train_prints(parablock, covtype, files, tmp_path):
    done = parablock("train", files.train, "-v", "3", "-c", "8", "-g", "16", "-q")
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    predicted = cross_val_predict(SVC(C=8, gamma=16), covtype.X, covtype.y, cv=folds)
    assert done.out == f"Cross Validation Accuracy = {100 * np.mean(predicted == covtype.y):g}%\n"
    assert done.err == ""
    assert not list(tmp_path.iterdir())


def test_cross_validation_of_a_regressor(parablock, diabetes):
    X, y, path = diabetes
    done = parablock("train", path, "-s", "3", "-v", "4", "-g", "0.1", "-e", "1e-5", "-q")
    predicted = cross_val_predict(SVR(gamma=0.1, tol=1e-5), X, y, cv=KFold(4, shuffle=True, random_state=0))
    values = [float(line.split(" = ")[1]) for line in done.out.splitlines()]
    assert "Mean squared error" in done.out.splitlines()[0]
    assert "Squared correlation coefficient" in done.out.splitlines()[1]
    assert values == pytest.approx([np.mean((predicted - y) ** 2), np.corrcoef(predicted, y)[0, 1] ** 2], rel=1e-3)


def test_cross_validation_with_a_kernel_matrix(parablock, covtype):
    np.save("K.npy", rbf_kernel(covtype.X, gamma=16))
    np.save("y.npy", covtype.y)
    given = parablock("train", "K.npy", "--labels", "y.npy", "-t", "4", "-v", "3", "-c", "8", "-q")
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    predicted = cross_val_predict(SVC(C=8, gamma=16), covtype.X, covtype.y, cv=folds)
    assert given.out == f"Cross Validation Accuracy = {100 * np.mean(predicted == covtype.y):g}%\n"


def test_cross_validation_ends_when_a_fold_is_interrupted(parablock, files, monkeypatch):
    fit, fitted = library.KernelSVC.fit, []

    def interrupted(self, X, y):
        fitted.append(fit(self, X, y))
        self.stop_reason_ = "interrupted"
        return self

    monkeypatch.setattr(library.KernelSVC, "fit", interrupted)
    done = parablock("train", files.train, "-v", "3", "-q")
    assert (done.status, done.out) == (130, "")
    assert done.err == "parablock: interrupted; no unfinished file is left\n"
    assert len(fitted) == 1


# ---------------------------------------------------------------------------------------------------- how fits end


def test_running_out_of_iterations_is_a_warning(parablock, hard):
    done = parablock("train", *hard, "-o", "model.pbk", "-q", "--max-iter", "2")
    assert done.status == 0
    assert done.err.startswith("parablock: warning: not converged after 2 iterations, violation ")
    assert "raise --max-iter or --tol" in done.err
    assert library.load("model.pbk").n_iter_ == 2


def test_what_a_last_check_finds_is_said_once(parablock, tmp_path):
    X = np.random.RandomState(0).randn(60, 3)
    write_svmlight(tmp_path / "huge.svm", X, (X[:, 0] > 0).astype(int))
    done = parablock("train", "huge.svm", "--task", "logistic", "-c", "1e15", "-o", "model.pbk")
    (warning,) = [line for line in done.err.splitlines() if "warning" in line]
    assert "seemed converged" in warning
    assert "Lower C=1e+15" in warning
    assert "--tol" not in done.err


def test_early_stopping_keeps_the_best_model(parablock, files):
    options = ["--early-stopping", "--hold-out", "0.25", "--patience", "1", "--log", "run.jsonl"]
    done = parablock("train", files.train, "-c", "32", "-g", "32", "-o", "model.pbk", *options)
    assert done.status == 0, done.err
    assert "read 600 rows" in done.err
    assert "scores on 150 rows that were held out: 0." in done.err
    assert library.load("model.pbk")._n_rows == 450
    with open("run.jsonl") as file:
        assert len([json.loads(line) for line in file]) >= 3


def test_a_time_limit_ends_a_long_fit(parablock, hard):
    done = parablock("train", *hard, "-o", "model.pbk", "--time-limit", "2s")
    assert done.status == 0
    assert "parablock: warning: stopped by --time-limit after " in done.err
    assert "the model is usable" in done.err
    assert library.load("model.pbk").violation_ > 1e-13


def test_a_checkpoint_is_gone_on_from(parablock, files):
    options = ["-c", "32", "-g", "32", "--checkpoint", "run.checkpoint", "--checkpoint-every", "0.001"]
    assert parablock("train", files.train, "-o", "first.pbk", *options, "--resume").status == 0
    refused = parablock("train", files.train, "-o", "second.pbk", *options)
    assert refused.status == 1
    assert refused.err.splitlines()[-1].startswith("parablock: error: ")
    assert "run.checkpoint" in refused.err
    again = parablock("train", files.train, "-o", "second.pbk", *options, "--resume")
    assert again.status == 0
    assert library.load("second.pbk").dual_objective_ == pytest.approx(library.load("first.pbk").dual_objective_)
    other = parablock("train", files.train, "-o", "third.pbk", *options[:2], *options[4:], "--resume")
    assert other.status == 1
    assert "another problem" in other.err


# ---------------------------------------------------------------------------------------------- models of other formats


def test_a_model_for_libsvm(parablock, covtype, files):
    done = parablock("train", files.train, "-c", "8", "-g", "16", "-o", "heart.model", "-q")
    assert done.status == 0, done.err
    with open("heart.model") as file:
        assert file.readline() == "svm_type c_svc\n"
    done = parablock("predict", "heart.model", files.test, "-o", "out.txt")
    expected = library.KernelSVC(C=8, gamma=16, random_state=0).fit(covtype.X, covtype.y).predict(covtype.X_test)
    assert np.array_equal(np.loadtxt("out.txt"), expected)


def test_a_model_that_libsvm_cannot_hold_is_not_lost(parablock, iris, tmp_path):
    iris.to_csv("iris.csv", index=False)
    done = parablock("train", "iris.csv", "--target", "species", "--no-scaling", "-o", "iris.model", "-q")
    assert done.status == 1
    assert done.err.startswith("parablock: error: ")
    assert "The model was written to iris.model.pbk instead." in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.csv", "iris.model.pbk"]
    assert library.load("iris.model.pbk").classes_.tolist() == ["setosa", "versicolor", "virginica"]
