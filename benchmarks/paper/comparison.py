"""The paper's comparison figure: test accuracy against time for all solvers."""

from __future__ import annotations

from benchmarks.paper.courses import Request, measure
from benchmarks.paper.figures import draw_courses
from benchmarks.paper.solvers import svm_solvers
from benchmarks.paper.table2 import SETS


def run(request: Request) -> None:
    scale = request.place.scale
    solvers = svm_solvers(scale)
    measured = measure("comparison", request, SETS[scale], solvers)
    store = request.store("comparison")
    draw_courses(measured, solvers, ("accuracy",), store.figure, "Test accuracy over time")
    lines = [
        f"- {name}: {', '.join(_reached(one.courses, solvers, share))} reach {100 * share:.1f} %, which is "
        f"{100 * (best - share):.1f} below the best."
        for name, one in measured.items()
        for best in [max(value for course in one.courses.values() for _, value in course.accuracies())]
        for share in [best - 0.01]
    ]
    figure = f"![Test accuracy over time for all solvers]({store.figure.name})"
    store.publish(f"{figure}\n\nFirst within one percent of the best accuracy, in seconds:\n\n" + "\n".join(lines))


def _reached(courses: dict, solvers: dict, share: float) -> list[str]:
    """Who gets so far, the fastest first, with seconds."""
    times = {
        key: next(seconds for seconds, value in course.accuracies() if value >= share)
        for key, course in courses.items()
        if any(value >= share for _, value in course.accuracies())
    }
    return [f"{solvers[key].label} {times[key]:.2f}" for key in sorted(times, key=times.__getitem__)]
