"""Measure solvers on data sets, one after the other, and keep every result as soon as it is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.paper.problems import Problem, load_problem
from benchmarks.paper.solvers import Place, Solver
from benchmarks.paper.store import FOLDER, Store
from benchmarks.paper.tracing import Course, least_objective, trace
from benchmarks.running import note

_measured: dict[tuple[object, ...], Course] = {}  # by this process: experiments that run together share fits
_optima: dict[tuple[object, ...], float] = {}
_TOL = {("logistic", "full"): 1e-2}  # of what is taken for the optimum: 1e-3 but for this, where it would take minutes


@dataclass(frozen=True)
class Request:
    """What was asked on the command line.

    Attributes
    ----------
    place : Place
        Scale and device.
    only : sequence of str
        Names of the solvers to measure; those that were measured before stay. Empty: all.
    draw : bool
        Measure nothing; make tables and figures of what is there.
    rows : int or None
        Training rows, for a trial.
    sets : sequence of str
        Names of the data sets to measure. Empty: all.
    limit : float or None
        Seconds after which a rival is stopped, or no further block of kdda is begun.
    take : sequence of Path
        Numbers of other runs, of the same solvers, that are taken in first.
    folder : Path
        Where results go.
    """

    place: Place = field(default_factory=Place)
    only: Sequence[str] = ()
    draw: bool = False
    rows: int | None = None
    sets: Sequence[str] = ()
    limit: float | None = None
    take: Sequence[Path] = ()
    folder: Path = field(default=FOLDER)

    def store(self, experiment: str) -> Store:
        return Store(experiment, self.place.scale, self.folder)


@dataclass(frozen=True)
class Measured:
    """The courses of the solvers on one data set, and the least objective known."""

    optimum: float
    courses: dict[str, Course]


def measure(
    experiment: str, request: Request, sets: Sequence[str], solvers: Mapping[str, Solver], loss: str = "hinge"
) -> dict[str, Measured]:
    """The courses of all solvers on all data sets, by the sets' names; a set that is not there is left out."""
    _check("--only", request.only, solvers, experiment)
    _check("--sets", request.sets, sets, experiment)
    store = request.store(experiment)
    stored = store.load().get("sets", {})
    for path in request.take:
        _take(path, store, stored, solvers, request.place.scale, loss)
    if not request.draw:
        wanted = list(request.only) or list(solvers)
        for name in request.sets or sets:
            _measure_set(store, stored, name, request, {key: solvers[key] for key in wanted}, loss)
    if not stored:
        raise FileNotFoundError(f"{store.path} has no results yet: run {experiment} without --draw.")
    return {name: _known(stored[name], solvers) for name in sets if name in stored}


def _check(option: str, asked: Sequence[str], known: Iterable[str], experiment: str) -> None:
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise ValueError(f"{option} {', '.join(unknown)}: {experiment} knows {', '.join(known)}.")


def _take(
    path: Path, store: Store, stored: dict[str, dict], solvers: Mapping[str, Solver], scale: str, loss: str
) -> None:
    """Add the courses of another run, with the machine that it was on."""
    other = json.loads(path.read_text(encoding="utf-8"))
    if (other["scale"], other["loss"]) != (scale, loss):
        raise ValueError(
            f"--take {path}: it is of {other['scale']} and {other['loss']}; use one of {scale} and {loss}."
        )
    for name, one in other["sets"].items():
        mine = stored.setdefault(name, {"courses": {}})
        mine["courses"].update({key: course for key, course in one["courses"].items() if key in solvers})
        optima = [part["optimum"] for part in (mine, one) if part.get("optimum") is not None]
        mine.update({**one, "courses": mine["courses"], "optimum": min(optima, default=None)})
    store.keep({**other, "sets": stored})


def _known(stored: dict[str, object], solvers: Mapping[str, Solver]) -> Measured:
    kept: dict[str, dict] = stored["courses"]  # type: ignore[assignment]
    courses = {key: Course.of(kept[key]) for key in solvers if key in kept}
    # A later fit may have got below what was taken for the optimum.
    points = [point for key, course in courses.items() if solvers[key].dual for point in course.points]
    found = [point.objective for point in points if point.objective is not None]
    if stored["optimum"] is not None:
        found.append(float(stored["optimum"]))  # type: ignore[arg-type]
    return Measured(min(found, default=float("nan")), courses)


def _measure_set(
    store: Store, stored: dict[str, dict], name: str, request: Request, solvers: Mapping[str, Solver], loss: str
) -> None:
    try:
        problem = load_problem(name, request.place.scale, request.rows)
    except FileNotFoundError as error:
        note(f"{name} is left out: {error}")
        return
    one = stored.setdefault(name, {"courses": {}})
    known = one.get("optimum") is not None and one.get("rows") == len(problem.y)
    one["rows"], one["test_rows"] = len(problem.y), len(problem.y_test)
    # Features have another problem, with another optimum.
    if not known and any(not solver.series for solver in solvers.values()):
        one["optimum"] = _optimum(problem, request, loss)
    one.setdefault("optimum", None)
    for key, solver in solvers.items():
        if solver.most_rows is not None and len(problem.y) > solver.most_rows:
            note(f"{name}, {key}: left out, {len(problem.y):,} rows would take hours")
            continue
        course = _course(problem, request, key, solver, loss)
        if course is None:
            continue
        one["courses"][key] = asdict(course)
        store.save({"scale": request.place.scale, "seed": 0, "loss": loss, "sets": stored})


def _optimum(problem: Problem, request: Request, loss: str) -> float:
    key = (problem.name, len(problem.y), request.place, loss)
    if key not in _optima:
        _optima[key] = least_objective(problem, loss, request.place.device, _TOL.get((loss, request.place.scale), 1e-3))
    return _optima[key]


def _course(problem: Problem, request: Request, name: str, solver: Solver, loss: str) -> Course | None:
    """A solver that cannot do it (no memory, no such kernel on a GPU) must not end the others."""
    rival = solver.make(problem, request.place)
    key = (problem.name, len(problem.y), repr(rival))
    if key not in _measured:
        try:
            _measured[key] = trace(rival, problem, request.limit)
        except Exception as error:
            note(f"{problem.name}, {name}: {type(error).__name__}: {error}")
            return None
    course = _measured[key]
    accuracy = f"{course.last.accuracy:.2%}" if course.last.accuracy is not None else "-"
    stopped = ", stopped" if course.stopped else ""
    note(
        f"{problem.name}, {name}: {course.seconds:.2f} s{stopped}, {course.cpu_seconds:.1f} CPU s, accuracy {accuracy}"
    )
    return course
