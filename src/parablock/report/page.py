"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from parablock.callbacks.log_file import Log, number_or_none, read_log
from parablock.replacing import replacing
from parablock.report.figures import figures, numbers_table, phase_bar, phases
from parablock.report.words import certificate, duration, number, sentences, share, size, status

# Nothing may be fetched, from nowhere, whatever a log says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SIGNS = {"good": "✓", "fair": "!", "bad": "✕"}


def write_report(log_path: str | os.PathLike[str], html_path: str | os.PathLike[str], *, run: int = -1) -> None:
    """Write a page about a run: charts, the certificate in plain words, settings, machine and all numbers.

    The page is one HTML file without any other file or address; it suits laptops, phones and paper, light and dark.

    Parameters
    ----------
    log_path : str or path
        A log that `parablock.callbacks.JSONLog` wrote; the run may still go on, or have been killed.
    html_path : str or path
        The file to write. It appears whole, or stays as it is.
    run : int, default=-1
        Which of the runs in the log.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import JSONLog
    >>> from parablock.report import write_report
    >>> folder = Path(tempfile.mkdtemp())
    >>> log = JSONLog(folder / "run.jsonl")
    >>> model = KernelSVC().set_callbacks(log).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> write_report(folder / "run.jsonl", folder / "report.html")
    >>> (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    page = html(read_log(log_path, run))
    if not Path(html_path).absolute().parent.is_dir():
        raise FileNotFoundError(f"The folder of {os.fspath(html_path)!r} does not exist: create it first.")
    with replacing(html_path) as file:
        file.write(page.encode("utf-8", errors="replace"))  # JSON can say what is half a letter


def html(log: Log) -> str:
    """The text of the page."""
    name = _text(log.start.get("estimator", "run"))
    told, grade = status(log)
    folder = files("parablock.report")
    style, script = ((folder / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    drawn = "".join(figures(log))
    spent = phases(log)
    heading = "What happened" if certificate(log)["duality_gap"] is None else "Certificate"
    sections = [
        _pair(
            _section(heading, "".join(f"<p>{escape(one)}</p>" for one in sentences(log)), "card words"),
            _section("Where the time went", phase_bar(spent), "card") if spent else "",
        ),
        _section("Convergence", f'<div class="charts">{drawn}</div>') if drawn else "",
        _pair(
            _section("Settings", _table("Settings", _settings(log)), "card"),
            _section("Data and machine", _table("Data and machine", _surroundings(log)), "card"),
        ),
    ]
    if log.history:
        table = f"<details><summary>All iterations</summary>{numbers_table(log)}</details>"
        sections.append(_section("Numbers", table, "card"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}: {escape(told)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><style>{style}</style></head>'
        f'<body><header><p class="origin">{_origin(log)}</p><h1>{name} <span class="status {grade}">'
        f'<span aria-hidden="true">{_SIGNS[grade]}</span> {escape(told)}</span></h1>{_key_figures(log)}</header>'
        f"<main>{''.join(sections)}</main><footer>{_footer(log)}</footer><script>{script}</script></body></html>\n"
    )


def _section(title: str, inside: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{escape(title)}</h2>{inside}</section>'


def _pair(*sections: str) -> str:
    """Side by side, where there is room."""
    return f'<div class="pair">{"".join(sections)}</div>'


def _key_figures(log: Log) -> str:
    end, values = log.end or {}, certificate(log)
    data = {**_part(log.start, "data"), **_part(log.ready, "data")}
    iterations = max((record.iteration for record in log.history), default=0)
    seconds = number_or_none(end.get("elapsed")) or next(iter(log.elapsed[-1:]), None)
    shown = [("from the optimum at most", share(values["relative_gap"]))] if values["relative_gap"] is not None else []
    shown += [
        ("iterations", number(iterations)),
        ("time", duration(seconds)),
        ("rows × features", f"{number(data.get('rows'))} × {number(data.get('features'))}"),
    ]
    if number_or_none(end.get("support_vectors")) is not None:
        shown.append(("support vectors", number(end["support_vectors"])))
    if log.has_scores:
        shown.append(("best validation score", number(max(score for score in log.scores if score == score))))
    return (
        '<dl class="figures">'
        + "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for what, value in shown)
        + "</dl>"
    )


def _settings(log: Log) -> Iterable[tuple[str, str]]:
    settings = _part(log.start, "settings")
    gamma = number_or_none((log.ready or {}).get("gamma"))
    for name, value in settings.items():
        words = _text(value, escaped=False)
        if name == "gamma" and isinstance(value, str) and gamma is not None:
            words = f"{words} = {number(gamma)}"
        yield str(name), words


def _surroundings(log: Log) -> Iterable[tuple[str, str]]:
    data = {**_part(log.start, "data"), **_part(log.ready, "data")}
    for name, value in data.items():
        if value is not None:
            yield str(name), number(value) if number_or_none(value) is not None else _text(value, escaped=False)
    processes = number_or_none((log.ready or {}).get("processes"))
    if processes is not None and processes > 1:
        yield "processes", number(processes)
    for name, value in _part(log.start, "machine").items():
        label = str(name).replace("_", " ")
        if name == "memory_bytes":
            yield "memory", size(value)
        else:
            yield label, number(value) if number_or_none(value) is not None else _text(value, escaped=False)
    for name, value in _part(log.start, "versions").items():
        yield str(name), _text(value, escaped=False)


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f'<table class="plain"><caption class="unseen">{escape(title)}</caption><tbody>{body}</tbody></table>'


def _origin(log: Log) -> str:
    several = f", run {log.number} of {log.count}" if log.count > 1 else ""
    when = _text(log.start.get("time", ""), escaped=False).replace("T", " ").replace("+00:00", " UTC")
    return escape(f"{Path(log.path).name}{several} · {when}".rstrip(" ·"))


def _footer(log: Log) -> str:
    version = _text(_part(log.start, "versions").get("parablock", ""))
    return f"Trained by parablock {version}. This page needs no network and no other file."


def _part(line: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """A dictionary inside a line of the log, whatever the log has there."""
    found = (line or {}).get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Any, escaped: bool = True) -> str:
    """Any value of a log in words."""
    if value is None or isinstance(value, bool):
        words = {None: "none", True: "yes", False: "no"}[value]
    elif isinstance(value, str):
        words = value
    else:
        try:
            words = json.dumps(value, ensure_ascii=False)
        except RecursionError:
            words = "…"
    return escape(words, quote=True) if escaped else words
