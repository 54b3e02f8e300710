"""The report: what it says, and how it does in a browser: on a phone, in the dark, with keys, and with hostile logs."""

import copy
import itertools
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from parablock.callbacks import EarlyStopping, JSONLog, LogError, TimeLimit, ValidationScore, read_log
from parablock.report import write_report
from parablock.report.page import html
from tests.callbacks.small_fits import fit_quietly, machine, moons
from tests.report.browser import looked_at, needs_chromium, opened, photographed

X, y = moons()
VALID = moons(90, seed=1)
PROBE = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def fitted(folder):
    """A model and the log of its fit."""
    path = folder / "run.jsonl"
    model = machine().set_callbacks(ValidationScore(*VALID), JSONLog(path)).fit(X, y)
    return model, path


@pytest.fixture(scope="module")
def page(fitted, folder):
    write_report(fitted[1], folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Text and attributes of a page; complains about tags that are not closed in order."""

    EMPTY = {"meta", "link"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text[self.open[-1] if self.open else ""] = self.text.get(self.open[-1] if self.open else "", "") + data

    def all_text(self):
        return " ".join(words for tag, words in self.text.items() if tag not in ("script", "style"))


def words_of(path, run=-1):
    return Reader(html(read_log(path, run))).all_text().replace("\u00a0", " ")


# -------------------------------------------------------------------------------------------------------- what it says


def test_the_page_is_whole_and_tells_of_the_run(fitted, page):
    model, _ = fitted
    reader = Reader(page)
    words = reader.all_text().replace("\u00a0", " ")
    assert reader.text["title"] == "KernelSVC: converged"
    assert f"Training converged after {model.n_iter_} iterations" in words
    assert "within" in words
    assert "of the optimum: the best value that any model could have" in words
    assert "of the kernel matrix in the precision of the data" in words
    for name in model.get_params():
        assert name in words
    assert "200 × 2" in words
    assert f"{len(model.support_)}" in words
    assert page.count('<svg class="chart"') == 2 * 4 + 1  # four charts, each against time and iteration; and the blocks


def test_the_certificate_is_that_of_the_model(fitted, page):
    model, _ = fitted
    text = Reader(page).all_text()
    low, high = re.search(r"lies between ([\d,.]+) \(dual value\) and ([\d,.]+) \(primal value", text).groups()
    digits = 10.0 ** -len(low.partition(".")[2])
    assert float(low.replace(",", "")) == pytest.approx(model.dual_objective_, abs=digits)
    assert float(high.replace(",", "")) == pytest.approx(model.dual_objective_ + model.duality_gap_, abs=digits)
    assert low != high


def test_charts_hold_the_values_of_the_history(fitted, page):
    model, _ = fitted
    hover = [json.loads(attributes["data-hover"]) for _, attributes in Reader(page).tags if "data-hover" in attributes]
    assert all(len(places) == len(model.history_) for places in hover[:-1])
    gaps = [float(place[2][0][2]) for place in hover[0]]
    assert gaps == pytest.approx([record.relative_gap for record in model.history_], rel=1e-2)
    heights = [place[2][0][0] for place in hover[0]]
    assert np.all(np.diff(heights) > 0)  # the gap falls, and down is more in a picture
    notes = [place[1].partition(" (")[0] for place in hover[0]]
    assert notes == [f"iteration {record.iteration}" for record in model.history_]


def test_every_iteration_is_in_the_table(fitted, page):
    model, _ = fitted
    table = page[page.index('<table class="numbers">') :]
    rows = re.findall(r"<tr><td>(\d+)</td><td>[^<]*</td><td>[^<]*</td><td>(-?[\d.e+]+)</td>", table)
    assert [int(number) for number, _ in rows] == [record.iteration for record in model.history_]
    assert [float(value) for _, value in rows] == pytest.approx(
        [record.objective for record in model.history_], rel=1e-6
    )


def test_the_page_is_accessible_as_far_as_its_text_tells(page):
    tags = Reader(page).tags
    assert dict(tags)["html"] == {"lang": "en"}
    for tag, attributes in tags:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes["aria-label"].strip()
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    headings = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert max(np.diff(headings)) <= 1
    assert page.count("<caption") == page.count("<table")


def test_the_page_asks_for_nothing(page):
    tags = Reader(page).tags
    links = {value for _, attributes in tags for name, value in attributes.items() if name in ("src", "href", "action")}
    assert links == {"data:,"}
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(" not in page


def test_early_stopping_a_time_limit_and_several_runs_are_told(tmp_path):
    path = tmp_path / "runs.jsonl"
    stopping = EarlyStopping(*VALID, patience=2)
    machine().set_callbacks(stopping, JSONLog(path)).fit(X, y)
    fit_quietly(machine().set_callbacks(TimeLimit(1e-6), JSONLog(path)), X, y)
    fit_quietly(machine(max_iter=2).set_callbacks(JSONLog(path)), X, y)
    first = words_of(path, run=0)
    assert "stopped early" in first
    assert f"that of iteration {stopping.best_iteration_}, which had the best validation score" in first
    assert "run 1 of 3" in first
    assert "The time limit of 1e-06 s was reached after 1 iteration:" in words_of(path, run=1)
    assert "made the 2 iterations that max_iter allowed and has not converged" in words_of(path)


def test_gamma_is_told_in_numbers(tmp_path):
    path = tmp_path / "run.jsonl"
    model = machine(gamma="scale").set_callbacks(JSONLog(path)).fit(X, y)
    assert f"scale = {model._gamma:.4g}" in words_of(path)


def test_phases_add_up_to_the_whole(fitted):
    from parablock.report.figures import phases

    log = read_log(fitted[1])
    spent = dict(phases(log))
    assert sum(spent.values()) == pytest.approx(log.end["elapsed"])
    assert set(spent) - {"compiling"} == {"preparing", "fresh blocks", "bridges", "closing"}


# ---------------------------------------------------------------------------------------------- logs that are not whole


def without(path, tmp_path, *events, change=lambda line: line):
    """A log without lines of these events, and with the others changed."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    place = tmp_path / "other.jsonl"
    place.write_text("".join(json.dumps(change(line)) + "\n" for line in lines if line["event"] not in events))
    return place


def test_a_run_without_an_end_is_shown_as_far_as_it_got(fitted, tmp_path):
    words = words_of(without(fitted[1], tmp_path, "end"))
    assert "no end in the log" in words
    assert "the run is still going on, or it was killed" in words
    assert "of the optimum" in words


def test_a_run_of_which_only_the_start_is_known(fitted, tmp_path):
    words = words_of(without(fitted[1], tmp_path, "end", "iteration", "ready"))
    assert "It tells of 0 iterations." in words
    assert "What happened" in words
    assert "Convergence" not in words


def test_a_failed_run_tells_its_error(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(ValueError, match="NaN"):
        machine().set_callbacks(JSONLog(path)).fit(np.full_like(X, np.nan), y)
    assert "The fit failed after 0 iterations: ValueError: Input X contains NaN." in words_of(path)


def test_rows_that_rested_at_the_time_are_told_of(fitted, tmp_path):
    def half(line):
        return {**line, "watched": 100} if line["event"] == "iteration" else line

    assert (
        "For the others, the dual objective, of the kernel matrix in the precision of the data, is within"
        in words_of(without(fitted[1], tmp_path, "end", change=half))
    )
    assert "For the others" not in words_of(without(fitted[1], tmp_path, change=half))  # checked at the end


@pytest.mark.parametrize("odd", [None, 3, "text", [1], {"rows": "many", "sizes": ["x"], "mass": "y"}, True])
def test_odd_values_of_what_is_not_needed_are_borne(fitted, tmp_path, odd):
    keep = {"event", "run", "format", "settings"}

    def strange(line):
        if line["event"] == "iteration":
            return {**line, "score": odd if not isinstance(odd, (int, float)) else None, "elapsed": odd}
        return {name: value if name in keep else odd for name, value in line.items()}

    assert Reader(html(read_log(without(fitted[1], tmp_path, change=strange)))).text["h1"]


@pytest.mark.parametrize("value", [None, 0.0, -1.0, 1e300])
@pytest.mark.parametrize("names", [("violation", "duality_gap"), ("seconds",), ("objective",)])
def test_values_that_cannot_be_drawn_leave_gaps(fitted, tmp_path, value, names):
    def flat(line):
        return {**line, **dict.fromkeys(names, value)} if line["event"] == "iteration" else line

    assert Reader(html(read_log(without(fitted[1], tmp_path, change=flat)))).text["h1"]


@pytest.mark.parametrize("name", ["violation", "score", "objective", "duality_gap", "seconds", "elapsed", "step"])
@pytest.mark.parametrize(
    "values", [(1e308, 5e-324), (1e308, -1e308), (5e-324, 0.0), (1.0, 1.0 + 2e-16), (1e-200, 3e-200)]
)
def test_extreme_values_side_by_side_are_drawn_or_left_out(fitted, tmp_path, name, values):
    turns = itertools.cycle(values)

    def extreme(line):
        return {**line, name: next(turns)} if line["event"] == "iteration" else line

    text = html(read_log(without(fitted[1], tmp_path, change=extreme)))
    drawn = [attributes for _, attributes in Reader(text).tags]
    numbers = [one[key] for one in drawn for key in ("y1", "y2", "x1", "x2", "d") if key in one]
    assert not [place for place in numbers if "nan" in place or "inf" in place]
    assert max(len(tick) for tick in re.findall(r'<text class="tick"[^>]*>([^<]*)<', text)) <= 20


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ODD = [10**400, -(10**400), math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, -1, 2**70, "\ud800", nested(300), {}]


@pytest.mark.parametrize("place", range(4), ids=["start", "ready", "iteration", "end"])
def test_odd_logs_are_refused_with_the_line_or_make_a_page(fitted, tmp_path, place):
    lines = [json.loads(line) for line in fitted[1].read_text().splitlines()]
    number = [0, 1, 2, len(lines) - 1][place]
    log, page = tmp_path / "odd.jsonl", tmp_path / "odd.html"
    pages, refusals = 0, []
    for name, value in lines[number].items():
        if name in ("event", "run", "format"):
            continue
        inner = [(name, key) for key in value] if isinstance(value, dict) else []
        for spot, odd in itertools.product([(name,), *inner[:6]], ODD):
            line = copy.deepcopy(lines[number])
            (line if len(spot) == 1 else line[name])[spot[-1]] = odd
            log.write_text("".join(json.dumps(one) + "\n" for one in [*lines[:number], line, *lines[number + 1 :]]))
            try:
                write_report(log, page)
            except LogError as error:
                refusals.append(str(error))
                continue
            pages += 1
            assert page.read_bytes().decode("utf-8").endswith("</html>\n")
    assert [text for text in refusals if not text.startswith(f"Line {number + 1} of the log ")] == []
    assert pages > 50
    assert refusals or place in (1, 3)


def test_a_very_long_run_stays_readable(fitted, tmp_path):
    lines = fitted[1].read_text().splitlines()
    record = json.loads(lines[2])
    many = [json.dumps({**record, "iteration": place, "seconds": 10.0 * place}) for place in range(1, 3001)]
    (tmp_path / "long.jsonl").write_text("\n".join([*lines[:2], *many, lines[-1]]))
    write_report(tmp_path / "long.jsonl", tmp_path / "long.html")
    text = (tmp_path / "long.html").read_text(encoding="utf-8")
    assert len(text) < 3_000_000
    assert "(500 of 3,000 shown)" in text
    assert "hours since the start" in text


HOSTILE = "</style></script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'&"


def hostile(line):
    """The log of a stranger: its own text wherever there is text."""
    return {
        name: (
            value
            if name in ("event", "run", "format")
            else {HOSTILE: HOSTILE, **dict.fromkeys(value, HOSTILE)}
            if isinstance(value, dict)
            else HOSTILE
            if isinstance(value, str)
            else value
        )
        for name, value in line.items()
    }


def test_whatever_a_log_says_is_text(fitted, tmp_path):
    text = html(read_log(without(fitted[1], tmp_path, change=hostile)))
    reader = Reader(text)
    assert HOSTILE in reader.all_text()
    assert [tag for tag, _ in reader.tags if tag in ("script", "img", "style")] == ["style", "script"]
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]


# ------------------------------------------------------------------------------------------------------------- writing


def test_the_file_is_replaced_whole_or_not_at_all(fitted, tmp_path, monkeypatch):
    place = tmp_path / "report.html"
    place.write_text("old")
    write_report(fitted[1], place)
    assert place.read_text(encoding="utf-8").startswith("<!doctype html>")
    place.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(fitted[1], place)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert place.read_text() == "old"


def test_a_link_is_followed_and_a_device_stays_one(fitted, tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")
    write_report(fitted[1], tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    (tmp_path / "nothing").symlink_to("/dev/null")
    write_report(fitted[1], tmp_path / "nothing")
    assert (tmp_path / "nothing").is_symlink()
    assert Path("/dev/null").is_char_device()


def test_errors_name_the_file(fitted, tmp_path):
    with pytest.raises(LogError, match=r"Cannot read the log .*none.jsonl"):
        write_report(tmp_path / "none.jsonl", tmp_path / "report.html")
    with pytest.raises(FileNotFoundError, match=r"The folder of .*report.html' does not exist"):
        write_report(fitted[1], tmp_path / "no" / "report.html")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- in a browser


@pytest.mark.slow
@needs_chromium
def test_the_browser_notices_errors_and_what_is_too_wide(folder):
    bad = "<!doctype html><body><div style='width:600px'>wide</div><script>nothing.at.all()</script>"
    width, complaints = looked_at(folder, bad, "(view) => view.document.documentElement.scrollWidth")
    assert width >= 600
    assert "nothing is not defined" in complaints[0]


@pytest.mark.slow
@needs_chromium
def test_scripts_run_without_complaint_on_a_laptop(page, folder):
    document, complaints = opened(folder, folder / "report.html")
    assert complaints == []
    assert document.count('class="switch"') == 1
    assert 'aria-pressed="true">Time<' in document


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_on_a_phone(fitted, page, folder, dark):
    model, _ = fitted
    found, complaints = looked_at(folder, page, PROBE, width=390, dark=dark)
    assert complaints == []
    assert found["width"] == 390
    assert found["scrollWidth"] <= 390
    assert found["scrollWidthOpen"] <= 390
    assert found["beyond"] == []
    assert found["before"] is found["after"] is found["keyEscape"] is None
    first, last = model.history_[0], model.history_[-1]
    assert found["first"].startswith(f"iteration {first.iteration} ({first.kind}), ")
    assert f"duality gap {first.relative_gap:.3g}"[:14] in found["first"]
    assert found["last"].startswith(f"iteration {last.iteration} (")
    assert found["keyFirst"].startswith("iteration 1 (")
    assert found["keySecond"].startswith("iteration 2 (")
    assert found["tipInside"]
    assert (found["against"], found["againstThen"], found["pressed"]) == (["seconds"], ["iteration"], "Iteration")
    assert found["chartWidth"] > 300
    assert found["smallestText"] >= 11
    assert len(found["charts"]) == 5
    assert found["ground"] < 0.05 if dark else found["ground"] > 0.8
    assert {name: ratio for name, ratio in found["contrast"].items() if ratio < 4.5} == {}
    assert {name: ratio for name, ratio in found["lines"].items() if ratio < 3} == {}


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_picture_of_the_page_is_a_picture(page, folder, dark):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    place = photographed(folder, folder / "report.html", f"laptop-{dark}", (1280, 1600), dark)
    with image.open(place) as picture:
        assert picture.size[0] == 1280
        pixels = np.asarray(picture.convert("L"), dtype=float)
    assert pixels.mean() < 60 if dark else pixels.mean() > 200
    assert pixels.std() > 10


@pytest.mark.slow
@needs_chromium
def test_a_hostile_log_does_nothing_in_a_browser(fitted, folder, tmp_path):
    text = html(read_log(without(fitted[1], tmp_path, change=hostile)))
    found, complaints = looked_at(
        folder, text, "(view) => ({hacked: view.hacked === undefined, charts: view.document.images.length, "
        "width: view.document.documentElement.scrollWidth})",
    )  # fmt: skip
    assert found == {"hacked": True, "charts": 0, "width": 390}
    assert complaints == []
