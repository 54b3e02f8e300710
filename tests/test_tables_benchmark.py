"""The benchmark of tables: splits, one measurement, going on with a run, what results come to, and its limits."""

import json

import numpy as np
import pytest

from benchmarks import tables


def cell(error, estimate=None, task="r", **more):
    return {"error": error, "task": task, "test_rows": 100, "fit_seconds": 1.0, **more} | (
        {} if estimate is None else {"estimate": estimate}
    )


def all_tables(ours, theirs, estimate=1.0):
    cells = {}
    for table in tables.TABLES:
        for split in range(1, tables.SPLITS + 1):
            cells[f"parablock/{table}/{split}"] = cell(ours, ours * estimate)
            cells[f"catboost/{table}/{split}"] = cell(theirs)
    return cells


def test_splits_are_repeatable_and_apart():
    one, again, other = (tables.load_split("digits", split, 300) for split in (1, 1, 2))
    assert one.X.shape == (300, 64)
    assert len(one.X_test) == 1797 - 300
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X, other.X)
    assert tables.load_split("diabetes", 1).y.std() == pytest.approx(1)
    assert len(tables.load_split("iris", 1).y) == 90  # 60 % of a small table
    with pytest.raises(FileNotFoundError, match="Bundled tables: diabetes"):
        tables.load_split("nowhere", 1)


@pytest.mark.parametrize("name", ["parablock", "histogram boosting"])
def test_a_fit_is_measured(name):
    found = tables.measure(name, "wine", 1, 60)
    assert found["rows"] == 60
    assert 0 <= found["error"] < 0.2
    assert 0 < found["log_loss"] < 1
    assert ("estimate" in found) == (name == "parablock")


def test_a_run_goes_on_where_it_was(tmp_path):
    path, calls = tmp_path / "found.json", []

    def work(module, *arguments, environment):
        calls.append((arguments[1:4], environment["OPENBLAS_NUM_THREADS"]))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return cell(0.1)

    settings = (["parablock", "random forest"], ["iris"], 1, 90, 1, False)
    with pytest.raises(KeyboardInterrupt):
        tables.run(path, *settings, work=work)
    assert list(json.loads(path.read_text())["cells"]) == ["parablock/iris/1"]
    found = tables.run(path, *settings, work=work)
    assert [one[0][0] for one in calls] == ["parablock", "random forest", "random forest"]
    assert set(found["cells"]) == {"parablock/iris/1", "random forest/iris/1"}
    with pytest.raises(SystemExit, match="results of 90 rows"):
        tables.run(path, ["parablock"], ["iris"], 1, 50, 1, False, work=work)


def test_what_results_come_to():
    cells = {
        "parablock/iris/1": cell(0.1, task="c", log_loss=0.2),
        "parablock/diabetes/1": cell(0.5, 0.6),
        "parablock/diabetes/2": cell(0.7, 0.6),
        "random forest/iris/1": cell(0.2, task="c", log_loss=0.4),
        "random forest/diabetes/1": cell(0.4),
    }
    errors = tables.mean_errors(cells)
    ratios = tables.compared(errors["parablock"], errors["random forest"])
    assert ratios == {"iris": (pytest.approx(0.105 / 0.205), 1), "diabetes": (pytest.approx(1.25), 1)}
    assert tables.mean_ranks(errors, ["parablock", "random forest"], ["iris", "diabetes"]) == {
        "parablock": 1.5,
        "random forest": 1.5,
    }
    told = tables.report(cells)
    assert f"| random forest | 1 of 2 | {np.sqrt(0.105 / 0.205 * 1.25):.3f} | 0.500 |" in told
    assert "| diabetes | 1.000 |" in told


def test_limits_that_are_missed_are_an_error(tmp_path, capsys):
    assert tables.shortfalls(all_tables(0.8, 1.0)) == []
    assert len(tables.shortfalls(all_tables(0.95, 1.0))) == 1  # better on all, but not by enough
    assert len(tables.shortfalls(all_tables(1.1, 1.0))) == 2
    assert "estimate over test error 0.800" in tables.shortfalls(all_tables(0.8, 1.0, 0.8))[0]
    some = {key: value for key, value in all_tables(1.1, 1.0).items() if "airfoil" not in key}
    assert tables.shortfalls(some) == []  # not yet measured completely
    path = tmp_path / "found.json"
    tables.write_results(path, {"cells": all_tables(1.1, 1.0)})
    with pytest.raises(SystemExit):
        tables.main(["--report", "--output", str(path)])
    assert "short of its limit: ratio of errors to catboost 1.100, more than 0.89" in capsys.readouterr().err


def test_the_program_measures_in_processes_of_their_own(tmp_path):
    options = ["--tables", "iris", "--methods", "histogram boosting", "--splits", "1", "--rows", "60"]
    found = tables.main([*options, "--output", str(tmp_path / "found.json")])
    assert found["cells"]["histogram boosting/iris/1"]["threads"]["OPENBLAS_NUM_THREADS"] == "1"
