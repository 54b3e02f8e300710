"""The CPU benchmark on a few bundled rows: its worker, its tables, and its check that nobody stops early."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import compare, cpu, cpu_runner, cpu_sections, objective, probes, running
from benchmarks.cpu_tables import (
    MARK,
    difference,
    draw_growth,
    early_stoppers,
    exponent,
    forecast,
    shortfalls,
    time_cell,
    verdict,
)
from benchmarks.worker import Task, measure, measure_apart
from tests.small_problems import rbf

ROWS = 1_500


@pytest.fixture(scope="module")
def fits():
    """parablock and scikit-learn on the same rows, and parablock after one iteration of several."""
    full = {name: measure(Task("covtype", name, rows=ROWS, test_rows=500)) for name in ("parablock", "scikit-learn")}
    early = Task("covtype", "parablock", rows=ROWS, test_rows=500, options={"max_iter": 1, "n_blocks": 8})
    return {**full, "early": measure(early)}


# ------------------------------------------------------------------------------------------------------------- a fit


@pytest.mark.slow
def test_worker_measures_a_fit(fits):
    own, peer = fits["parablock"], fits["scikit-learn"]
    assert (own.rows, own.features, own.predict_rows) == (ROWS, 54, 500)
    assert min(own.seconds, own.warm_up_seconds, own.predict_seconds) > 0
    assert own.memory >= own.memory_before > 0
    assert own.support_vectors == pytest.approx(peer.support_vectors, rel=0.01)
    assert own.accuracy == pytest.approx(peer.accuracy, abs=0.01)
    assert own.dual_objective == pytest.approx(peer.dual_objective, rel=1e-4)
    assert max(own.infeasibility, peer.infeasibility) < 1e-6
    assert own.work >= 1
    assert peer.work is None
    assert own.history[-1][1] == pytest.approx(-own.dual_objective, rel=1e-4)


@pytest.mark.slow
def test_worker_in_a_fresh_process_tells_the_same(fits):
    apart = measure_apart(Task("covtype", "parablock", rows=ROWS, test_rows=500))
    assert apart.dual_objective == pytest.approx(fits["parablock"].dual_objective, rel=1e-6)
    assert apart.support_vectors == fits["parablock"].support_vectors


@pytest.mark.slow
def test_a_failed_process_is_none():
    assert measure_apart(Task("covtype", "no such program")) is None


def test_share_takes_fewer_rows():
    data = Task("covtype7", "parablock", rows=20_000, share=0.01).load()
    assert (len(data.y_train), len(data.y_test)) == (200, 100)
    assert len(set(data.y_train)) > 2


# --------------------------------------------------------------------------------------------------------- objectives


@pytest.mark.parametrize("form", ["dense", "narrow sparse", "wide sparse", "float32"])
def test_dual_objective_equals_its_formula(form, monkeypatch):
    random = np.random.default_rng(0)
    X, coef = random.random((70, 5)), random.standard_normal((2, 70))
    monkeypatch.setattr(objective, "TILE", 32)
    if form == "float32":
        monkeypatch.setattr(objective, "EXACT_UP_TO", 0)
    if form == "wide sparse":
        monkeypatch.setattr(objective, "NARROW", 0)
    vectors = sp.csr_matrix(X) if "sparse" in form else X
    expected = np.abs(coef).sum() - 0.5 * np.trace(coef @ rbf(X, gamma=0.7) @ coef.T)
    assert objective.hinge_dual(vectors, coef, 0.7) == pytest.approx(expected, rel=1e-5 if form == "float32" else 1e-12)


def test_ridge_objective_is_largest_at_the_solution():
    random = np.random.default_rng(0)
    X, y = random.random((40, 3)), random.standard_normal(40)
    best = np.linalg.solve(rbf(X, gamma=1.0) + np.eye(40) / 6, y)
    value = objective.ridge_dual(X, best, 1.0, y, C=3)
    for _ in range(10):
        assert objective.ridge_dual(X, best + 0.01 * random.standard_normal(40), 1.0, y, C=3) < value


def test_an_early_stopper_is_marked(fits):
    assert shortfalls(fits)["early"] > 1e-4
    assert early_stoppers(fits) == {"early"}
    assert MARK in time_cell("early", fits)
    assert MARK not in time_cell("parablock", fits)
    assert MARK in difference(fits["early"], fits["parablock"])
    assert MARK not in difference(fits["parablock"], fits["scikit-learn"])
    assert "stopped early" in verdict(time_cell("early", fits))
    assert "No program" in verdict(time_cell("parablock", fits))


def test_one_that_breaks_the_constraints_is_marked_and_not_a_measure_for_others(fits):
    cheat = replace(fits["parablock"], dual_objective=1.1 * fits["parablock"].dual_objective, infeasibility=1e-3)
    assert early_stoppers({"cheat": cheat, "scikit-learn": fits["scikit-learn"]}) == {"cheat"}


def test_what_was_not_measured_or_failed_is_said(fits):
    results = {"parablock": fits["parablock"], "intelex": None}
    assert time_cell("scikit-learn", results) == "-"
    assert time_cell("intelex", results) == "failed"
    assert early_stoppers(results) == set()


# ------------------------------------------------------------------------------------------------- programs and tables


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The benchmark with fits in this process, covtype only, and results in a folder of the test's own."""
    monkeypatch.setattr(cpu_runner, "measure_apart", measure)
    monkeypatch.setattr(cpu_sections, "PEERS", (("covtype", 20_000, True),))
    monkeypatch.setattr(cpu_sections, "_intelex_is_there", lambda: False)
    monkeypatch.setattr(running, "RESULTS", tmp_path)
    monkeypatch.setattr(cpu_sections, "RESULTS", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_sections_print_tables_and_write_numbers(here, capsys):
    assert cpu.main(["peers", "prediction", "classes", "--share", "0.02"]) == 0
    printed = capsys.readouterr().out
    assert "| covtype | 400 |" in printed
    assert MARK not in printed
    widths = {line.count("|") for line in printed.splitlines() if line.startswith("| data | rows | parablock, s")}
    assert widths == {line.count("|") for line in printed.splitlines() if line.startswith("| covtype | 400 |")} & widths
    report = json.loads((here / "cpu-peers-trial.json").read_text())
    assert report["machine"]["versions"]["parablock"]
    assert [one["program"] for one in report["results"]] == ["parablock", "scikit-learn"]
    assert (here / "cpu-classes-trial.json").exists()


def test_growth_gives_exponents_and_a_picture(here, monkeypatch, capsys):
    monkeypatch.setattr(cpu_sections, "GROWTH_ROWS", (10_000, 20_000))
    assert cpu.main(["growth", "--share", "0.02"]) == 0
    assert "seconds grow as n to the power" in capsys.readouterr().out
    assert (here / "growth-trial.png").read_bytes().startswith(b"\x89PNG")


def test_growth_is_fitted_and_forecast(tmp_path):
    points = [(n, 3e-8 * n**1.7) for n in (1_000, 2_000, 4_000)]
    assert exponent(points) == pytest.approx(1.7)
    assert exponent(points[:1]) is None
    assert forecast(points, 8_000) == pytest.approx(3e-8 * 8_000**1.7)
    assert forecast(points[:1], 2_000) == pytest.approx(4 * points[0][1])
    draw_growth({"one": points, "none": []}, tmp_path / "new" / "growth.png")
    assert (tmp_path / "new" / "growth.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "unknown section nothing"),
        (["--quick", "--write-docs"], "whole measurements"),
        (["--share", "2"], "above 0 and up to 1"),
        (["--repeat", "0"], "1 or more"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        cpu.main(arguments)
    assert message in capsys.readouterr().err


def test_document_gets_the_section_between_its_markers(tmp_path):
    path = tmp_path / "performance.md"
    path.write_text("a\n<!-- measured: peers -->\nold\n<!-- end -->\nb\n<!-- measured: work -->\nkept\n<!-- end -->\n")
    cpu.write_document("peers", "new", path)
    cpu.write_document("peers", "newer", path)
    text = path.read_text()
    assert "newer" in text
    assert "old" not in text
    assert "kept" in text
    assert (text.startswith("a\n"), "\nb\n" in text) == (True, True)
    with pytest.raises(ValueError, match="no place for the section"):
        cpu.write_document("growth", "new", path)


def test_document_of_the_repository_has_a_place_for_every_section(tmp_path):
    path = tmp_path / "performance.md"
    path.write_bytes(cpu.DOCUMENT.read_bytes())
    for section in cpu_sections.SECTIONS:
        cpu.write_document(section, "measured", path)


def test_compare_makes_a_table(fits):
    lines = compare.table([(fits["parablock"], fits["scikit-learn"])]).splitlines()
    assert len(lines) == 3
    assert len({line.count("|") for line in lines}) == 1


def test_throughput_is_measured_against_a_limit():
    found = probes.throughput(8, rows=2_048)
    assert found["kernel_dot"] > 0
    assert found["limit"] < min(found["product"], found["exponential"])
    assert found["share"] == pytest.approx(found["kernel_dot"] / found["limit"])


def test_compilation_is_the_first_fit_less_the_second():
    found = probes.compilation("hinge", rows=300)
    assert found["compile_seconds"] == found["first_seconds"] - found["second_seconds"]
