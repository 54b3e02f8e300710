"""Pieces of the tables of `benchmarks.cpu`: cells, the check of objectives, exponents of growth and its picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.worker import Measurement

# A program whose dual objective is further below the best one, or whose coefficients are further outside of the
# problem's constraints, has solved another problem or stopped early: its seconds do not count.
AGREEMENT = 1e-4
MARK = "†"
Results = Mapping[str, Measurement | None]


def shortfalls(results: Results) -> dict[str, float]:
    """How far each program's dual objective is below the best one, relative to it."""
    reached = {
        name: one.dual_objective for name, one in results.items() if one is not None and one.dual_objective is not None
    }
    best = max(reached.values(), default=0.0)
    return {name: (best - value) / max(abs(best), 1e-300) for name, value in reached.items()}


def early_stoppers(results: Results) -> set[str]:
    """Programs that did not solve the problem as well as the best one, or not the same problem."""
    # One that breaks the constraints can be above the optimum; it must not make the others look bad.
    infeasible = {name for name, one in results.items() if one is not None and (one.infeasibility or 0.0) > AGREEMENT}
    judged = {name: one for name, one in results.items() if name not in infeasible}
    return infeasible | {name for name, behind in shortfalls(judged).items() if behind > AGREEMENT}


def difference(own: Measurement | None, peer: Measurement | None) -> str:
    """Relative difference of dual objectives as a cell; positive: the first is better. Marked where it is large."""
    if own is None or peer is None or own.dual_objective is None or peer.dual_objective is None:
        return "-"
    value = (own.dual_objective - peer.dual_objective) / max(abs(peer.dual_objective), 1e-300)
    return f"{value:+.1e}" + (f" {MARK}" if abs(value) > AGREEMENT else "")


def time_cell(name: str, results: Results) -> str:
    """Seconds of a fit, marked for an early stopper; "-" where it was not measured, "failed" where it failed."""
    if name not in results:
        return "-"
    one = results[name]
    if one is None:
        return "failed"
    return f"{one.seconds:.2f}" + (f" {MARK}" if name in early_stoppers(results) else "")


def verdict(*tables: str) -> str:
    """A sentence below the tables: what the mark in them means, or that there is none."""
    if any(MARK in table for table in tables):
        return (
            f"{MARK} The dual objective is more than {AGREEMENT:g} (relative) below the best one, or the constraints "
            "are violated by more: the program stopped early, and its time does not count."
        )
    return f"No program's dual objective is more than {AGREEMENT:g} (relative) below the best one."


def cell(value: float | int | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def of(one: Measurement | None, attribute: str, form: str) -> str:
    """An attribute of a measurement as a cell; "-" where there is none."""
    return "-" if one is None else cell(getattr(one, attribute), form)


def ratio(above: Measurement | None, below: Measurement | None, attribute: str = "seconds") -> str:
    if above is None or below is None:
        return "-"
    return f"{getattr(above, attribute) / getattr(below, attribute):.1f}"


# -------------------------------------------------------------------------------------------------------------- growth


def exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """The power of n with which seconds grow, by least squares; None for fewer than two points."""
    if len(points) < 2:
        return None
    n, spent = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(n, spent, 1)[0])


def forecast(points: Sequence[tuple[int, float]], n: int) -> float:
    """Seconds to expect at n rows, by the growth between the last two points; quadratic from a single one."""
    last, spent = points[-1]
    power = exponent(points[-2:])
    return spent * (n / last) ** (2.0 if power is None else power)


def draw_growth(curves: Mapping[str, Sequence[tuple[int, float]]], path: Path) -> None:
    """Save a picture of seconds against rows, both axes logarithmic.

    Parameters
    ----------
    curves : dict
        Of each program the points (rows, seconds).
    path : Path
        The PNG file to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    # Told apart by colour-blind readers too, and by their markers in black and white.
    looks = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#009E73", "^", ":"))
    for (name, points), (colour, marker, line) in zip(curves.items(), looks, strict=False):
        if not points:
            continue
        power = exponent(points)
        label = name if power is None else f"{name}: seconds grow as n^{power:.2f}"
        axes.plot(*zip(*points), color=colour, marker=marker, linestyle=line, linewidth=2, label=label)
        axes.annotate(f"{points[-1][1]:.3g} s", points[-1], (6, -4), textcoords="offset points", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="seconds to fit")
    axes.set_title("Forest cover types, C = gamma = 32, with intercept, tol = 1e-3")
    sizes = sorted({n for points in curves.values() for n, _ in points})
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{int(n):,}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda spent, _: f"{spent:g}"))
    axes.margins(x=0.15)
    axes.grid(which="both", alpha=0.25)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
