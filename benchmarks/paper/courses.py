"""Measure solvers on data sets, one after the other, and keep every result as soon as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.paper.problems import Problem, load_problem
from benchmarks.paper.solvers import Place, Solver
from benchmarks.paper.store import FOLDER, Store
from benchmarks.paper.tracing import Course, least_objective, trace
from benchmarks.running import note

_measured: dict[tuple[object, ...], Course] = {}  # by this process: experiments that run together share fits
_optima: dict[tuple[object, ...], float] = {}


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
    folder : Path
        Where results go.
    """

    place: Place = field(default_factory=Place)
    only: Sequence[str] = ()
    draw: bool = False
    rows: int | None = None
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
    unknown = sorted(set(request.only) - set(solvers))
    if unknown:
        raise ValueError(f"--only {', '.join(unknown)}: {experiment} knows {', '.join(solvers)}.")
    store = request.store(experiment)
    stored = store.load().get("sets", {})
    if not request.draw:
        wanted = list(request.only) or list(solvers)
        for name in sets:
            _measure_set(store, stored, name, request, {key: solvers[key] for key in wanted}, loss)
    if not stored:
        raise FileNotFoundError(f"{store.path} has no results yet: run {experiment} without --draw.")
    return {name: _known(one, solvers) for name, one in stored.items() if name in sets}


def _known(stored: dict[str, object], solvers: Mapping[str, Solver]) -> Measured:
    kept: dict[str, dict] = stored["courses"]  # type: ignore[assignment]
    courses = {key: Course.of(kept[key]) for key in solvers if key in kept}
    # A later fit may have got below what was taken for the optimum.
    found = [point.objective for course in courses.values() for point in course.points if point.objective is not None]
    return Measured(min([float(stored["optimum"]), *found]), courses)  # type: ignore[arg-type]


def _measure_set(
    store: Store, stored: dict[str, dict], name: str, request: Request, solvers: Mapping[str, Solver], loss: str
) -> None:
    try:
        problem = load_problem(name, request.place.scale, request.rows)
    except FileNotFoundError as error:
        note(f"{name} is left out: {error}")
        return
    one = stored.setdefault(name, {"courses": {}})
    one["rows"], one["test_rows"] = len(problem.y), len(problem.y_test)
    one["optimum"] = _optimum(problem, request, loss)
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
        _optima[key] = least_objective(problem, loss, request.place.device)
    return _optima[key]


def _course(problem: Problem, request: Request, name: str, solver: Solver, loss: str) -> Course | None:
    """A solver that cannot do it (no memory, no such kernel on a GPU) must not end the others."""
    rival = solver.make(problem, request.place)
    key = (problem.name, len(problem.y), repr(rival))
    if key not in _measured:
        try:
            _measured[key] = trace(rival, problem)
        except (MemoryError, ValueError) as error:
            note(f"{problem.name}, {name}: {type(error).__name__}: {error}")
            return None
    course = _measured[key]
    accuracy = f"{course.last.accuracy:.2%}" if course.last.accuracy is not None else "-"
    note(f"{problem.name}, {name}: {course.seconds:.2f} s, {course.cpu_seconds:.1f} CPU s, accuracy {accuracy}")
    return course
