"""Table 2: time and accuracy of every solver, support vector machine; logistic regression is `logistic`."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.paper.courses import Measured, Request, measure
from benchmarks.paper.solvers import Solver, svm_solvers
from benchmarks.paper.tracing import ERROR, Course
from benchmarks.running import markdown_table

SETS = {"small": ("covtype", "ijcnn1", "mnist"), "full": ("covtype", "ijcnn1", "mnist")}

# The paper's Table 2 where it has the same set: seconds on 32 machines (DC-SVM: on one) and test accuracy in percent.
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "covtype": {
        "first-step": (14, 96.05),
        "algorithm-1": (772, 96.13),
        "ppack": (1349, 92.67),
        "psvm-0.5": (286, 76.00),
        "psvm-0.6": (7071, 81.53),
        "dcsvm": (10457, 96.13),
    }
}
TO_THE_ERROR = ("algorithm-1", "parablock", "dcsvm")  # measured when they reach the paper's relative error


def run(request: Request) -> None:
    scale = request.place.scale
    solvers = svm_solvers(scale)
    measured = measure("table2", request, SETS[scale], solvers)
    paper = PAPER if scale == "full" else {}  # which used all rows
    tables = [table(name, one, solvers, paper.get(name, {})) for name, one in measured.items()]
    request.store("table2").publish("\n\n".join(tables))


def table(
    name: str, one: Measured, solvers: dict[str, Solver], paper: Mapping[str, tuple[float, float]] | None = None
) -> str:
    """One data set, a row for each solver; the paper's numbers beside it, if there are any."""
    head = (
        name, "seconds", f"to relative error {ERROR:g}", "CPU seconds of the fit", "test accuracy, %",
        "relative error of the objective", *(("paper: seconds", "paper: accuracy, %") if paper else ()),
    )  # fmt: skip
    rows = []
    for key, course in one.courses.items():
        cells = solvers[key].label, *_cells(key, course, one.optimum if solvers[key].dual else None)
        if paper:
            cells += (f"{paper[key][0]:,.0f}", f"{paper[key][1]:.2f}") if key in paper else ("-", "-")
        rows.append(cells)
    return markdown_table(head, rows)


def _cells(key: str, course: Course, optimum: float | None) -> tuple[str, ...]:
    accuracy, error, at_goal = course.last.accuracy, "-", "-"
    if course.last.objective is not None and optimum is not None:
        error = f"{(course.last.objective - optimum) / abs(optimum):.1e}"
    if key in TO_THE_ERROR and optimum is not None:
        goal = course.reached(optimum)
        at_goal = "not reached" if goal is None else f"{goal.seconds:.2f}"
        if goal is not None and goal.accuracy is not None:
            accuracy = goal.accuracy
    shown = "-" if accuracy is None else f"{100 * accuracy:.2f}"
    stopped = "stopped at " if course.stopped else ""
    return f"{stopped}{course.seconds:.2f}", at_goal, f"{course.cpu_seconds:.1f}", shown, error
