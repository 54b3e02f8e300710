"""The figures of a report: each chart against time and against iteration, with a legend and a sentence that explains
it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from parablock.callbacks.log_file import Log, number_or_none
from parablock.report.charts import Axis, Series, bar_chart, key, line_chart, sampled
from parablock.report.words import duration, number, share

_ROUNDING = 1e-12  # differences of objectives that are smaller are chance
_PHASES = {
    "partition": "blocks of the partition",
    "regrouped": "fresh blocks",
    "bridge": "bridges",
    "check": "checks of resting rows",
    "cholesky": "Cholesky factorisation",
}


@dataclass(frozen=True)
class _Chart:
    title: str
    hint: str
    series: Sequence[Series]
    up: Axis
    level: tuple[float, str] | None = None


def figures(log: Log) -> Iterator[str]:
    """The HTML of every figure that there is something to show in."""
    if log.history:
        for chart in _charts(log):
            yield _figure(log, chart)
    blocks = _blocks(log)
    if blocks:
        yield blocks


def _charts(log: Log) -> Iterator[_Chart]:
    history = log.history
    objective = np.array([record.objective for record in history])
    last = float(np.nanmin(objective)) if np.isfinite(objective).any() else math.nan
    with np.errstate(over="ignore", invalid="ignore"):
        error = (objective - last) / (abs(last) or 1.0)
    error[~(error >= _ROUNDING)] = math.nan
    yield _Chart(
        "Distance from the optimum",
        "The duality gap bounds how far the objective can be from its optimum. Both as a share of the objective.",
        [
            Series("duality gap", [record.relative_gap for record in history], 1),
            Series("objective above the last one", error.tolist(), 2),
        ],
        Axis("share of the objective", log=True),
    )
    yield _Chart(
        "Largest violation",
        "Of the optimality conditions, among the rows that are watched. Training ends when it is at most tol for all.",
        [Series("violation", [record.violation for record in history], 3)],
        Axis("violation", log=True),
        None if log.tol is None else (log.tol, f"tol = {number(log.tol)}"),
    )
    if log.has_scores:
        hint = "On data that was not trained with; higher is better."
        yield _Chart("Validation score", hint, [Series("score", log.scores, 4)], Axis("score"))
    yield _Chart(
        "Rows at work",
        "Watched: kept up to date. In blocks: free to move in the iteration. Moved: those that did.",
        [
            Series("watched", [float(record.watched) for record in history], 1),
            Series("in blocks", [float(record.active) for record in history], 2),
            Series("moved", [float(record.changed) for record in history], 3),
        ],
        Axis("rows", low=0.0),
    )
    if any(record.bytes_sent for record in history):
        hint = "By all processes together, in each iteration."
        megabytes = [record.bytes_sent / 1e6 for record in history]
        yield _Chart("Megabytes sent", hint, [Series("megabytes", megabytes, 2)], Axis("megabytes", low=0.0))


def _figure(log: Log, chart: _Chart) -> str:
    history = log.history
    notes = [f"iteration {record.iteration} ({record.kind}), {duration(record.seconds)}" for record in history]
    summary = "; ".join(_summary(one) for one in chart.series)
    unit, divisor = _unit(max((record.seconds for record in history), default=0.0))
    places = {
        "seconds": ([record.seconds / divisor for record in history], Axis(f"{unit} since the start", low=0.0)),
        "iteration": ([float(record.iteration) for record in history], Axis("outer iteration", low=0.0)),
    }
    drawn = "".join(
        f'<div class="against" data-against="{name}"{"" if name == "seconds" else " hidden"}>'
        + line_chart(chart.title, summary, x, chart.series, across, chart.up, notes, chart.level)
        + "</div>"
        for name, (x, across) in places.items()
    )
    keys = "".join(f"<li>{key(one.style)}{escape(one.name)}</li>" for one in chart.series)
    legend = f'<ul class="keys">{keys}</ul>' if len(chart.series) > 1 else ""
    return _framed(chart.title, chart.hint, legend + drawn)


def _framed(title: str, hint: str, inside: str) -> str:
    return (
        f'<figure class="card"><figcaption><h3>{escape(title)}</h3><p class="hint">{escape(hint)}</p></figcaption>'
        f"{inside}</figure>"
    )


def _summary(series: Series) -> str:
    known = [value for value in series.values if math.isfinite(value)]
    if not known:
        return f"{series.name}: nothing to show"
    return f"{series.name}: from {number(known[0])} to {number(known[-1])}"


def _unit(seconds: float) -> tuple[str, float]:
    if seconds > 3 * 3600:
        return "hours", 3600.0
    return ("minutes", 60.0) if seconds > 300 else ("seconds", 1.0)


def _blocks(log: Log) -> str:
    partition = (log.ready or {}).get("partition")
    if not isinstance(partition, dict):
        return ""
    sizes = partition.get("sizes")
    known = [number_or_none(one) for one in sizes] if isinstance(sizes, list) else []
    ordered = sorted((one for one in known if one is not None and 0 <= one < 2**63), reverse=True)
    if not known or len(ordered) < len(known):
        return ""
    mass = number_or_none(partition.get("mass"))
    inside = "" if mass is None else f" {share(mass)} of the kernel's squared mass is inside them."
    count = f"{number(len(ordered))} block{'' if len(ordered) == 1 else 's'}"
    hint = f"{str(partition.get('method', '')).capitalize()} partition, {count}, the largest first.{inside}"
    summary = f"from {number(ordered[0])} down to {number(ordered[-1])} rows"
    notes = [f"block {place} of {len(ordered)}" for place in range(1, len(ordered) + 1)]
    chart = bar_chart("First blocks", summary, ordered, "block", "rows", notes)
    return _framed("First blocks", hint, f'<div class="against">{chart}</div>')


def phases(log: Log) -> list[tuple[str, float]]:
    """Where the time went: compiling, preparing, each kind of iteration, and closing; nothing where the log does not
    tell."""
    ready = number_or_none((log.ready or {}).get("elapsed"))
    if ready is None or not log.elapsed or any(math.isnan(one) for one in log.elapsed):
        return []
    names = [_PHASES.get(record.kind, record.kind or "iterations") for record in log.history]
    ends = [("preparing", ready, _compiling(log.ready)), *zip(names, log.elapsed, log.compiling, strict=True)]
    if (end := number_or_none((log.end or {}).get("elapsed"))) is not None:
        ends.append(("closing", end, _compiling(log.end)))
    spent: dict[str, float] = {}
    compiling = before = 0.0
    for name, now, compiled in ends:
        more = compiled - compiling if compiled > compiling else 0.0  # old logs do not tell: nan
        compiling += more
        spent[name] = spent.get(name, 0.0) + max(0.0, now - before - more)
        before = now
    return ([("compiling", compiling)] if compiling else []) + list(spent.items())


def _compiling(line: Mapping[str, Any] | None) -> float:
    return number_or_none((line or {}).get("compiling")) or 0.0


def phase_bar(spent: Sequence[tuple[str, float]]) -> str:
    """A bar of all phases, and their table."""
    total = sum(seconds for _, seconds in spent) or 1.0
    pieces = "".join(
        f'<span class="p{place % 6}" style="flex-grow:{max(seconds / total, 1e-4):.4f}"></span>'
        for place, (_, seconds) in enumerate(spent)
    )
    rows = "".join(
        f'<tr><th scope="row"><span class="swatch p{place % 6}" aria-hidden="true"></span>{escape(name)}</th>'
        f"<td>{duration(seconds)}</td><td>{share(seconds / total)}</td></tr>"
        for place, (name, seconds) in enumerate(spent)
    )
    return (
        f'<div class="phases" aria-hidden="true">{pieces}</div><table class="plain spent">'
        '<caption class="unseen">Where the time went</caption><thead><tr><th scope="col">phase</th>'
        f'<th scope="col">time</th><th scope="col">share</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def numbers_table(log: Log) -> str:
    """Every iteration (of a very long run some), as a table."""
    chosen = sampled(len(log.history), most=500)
    head = ["iteration", "blocks", "seconds", "objective", "duality gap", "violation", "step", "watched", "moved"]
    head += ["score"] if log.has_scores else []
    rows = []
    for place in chosen:
        record = log.history[place]
        cells = [
            number(record.iteration),
            f"{number(record.blocks)} {record.kind}",
            f"{record.seconds:.2f}",
            f"{record.objective:.7g}",
            f"{record.relative_gap:.2e}",
            f"{record.violation:.2e}",
            f"{record.step:.3f}",
            number(record.watched),
            number(record.changed),
        ] + ([f"{log.scores[place]:.4f}"] if log.has_scores else [])
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    left_out = "" if len(chosen) == len(log.history) else f" ({len(chosen)} of {number(len(log.history))} shown)"
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="All iterations"><table class="numbers"><caption>'
        f"Duality gap as a share of the objective{left_out}</caption><thead><tr>{columns}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
