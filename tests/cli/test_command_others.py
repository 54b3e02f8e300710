"""`parablock info`, `convert`, `plan`, `report` and `demo`, and the command without a command."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import parablock as library
from parablock.cli import COMMANDS
from parablock.datasets import write_svmlight


def test_help_fits_a_screen(parablock):
    for arguments in ((), ("--help",), ("help",)):
        done = parablock(*arguments)
        assert done.status == 0
        assert len(done.out.splitlines()) <= 40
        assert max(map(len, done.out.splitlines())) <= 110
        assert all(f"\n  {command} " in done.out for command in COMMANDS)
    assert "examples:" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(parablock, command):
    done = parablock(command, "--help")
    assert done.status == 0
    assert done.out.startswith(f"usage: parablock {command} ")
    assert done.err == ""


def test_svm_trains_options_are_in_the_help(parablock):
    text = parablock("train", "--help").out
    assert "as in svm-train" in text
    assert all(f"  -{letter} " in text for letter in "stcgdrpemv")
    assert "-wLABEL WEIGHT" in text


def test_version(parablock):
    assert parablock("--version").out == f"parablock {library.__version__}\n"


# ----------------------------------------------------------------------------------------------------------------- info


def test_info(parablock, model_file):
    done = parablock("info", model_file)
    assert done.status == 0
    told = dict(line.split("  ", 1) for line in done.out.splitlines() if "  " in line.strip())
    told = {name: value.strip() for name, value in told.items()}
    assert told["estimator"] == "KernelSVC"
    assert told["features"] == "54"
    assert told["support vectors"] == f"{len(library.load(model_file).support_)}"
    assert told["classes"] == "-1, 1"


def test_info_as_json(parablock, model_file):
    from parablock.models import describe

    assert json.loads(parablock("info", model_file, "--json").out) == describe(model_file)


def test_info_of_a_libsvm_model(parablock, model_file):
    parablock("convert", model_file, "heart.model")
    assert "c_svc" in parablock("info", "heart.model").out


# -------------------------------------------------------------------------------------------------------------- convert


def test_a_model_to_libsvm_and_onnx(parablock, covtype, model_file):
    import onnxruntime

    expected = library.load(model_file).predict(covtype.X_test)
    done = parablock("convert", model_file, "heart.model")
    assert done.status == 0
    assert done.err == "wrote the model to heart.model as libsvm\n"
    from libsvm.svmutil import svm_load_model, svm_predict

    theirs, _, _ = svm_predict([], covtype.X_test, svm_load_model("heart.model"), "-q")
    assert theirs == expected.tolist()
    assert parablock("convert", model_file, "model.onnx", "-q").err == ""
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    rows = covtype.X_test.astype(np.float32 if "float)" in given.type else np.float64)
    labels = session.run(None, {given.name: rows})[0]
    assert np.mean(labels == expected) > 0.99


def test_a_model_of_its_own_format_is_copied(parablock, covtype, model_file):
    assert parablock("convert", model_file, "copy.pbk").status == 0
    copy = library.load("copy.pbk")
    assert np.array_equal(
        copy.decision_function(covtype.X_test), library.load(model_file).decision_function(covtype.X_test)
    )


def test_data_through_all_formats(parablock, covtype, files):
    steps = [
        (files.train, "a.npz", []),
        ("a.npz", "b.svm.gz", []),
        ("b.svm.gz", "X.npy", ["--labels-out", "y.npy"]),
        ("X.npy", "c.txt", ["--labels", "y.npy"]),
    ]
    for source, target, options in steps:
        done = parablock("convert", source, target, *options)
        assert done.status == 0, done.err
        assert f"600 rows x 54 features to {target}" in done.err
    assert np.array_equal(sp.load_npz("a.npz").toarray(), covtype.X)
    assert np.array_equal(np.load("X.npy"), covtype.X)
    assert np.array_equal(np.load("y.npy"), covtype.y)
    X, y = load_svmlight_file("c.txt")
    assert np.array_equal(X.toarray(), covtype.X)
    assert np.array_equal(y, covtype.y)


def test_a_table_to_text(parablock):
    with open("table.csv", "w") as file:
        file.write("a,name,b,label\n1,x,0,3\n0,y,2.5,4\n")
    assert parablock("convert", "table.csv", "table.svm", "--target", "label", "--drop", "name").status == 0
    with open("table.svm") as file:
        assert file.read() == "3 1:1.0\n4 2:2.5\n"


def test_the_format_and_the_number_of_features_can_be_said(parablock):
    with open("zero", "w") as file:
        file.write("1 0:5\n2 1:6\n")
    assert parablock("convert", "zero", "out", "--zero-based", "--to", "npz", "--features", "4").status == 0
    assert sp.load_npz("out").toarray().tolist() == [[5, 0, 0, 0], [0, 6, 0, 0]]


def test_features_are_scaled_alike_in_training_and_test_data(parablock, covtype, files):
    assert parablock("convert", files.train, "train.npz", "--save-scaling", "scaling.json").status == 0
    (files.folder / "some.svm").write_text("".join(line + "\n" for line in files.test.read_text().splitlines()[:50]))
    assert parablock("convert", files.folder / "some.svm", "test.npz", "--use-scaling", "scaling.json").status == 0
    scaler = StandardScaler().fit(covtype.X)
    assert np.load("train.npz")["X"] == pytest.approx(scaler.transform(covtype.X))
    assert np.load("test.npz")["X"] == pytest.approx(scaler.transform(covtype.X_test[:50]))


def test_sparse_features_are_scaled_and_stay_sparse(parablock):
    X = sp.random(50, 30, density=0.1, format="csr", random_state=0) * 7
    write_svmlight("wide.svm", X, np.arange(50) % 2)
    assert (
        parablock("convert", "wide.svm", "scaled.npz", "--features", "30", "--save-scaling", "scaling.json").status == 0
    )
    assert sp.load_npz("scaled.npz").toarray() == pytest.approx(MaxAbsScaler().fit_transform(X).toarray())


def test_the_recipe_for_scaling_finds_columns_by_their_names(parablock, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)) * [1, 100, 10_000], columns=["long", "wide", "deep"])
    table["price"] = 3 * table["long"] + table["wide"] / 100
    table[:40].to_csv("train.csv", index=False)
    table[40:].to_csv("test.csv", index=False)
    table.loc[40:, ["deep", "price", "long", "wide"]].to_csv("other.csv", index=False)
    table.loc[40:, ["wide", "deep", "long"]].to_csv("index.csv")
    assert parablock("convert", "train.csv", "train.npz", "--target", "price", "--save-scaling", "s.json").status == 0
    assert parablock("train", "train.npz", "--task", "svr", "-o", "model.pbk").status == 0
    assert library.load("model.pbk").feature_names_in_.tolist() == ["long", "wide", "deep"]
    predicted = []
    for name, options in (("test", ["--target", "price"]), ("other", ["--target", "price"]), ("index", [])):
        done = parablock("convert", f"{name}.csv", "t.npz", "--use-scaling", "s.json", *options)
        assert done.status == 0, done.err
        predicted.append(parablock("predict", "model.pbk", "t.npz", "-q").out)
    assert predicted[0] == predicted[1] == predicted[2]
    # Not scaled, and in another order: the model finds its columns too.
    parablock("convert", "other.csv", "raw.npz", "--target", "price")
    other = parablock("predict", "model.pbk", "raw.npz", "-q").out
    assert other == parablock("predict", "model.pbk", "test.csv", "--target", "price", "-q").out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "this is no file of --save-scaling"),
        ("[", "this is no file of --save-scaling"),
        ('{"format": "parablock scaling 2"}', "it says 'parablock scaling 2'"),
        ('{"format": "parablock scaling 1", "offset": [1], "factor": [1, 2]}', "one number a feature"),
        ('{"format": "parablock scaling 1", "offset": null, "factor": [1], "names": [1]}', "one name a feature"),
        (f'{{"format": "parablock scaling 1", "offset": null, "factor": [1{"0" * 400}]}}', "no file of --save-scaling"),
        ('{"format": "parablock scaling 1", "offset": null, "factor": [1, 2]}', "54 features, and the scaling is of 2"),
    ],
)
def test_scalings_that_do_not_fit(parablock, files, content, message, tmp_path):
    (tmp_path / "scaling.json").write_text(content)
    done = parablock("convert", files.train, "out.npz", "--use-scaling", "scaling.json")
    assert done.status == 1
    assert message in done.err
    assert not (tmp_path / "out.npz").exists()


# ----------------------------------------------------------------------------------------------- plan, report and demo


def test_plan_prints_the_forecast(parablock):
    options = "--rows 1e6 --features 54 --ranks 16 --device cuda --data sharded --memory-limit 64GB --tol 0.05"
    done = parablock("plan", *options.split())
    expected = library.plan(1_000_000, 54, ranks=16, device="cuda", data="sharded", memory_limit="64GB", tol=0.05)
    assert done.out == f"{expected}\nfor an NVIDIA H200; --measure: for this machine\n"
    done = parablock("plan", "--rows", "1000", "--features", "10")
    assert done.out == f"{library.plan(1000, 10)}\nfor a server of 16 cores; --measure: for this machine\n"
    assert library.plan(1000, 10).threads == 16


@pytest.mark.parametrize(("support", "expected"), [("0.25", 25_000), ("1.0", 100_000), ("3000", 3000), ("1", 1)])
def test_plan_as_json_with_support_vectors_as_share_or_count(parablock, support, expected):
    done = parablock("plan", "--rows", "100000", "--features", "20", "--support", support, "--json")
    told = json.loads(done.out)
    assert told["support_vectors"] == expected
    assert told["seconds"]["products"] > 0


def test_plan_for_this_machine(parablock):
    done = parablock("plan", "--rows", "20_000", "--features", "20", "--measure")
    assert done.status == 0
    assert "rows x features    20,000 x 20" in done.out
    assert done.out.endswith("\nfor this machine\n")


def test_a_report_of_a_log(parablock, files):
    parablock("train", files.train, "-o", "model.pbk", "--log", "run.jsonl", "-q")
    done = parablock("report", "run.jsonl", "-o", "page.html")
    assert done.status == 0, done.err
    assert done.err == "wrote page.html\n"
    with open("page.html") as file:
        assert "KernelSVC" in file.read()
    assert parablock("report", "run.jsonl", "-q").status == 0
    with open("run.html") as file:
        assert "<html" in file.read()


def test_a_log_that_is_none(parablock, tmp_path):
    (tmp_path / "run.jsonl").write_text("something else\n")
    done = parablock("report", "run.jsonl")
    assert done.status == 1
    assert done.err.startswith("parablock: error: ")
    assert not (tmp_path / "run.html").exists()


def test_the_demo(parablock, tmp_path):
    done = parablock("demo", "--rows", "300", "--no-compare", "--output", "picture.png")
    assert done.status == 0, done.err
    assert "300 training rows" in done.out
    assert "test accuracy" in done.out
    assert (tmp_path / "picture.png").stat().st_size > 10_000
