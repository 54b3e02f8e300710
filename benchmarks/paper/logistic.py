"""The paper's Table 2, logistic regression; with a figure."""

from __future__ import annotations

from benchmarks.paper.courses import Request, measure
from benchmarks.paper.figures import draw_courses
from benchmarks.paper.solvers import logistic_solvers
from benchmarks.paper.table2 import table

SETS = {"small": ("covtype", "ijcnn1"), "full": ("covtype", "ijcnn1", "mnist")}


def run(request: Request) -> None:
    scale = request.place.scale
    solvers = logistic_solvers(scale)
    measured = measure("logistic", request, SETS[scale], solvers, loss="logistic")
    store = request.store("logistic")
    draw_courses(measured, solvers, ("error", "accuracy"), store.figure, "Logistic regression")
    tables = "\n\n".join(table(name, one, solvers) for name, one in measured.items())
    store.publish(f"![Objective and test error over time, logistic regression]({store.figure.name})\n\n{tables}")
