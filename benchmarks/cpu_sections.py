"""The sections of `benchmarks.cpu`: each measures something and returns its tables and all of its numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import probes
from benchmarks.cpu_runner import Report, Runner, name_and_rows, numbers_of
from benchmarks.cpu_tables import (
    Results,
    cell,
    difference,
    draw_growth,
    exponent,
    forecast,
    of,
    ratio,
    time_cell,
    verdict,
)
from benchmarks.data import REPOSITORY
from benchmarks.running import RESULTS, markdown_table, note
from benchmarks.worker import Measurement, Task

OURS, INTELEX, SKLEARN = "parablock", "intelex", "scikit-learn"
# Data set, rows (None: all), and whether scikit-learn's SVC needs less than about a minute.
PEERS: tuple[tuple[str, int | None, bool], ...] = (
    ("covtype", 20_000, True),
    ("covtype", 50_000, False),
    ("ijcnn1", None, True),
    ("a9a", None, True),
    ("mnist", None, False),
    ("cod-rna", None, True),
)
GROWTH_ROWS = (10_000, 20_000, 40_000, 80_000, 160_000)
GROWTH_LIMIT = 300.0  # seconds: a peer is not started where the forecast is longer
GROWTH_TEST_ROWS = 10_000
FEATURES = (22, 54, 784)

FULL_COVTYPE_ROWS = 464_810
# Coarser than elsewhere: training passes the wanted objective on its way there.
FULL_COVTYPE_TOL = 0.05
FULL_COVTYPE_ERROR = 1e-3


# --------------------------------------------------------------------------------------------- peers, prediction, work


def _peer_results(runner: Runner, again: bool, programs: Sequence[str] = (OURS, INTELEX, SKLEARN)) -> list[Results]:
    everything = []
    for data, rows, quick_enough in PEERS:
        asked = [name for name in programs if name != SKLEARN or quick_enough]
        asked = [name for name in asked if name != INTELEX or _intelex_is_there()]
        everything.append(runner.side_by_side([Task(data, name, rows=rows) for name in asked], again))
    return everything


def _intelex_is_there() -> bool:
    there = find_spec("sklearnex") is not None
    if not there:
        note("scikit-learn-intelex is not installed: its columns stay empty (pip install scikit-learn-intelex)")
    return there


def peers(runner: Runner) -> Report:
    """Fits beside scikit-learn-intelex and scikit-learn."""
    everything = _peer_results(runner, again=True)
    times, rest = [], []
    for results in everything:
        own, intelex, sklearn = (results.get(name) for name in (OURS, INTELEX, SKLEARN))
        name, rows = name_and_rows(results)
        times.append(
            (name, rows, *(time_cell(program, results) for program in (OURS, INTELEX, SKLEARN)), ratio(intelex, own))
            + (difference(own, intelex), difference(own, sklearn))
            + tuple(of(one, "warm_up_seconds", ".1f") for one in (own, intelex, sklearn))
        )
        forms = (("support_vectors", ","), ("accuracy", ".2%"), ("predict_seconds", ".2f"), ("memory", ",.0f"))
        both = tuple(of(one, attribute, form) for attribute, form in forms for one in (own, intelex))
        rest.append((name, rows, *both, of(own, "iterations", ","), of(own, "work", ".2f")))
    time_head = (
        "data", "rows", "parablock, s", "intelex, s", "scikit-learn, s", "intelex / parablock",
        "objective against intelex", "against scikit-learn", "first small fit, s", "intelex", "scikit-learn",
    )  # fmt: skip
    rest_head = (
        "data", "rows", "support vectors", "intelex", "test accuracy", "intelex", "prediction, s", "intelex",
        "peak memory, MB", "intelex", "outer iterations", "kernel evaluations / (n n_sv)",
    )  # fmt: skip
    table = markdown_table(time_head, times)
    text = "\n\n".join((table, verdict(table), markdown_table(rest_head, rest)))
    return Report(text, {"results": [one for results in everything for one in numbers_of(results)]})


def prediction(runner: Runner) -> Report:
    """Prediction of the test rows beside scikit-learn-intelex."""
    everything = _peer_results(runner, again=False)
    rows = []
    for results in everything:
        own, intelex = results.get(OURS), results.get(INTELEX)
        rate = None
        if own is not None and own.support_vectors:
            rate = own.predict_rows * own.support_vectors / own.predict_seconds / 1e6
        forms = (("support_vectors", ","), ("predict_seconds", ".3f"))
        both = (of(one, attribute, form) for attribute, form in forms for one in (own, intelex))
        line = (name_and_rows(results)[0], of(own, "predict_rows", ","), *both)
        rows.append((*line, ratio(intelex, own, "predict_seconds"), cell(rate, ",.0f")))
    head = (
        "data", "test rows", "support vectors", "intelex", "parablock, s", "intelex, s", "intelex / parablock",
        "parablock's kernel values, M/s",
    )  # fmt: skip
    return Report(
        markdown_table(head, rows), {"results": [one for results in everything for one in numbers_of(results)]}
    )


def work(runner: Runner) -> Report:
    """Kernel values computed, and how fast."""
    fits = []
    measured: list[dict[str, Any]] = []
    for data, rows in (("covtype", 50_000), ("ijcnn1", None), ("mnist", None)):
        results = runner.side_by_side([Task(data, OURS, rows=rows)], again=False)
        own = results[OURS]
        counts = (of(own, name, ",") for name in ("support_vectors", "kernel_evaluations", "iterations"))
        fits.append((*name_and_rows(results), *counts, of(own, "work", ".2f")))
        measured += numbers_of(results)
    fits_head = (
        "data", "rows", "support vectors", "kernel evaluations", "outer iterations", "evaluations / (n n_sv)",
    )  # fmt: skip
    tiles, rates = [], []
    scale = () if runner.share == 1 else (str(max(2_048, round(runner.share * probes.ROWS))),)
    for features in FEATURES:
        found = runner.probe("throughput", str(features), *scale)
        if found is None:
            continue
        rates.append(found)
        billions = (f"{found[name] / 1e9:.3f}" for name in ("kernel_dot", "product", "exponential", "limit"))
        tiles.append((f"{features}", *billions, f"{found['share']:.0%}"))
    tiles_head = (
        "features", "kernel_dot, G values/s", "matrix product alone", "exponential alone", "both: the limit",
        "share of the limit",
    )  # fmt: skip
    text = f"{markdown_table(fits_head, fits)}\n\n{markdown_table(tiles_head, tiles)}"
    return Report(text, {"results": measured, "throughput": rates})


# -------------------------------------------------------------------------------------------------------------- growth


def growth(runner: Runner) -> Report:
    """Seconds against rows."""
    curves: dict[str, list[tuple[int, float]]] = {OURS: [], INTELEX: []}
    rows, measured = [], []
    peer_is_there = _intelex_is_there()
    for n in GROWTH_ROWS:
        slow = bool(curves[INTELEX]) and forecast(curves[INTELEX], round(n * runner.share)) > GROWTH_LIMIT
        names = [OURS] + ([INTELEX] if peer_is_there and not slow else [])
        tasks = [Task("covtype", name, rows=n, test_rows=GROWTH_TEST_ROWS) for name in names]
        results = runner.side_by_side(tasks)
        own, peer = results[OURS], results.get(INTELEX)
        for name, one in results.items():
            if one is not None:
                curves[name].append((one.rows, one.seconds))
        measured += numbers_of(results)
        cells = (time_cell(OURS, results), time_cell(INTELEX, results), ratio(peer, own), difference(own, peer))
        rest = (of(own, name, form) for name, form in (("support_vectors", ","), ("iterations", ","), ("work", ".2f")))
        memory = (of(own, "memory", ",.0f"), of(peer, "memory", ",.0f"))
        rows.append((f"{round(n * runner.share):,}", *cells, *rest, *memory))
    common = [point for point in curves[OURS] if point[0] in {n for n, _ in curves[INTELEX]}]
    powers = {
        OURS: exponent(curves[OURS]),
        INTELEX: exponent(curves[INTELEX]),
        "parablock, on the rows that intelex was measured on": exponent(common),
    }
    head = (
        "rows", "parablock, s", "intelex, s", "intelex / parablock", "objective against intelex", "support vectors",
        "outer iterations", "evaluations / (n n_sv)", "peak memory, MB", "intelex",
    )  # fmt: skip
    picture = REPOSITORY / "docs" / "images" / "growth.png" if runner.share == 1 else RESULTS / "growth-trial.png"
    _draw({OURS: curves[OURS], "scikit-learn-intelex": curves[INTELEX]}, picture)
    table = markdown_table(head, rows)
    text = [
        table,
        verdict(table),
        f"A fit of scikit-learn-intelex is left out where more than {GROWTH_LIMIT:.0f} s are to be expected.",
        markdown_table(("seconds grow as n to the power", ""), [(name, cell(p, ".2f")) for name, p in powers.items()]),
        "![Seconds to fit against training rows](images/growth.png)",
    ]
    return Report("\n\n".join(text), {"results": measured, "exponents": powers})


def _draw(curves: dict[str, list[tuple[int, float]]], picture: Path) -> None:
    try:
        draw_growth(curves, picture)
    except ImportError:
        note("matplotlib is not installed: no picture (pip install matplotlib)")
    else:
        note(f"Picture: {picture}")


# ------------------------------------------------------------------------------------- logistic and ridge, many classes


def logistic(runner: Runner) -> Report:
    """Logistic regression beside the hinge loss and an approximation, ridge regression beside scikit-learn's."""
    names = (OURS, "parablock logistic", "Nystroem")
    classification = runner.side_by_side([Task("covtype", name, rows=20_000) for name in names])
    hinge = classification[OURS]
    labels = (
        "parablock, hinge loss",
        "parablock, logistic loss",
        "scikit-learn, Nystroem (1,000 landmarks) + LogisticRegression",
    )
    rows = []
    for label, one in zip(labels, classification.values()):
        multiple = ratio(one, hinge)
        forms = (("accuracy", ".2%"), ("support_vectors", ","), ("iterations", ","), ("work", ".2f"))
        numbers = (of(one, name, form) for name, form in forms)
        rows.append((label, of(one, "seconds", ".2f"), multiple, *numbers, of(one, "violation", ".1e")))
    head = (
        f"covtype, {name_and_rows(classification)[1]} rows", "s", "multiple of the hinge loss", "test accuracy",
        "coefficients not zero", "iterations", "evaluations / (n n_sv)", "violation",
    )  # fmt: skip
    regression = runner.side_by_side(
        [Task("cadata", name, rows=10_000) for name in ("parablock ridge", "scikit-learn ridge")]
    )
    own, peer = regression.values()
    lines = []
    for name, one in regression.items():
        forms = (("predict_seconds", ".3f"), ("accuracy", ".4f"), ("memory", ",.0f"), ("iterations", ","))
        lines.append((name, time_cell(name, regression), *(of(one, attribute, form) for attribute, form in forms)))
    ridge_head = (f"cadata, {name_and_rows(regression)[1]} rows", "s", "prediction, s", "test R²", "peak memory, MB",
                  "iterations")  # fmt: skip
    summary = f"Dual objective of parablock's ridge regression against scikit-learn's: {difference(own, peer)}."
    ridge_table = markdown_table(ridge_head, lines)
    text = "\n\n".join((markdown_table(head, rows), ridge_table, summary, verdict(ridge_table)))
    return Report(text, {"results": numbers_of(classification) + numbers_of(regression)})


def classes(runner: Runner) -> Report:
    """Seven classes in one fit beside two."""
    results = {data: runner.side_by_side([Task(data, OURS, rows=50_000)])[OURS] for data in ("covtype", "covtype7")}
    rows = []
    for label, one in zip(("two classes", "seven classes, one against the rest, one fit"), results.values()):
        forms = (("predict_seconds", ".2f"), ("support_vectors", ","), ("iterations", ","), ("work", ".2f"))
        numbers = (of(one, name, form) for name, form in forms)
        multiple = ratio(one, results["covtype"])
        rows.append((label, of(one, "seconds", ".2f"), multiple, of(one, "accuracy", ".2%"), *numbers))
    head = (
        f"covtype, {name_and_rows(results)[1]} rows", "s", "multiple", "test accuracy", "prediction, s",
        "support vectors", "iterations", "evaluations / (n n_sv)",
    )  # fmt: skip
    return Report(markdown_table(head, rows), {"results": numbers_of(results)})


# ----------------------------------------------------------------------------------------- compilation, sparse, covtype


def compilation(runner: Runner) -> Report:
    """What the first fit of a process costs, with an empty cache of compiled functions and with a full one."""
    rows, found = [], []
    for loss in probes.LOSSES:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("empty", "full"):  # the first process fills the cache that the second one finds
                one = runner.probe("compilation", loss, environment={"NUMBA_CACHE_DIR": folder})
                if one is None:
                    break
                found.append({**one, "cache": state})
                names = ("import_seconds", "first_seconds", "second_seconds", "compile_seconds")
                rows.append((f"{loss}, {state} cache", *(f"{one[name]:.2f}" for name in names)))
    head = (f"{probes.SMALL_ROWS:,} rows of covtype", "import, s", "first fit, s", "second, s", "difference, s")
    return Report(markdown_table(head, rows), {"results": found})


def sparse(runner: Runner) -> Report:
    """Text with 199,410 features."""
    names = [OURS] + ([INTELEX] if _intelex_is_there() else []) + [SKLEARN]
    results = runner.side_by_side([Task("news20", name) for name in names])
    rows = []
    for name, one in results.items():
        total = None if one is None else one.seconds + one.predict_seconds
        forms = (("accuracy", ".2%"), ("support_vectors", ","), ("memory", ",.0f"))
        numbers = (of(one, attribute, form) for attribute, form in forms)
        against = difference(results[OURS], one) if name != OURS else "-"
        spent = (time_cell(name, results), of(one, "predict_seconds", ".2f"), cell(total, ".2f"))
        rows.append((name, *spent, *numbers, against))
    head = (
        f"news20, {name_and_rows(results)[1]} rows, C=1, gamma=1", "fit, s", "prediction, s", "both, s",
        "test accuracy", "support vectors", "peak memory, MB", "parablock's objective against it",
    )  # fmt: skip
    table = markdown_table(head, rows)
    return Report(f"{table}\n\n{verdict(table)}", {"results": numbers_of(results)})


def covtype(runner: Runner) -> Report:
    """All rows, no intercept: how soon the objective is within 1e-3, and how accurate the machine is then.

    The first fit goes on to a fixed tolerance and tells by its history in which iteration the error is small enough;
    a second one stops there, so that time and accuracy are those of that very model.
    """
    options: dict[str, Any] = {"fit_intercept": False, "tol": FULL_COVTYPE_TOL}
    task = Task("covtype", OURS, rows=FULL_COVTYPE_ROWS, options=options)
    long = runner.side_by_side([task])[OURS]
    if long is None or long.history is None or long.dual_objective is None:
        return Report("The fit failed.", {"results": []})
    reference = runner.reference if runner.reference is not None else long.dual_objective
    errors = [(reference + objective) / abs(reference) for _, objective in long.history]
    first = next((number for number, error in enumerate(errors, 1) if error <= FULL_COVTYPE_ERROR), None)
    short: Measurement | None = long
    if first is not None and first < long.iterations:
        short = runner.side_by_side([replace(task, options={**options, "max_iter": first})])[OURS]
    rows = []
    wanted = f"stopped at relative error {FULL_COVTYPE_ERROR:g}" if first is not None else "error still larger"
    for label, one in ((wanted, short), (f"tol={FULL_COVTYPE_TOL:g}", long)):
        error = None if one is None or one.dual_objective is None else (reference - one.dual_objective) / abs(reference)
        forms = (("accuracy", ".2%"), ("support_vectors", ","), ("iterations", ","), ("memory", ",.0f"))
        numbers = (of(one, name, form) for name, form in forms)
        spent = (of(one, "seconds", ".1f"), of(one, "predict_seconds", ".1f"))
        rows.append((label, spent[0], cell(error, ".1e"), *numbers, of(one, "work", ".2f"), spent[1]))
    head = (
        f"covtype, {long.rows:,} rows, no intercept", "s", "relative error", "test accuracy", "support vectors",
        "outer iterations", "peak memory, MB", "evaluations / (n n_sv)", "prediction, s",
    )  # fmt: skip
    origin = "given" if runner.reference is not None else "the longer fit's own: an error of its own is not in it"
    text = f"{markdown_table(head, rows)}\n\nReference objective {reference:.6g} ({origin})."
    found = {"results": numbers_of({"long": long, "short": short}), "reference": reference, "first_iteration": first}
    return Report(text, found)


SECTIONS: dict[str, Callable[[Runner], Report]] = {
    "peers": peers,
    "prediction": prediction,
    "work": work,
    "growth": growth,
    "logistic": logistic,
    "classes": classes,
    "compilation": compilation,
    "sparse": sparse,
    "covtype": covtype,
}
