"""The paper's DC-SVM figure: objective and accuracy over time, beside PBM."""

from __future__ import annotations

from benchmarks.paper.courses import Request, measure
from benchmarks.paper.figures import draw_courses
from benchmarks.paper.solvers import svm_solvers
from benchmarks.paper.table2 import table

SETS = ("covtype", "ijcnn1")
SOLVERS = ("first-step", "algorithm-1", "parablock", "dcsvm", "dcsvm-early")


def run(request: Request) -> None:
    everyone = svm_solvers(request.place.scale)
    solvers = {key: everyone[key] for key in SOLVERS}
    measured = measure("dcsvm", request, SETS, solvers)
    store = request.store("dcsvm")
    draw_courses(measured, solvers, ("error", "accuracy"), store.figure, "PBM and DC-SVM")
    tables = "\n\n".join(table(name, one, solvers) for name, one in measured.items())
    store.publish(f"![Objective and test error of PBM and DC-SVM over time]({store.figure.name})\n\n{tables}")
