"""Small charts as SVG text: drawn here, so that a page needs no script to show them; a script adds values under the
pointer, from the ``data-hover`` attribute."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from parablock.report.words import number

WIDTH, HEIGHT = 420, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 42
_MOST_POINTS, _MOST_MARKERS = 800, 40
_SMALLEST, _LARGEST = 1e-300, 1e300  # of values that are drawn: what lies between them can be computed
_MOST_DIGITS = 12  # after the point, of a number at an axis
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Series:
    """A line: its name, its values (nan where there is none), and which of the styles 1 to 4 it has."""

    name: str
    values: Sequence[float]
    style: int


@dataclass(frozen=True)
class Axis:
    """An axis: its label, and whether it is logarithmic; `low` is where a linear one begins at the latest."""

    label: str
    log: bool = False
    low: float | None = None


def sampled(count: int, most: int = _MOST_POINTS) -> list[int]:
    """Numbers of points to show: all, or so many evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def line_chart(
    name: str,
    summary: str,
    x: Sequence[float],
    series: Sequence[Series],
    across: Axis,
    up: Axis,
    notes: Sequence[str],
    level: tuple[float, str] | None = None,
) -> str:
    """The SVG of some lines over common places; `notes` say what each place is, for who points at it."""
    chosen = [i for i in sampled(len(x)) if _shown(x[i], across.log) is not None]
    shown = {one.name: [_shown(one.values[i], up.log) for i in chosen] for one in series}
    every = [value for values in shown.values() for value in values if value is not None]
    if level is not None and _shown(level[0], up.log) is not None:
        every.append(level[0])
    right, top = _scale([x[i] for i in chosen], across), _scale(every, up)
    places = [_LEFT + right.place(x[i]) * (WIDTH - _LEFT - _RIGHT) for i in chosen]

    def height(value: float) -> float:
        return HEIGHT - _BOTTOM - top.place(value) * (HEIGHT - _TOP - _BOTTOM)

    parts = [_grid(right, top, across, up)]
    if level is not None and _shown(level[0], up.log) is not None:
        y = height(level[0])
        parts.append(f'<line class="level" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="note" x="{_LEFT + 4}" y="{y - 5:.1f}">{escape(level[1])}</text>')
    hover: list[list[object]] = [[round(place, 1), notes[i], []] for place, i in zip(places, chosen, strict=True)]
    for one in series:
        points = [
            (place, height(value), value, spot)
            for place, value, spot in zip(places, shown[one.name], hover, strict=True)
            if value is not None
        ]
        path = "M" + "L".join(f"{place:.1f} {y:.1f}" for place, y, _, _ in points) if points else ""
        parts.append(f'<path class="line s{one.style}" d="{path}"/>')
        if len(points) <= _MOST_MARKERS:
            parts += [_marker(one.style, place, y) for place, y, _, _ in points]
        for _, y, value, spot in points:
            spot[2].append([round(y, 1), one.name, number(value), one.style])  # type: ignore[attr-defined]
    return _svg(name, summary, "".join(parts), hover)


def bar_chart(name: str, summary: str, values: Sequence[float], across: str, up: str, notes: Sequence[str]) -> str:
    """The SVG of bars side by side."""
    chosen = sampled(len(values))
    top = _scale([0.0, *(values[i] for i in chosen)], Axis(up))
    room = (WIDTH - _LEFT - _RIGHT) / max(1, len(chosen))
    ends = [(0.5 / len(chosen), "1")]
    if len(values) > 1:
        ends.append((1 - 0.5 / len(chosen), f"{len(values):,}"))
    parts, hover = [_grid(_Scale(0, len(chosen), ends), top, Axis(across), Axis(up))], []
    for place, i in enumerate(chosen):
        tall = top.place(values[i]) * (HEIGHT - _TOP - _BOTTOM)
        left, wide = _LEFT + place * room, max(0.5, 0.8 * room)
        y = HEIGHT - _BOTTOM - tall
        bar = (
            f'<rect class="bar" x="{left + (room - wide) / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
        )
        parts.append(bar)
        hover.append([round(left + room / 2, 1), notes[i], [[round(y, 1), up, number(values[i]), 1]]])
    return _svg(name, summary, "".join(parts), hover)


class _Scale:
    """From `low` to `high`, or these powers of ten; marks have their place, from 0 to 1, and their text."""

    def __init__(self, low: float, high: float, ticks: list[tuple[float, str]], log: bool = False) -> None:
        self.low, self.high, self.ticks, self.log = low, high, ticks, log

    def place(self, value: float) -> float:
        """From 0 to 1."""
        if self.log:
            value = math.log10(value)
        return (value - self.low) / (self.high - self.low)


def _shown(value: float, log: bool) -> float | None:
    return float(value) if abs(value) <= _LARGEST and (value > 0 or not log) else None


def _scale(values: Sequence[float], axis: Axis) -> _Scale:
    if axis.log:
        lowest = math.floor(math.log10(min(values, default=0.1)) + 1e-9)
        highest = max(lowest + 1, math.ceil(math.log10(max(values, default=1.0)) - 1e-9))
        powers = range(lowest, highest + 1, -(-(highest - lowest) // 6))
        length = highest - lowest
        ticks = [((power - lowest) / length, f"10{str(power).translate(_SUPERSCRIPT)}") for power in powers]
        return _Scale(lowest, highest, ticks, log=True)
    low, high = float(min(values, default=0.0)), float(max(values, default=1.0))
    if axis.low is not None:
        low = min(low, axis.low)
    size = max(abs(low), abs(high))
    if high - low <= max(_SMALLEST, 1e-12 * size):
        half = 0.5 * (size if size > _SMALLEST else 1.0)
        low, high = low - half, high + half
    step = _nice((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    marks = [place * step for place in range(first, last + 1)]
    largest = max(abs(mark) for mark in marks)
    ticks = [(place / (last - first), _tick(mark, largest, digits)) for place, mark in enumerate(marks)]
    return _Scale(marks[0], marks[-1], ticks)


def _nice(step: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def _tick(value: float, largest: float, digits: int) -> str:
    for unit, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if largest >= 10 * unit:
            return f"{value / unit:g} {word}" if value else "0"
    return f"{value:,.{digits}f}" if digits <= _MOST_DIGITS else f"{value:.3g}"


def _grid(right: _Scale, top: _Scale, across: Axis, up: Axis) -> str:
    parts = []
    for place, text in top.ticks:
        y = HEIGHT - _BOTTOM - place * (HEIGHT - _TOP - _BOTTOM)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" text-anchor="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{escape(text)}</text>')
    bottom = HEIGHT - _BOTTOM
    for place, text in right.ticks:
        x = _LEFT + place * (WIDTH - _LEFT - _RIGHT)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" text-anchor="middle" x="{x:.1f}" y="{bottom + 18}">{escape(text)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(
        f'<text class="label" text-anchor="middle" x="{middle}" y="{HEIGHT - 4}">{escape(across.label)}</text>'
    )
    return "".join(parts)


def _marker(style: int, x: float, y: float) -> str:
    """A shape for each style: lines are told apart without colour too."""
    if style == 1:
        return f'<circle class="mark s1" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    if style == 2:
        return f'<rect class="mark s2" x="{x - 2.7:.1f}" y="{y - 2.7:.1f}" width="5.4" height="5.4"/>'
    if style == 3:
        return f'<path class="mark s3" d="M{x:.1f} {y - 3.6:.1f}l3.4 6.2h-6.8z"/>'
    return f'<path class="mark s4" d="M{x:.1f} {y - 3.8:.1f}l3.8 3.8l-3.8 3.8l-3.8 -3.8z"/>'


def key(style: int) -> str:
    """A short piece of a line, for a legend."""
    return (
        f'<svg class="key" viewBox="0 0 26 10" width="26" height="10" aria-hidden="true">'
        f'<path class="line s{style}" d="M1 5L25 5"/>{_marker(style, 13, 5)}</svg>'
    )


def _svg(name: str, summary: str, inside: str, hover: Sequence[object]) -> str:
    data = escape(json.dumps(hover, ensure_ascii=False, allow_nan=False), quote=True)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" '
        f'aria-label="{escape(name + ". " + summary, quote=True)}" data-hover="{data}">{inside}</svg>'
    )
