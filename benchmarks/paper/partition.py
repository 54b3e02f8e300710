"""The paper's partition figure: k-means against random blocks, local against global prediction; and our own blocks."""

from __future__ import annotations

from benchmarks.paper.courses import Measured, Request, measure
from benchmarks.paper.figures import draw_courses
from benchmarks.paper.solvers import partition_solvers
from benchmarks.paper.tracing import ERROR, Course
from benchmarks.running import markdown_table

SETS = ("covtype", "ijcnn1")


def run(request: Request) -> None:
    solvers = partition_solvers()
    measured = measure("partition", request, SETS, solvers)
    store = request.store("partition")
    draw_courses(measured, solvers, ("error", "accuracy"), store.figure, "Partitions and predictions")
    labels = {key: solver.label for key, solver in solvers.items()}
    tables = "\n\n".join(_table(name, one, labels) for name, one in measured.items())
    store.publish(f"![Objective and test error over time for each partition]({store.figure.name})\n\n{tables}")


def _table(name: str, one: Measured, labels: dict[str, str]) -> str:
    head = (
        name, "error after the first step", "accuracy after the first step, %", f"iterations to {ERROR:g}",
        f"seconds to {ERROR:g}", "error at the end", "accuracy at the end, %",
    )  # fmt: skip
    return markdown_table(head, [(labels[key], *_cells(course, one.optimum)) for key, course in one.courses.items()])


def _cells(course: Course, optimum: float) -> tuple[str, ...]:
    errors = [error for _, error in course.errors(optimum)]
    iterations = next((number for number, error in enumerate(errors, start=1) if error <= ERROR), None)
    goal = course.reached(optimum)
    return (
        f"{errors[0]:.1e}",
        f"{100 * (course.points[0].accuracy or 0):.2f}",
        f"over {len(errors)}" if iterations is None else str(iterations),
        "-" if goal is None else f"{goal.seconds:.2f}",
        f"{errors[-1]:.1e}",
        f"{100 * (course.last.accuracy or 0):.2f}",
    )
