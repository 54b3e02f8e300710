"""`parablock predict`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from sklearn.base import is_regressor

from parablock.cli import options as kinds
from parablock.cli.data import add_data_options
from parablock.cli.failures import UsageError, say
from parablock.cli.models import read_for
from parablock.cli.options import Parser, add_common
from parablock.cli.paths import refuse_overwriting
from parablock.cli.scaling import add_scaling_options
from parablock.cli.words import on_a_line
from parablock.datasets import DataError
from parablock.datasets.streams import writing

_EXAMPLES = """\
examples:
  parablock predict model.pbk test.svm -o out.txt
  parablock predict house.pbk new.csv > out.txt
  parablock predict model.pbk test.csv --target kind --scores | head

One prediction a line, as svm-predict writes it. Where the data has labels, the accuracy, or R2 and
errors, are told: on standard output, or on standard error where that has the predictions.
"""
_LINES_AT_ONCE = 10_000


def make_parser() -> Parser:
    parser = Parser(
        "predict",
        "MODEL DATA [-o FILE] [options]",
        description="Predict the rows of a data file with a model.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="file of 'parablock train', or of LIBSVM's svm-train")
    add("data", metavar="DATA", help="file with the rows; - is standard input")
    add("-o", "--output", metavar="FILE", type=_output, default="-", help="by default -, standard output")
    add(
        "--scores",
        action="store_true",
        help="decision values alone: one (positive for the second class), or one a class",
    )
    add("--probabilities", action="store_true", help="label and probabilities, as svm-predict -b 1 writes them")
    add("-b", type=int, choices=[0, 1], default=0, help="-b 1: --probabilities, as in svm-predict")
    add("--device", choices=["cpu", "cuda", "auto"], help="what computes; by default as in training, or cpu")
    add("--jobs", metavar="N", type=kinds.jobs, help="threads; by default all cores")
    add("-q", "--quiet", action="store_true", help="do not tell accuracy or errors")
    add_scaling_options(add_data_options(parser), save=False)
    add_common(parser)
    return parser


def _output(text: str) -> str:
    return text if text == "-" else kinds.output(text)


def run(options: argparse.Namespace) -> int:
    from parablock.models import load_any

    if options.scores and (options.probabilities or options.b):
        raise UsageError("--scores and --probabilities cannot be had at the same time")
    refuse_overwriting(
        {
            "the model": options.model,
            "the data": options.data,
            "--labels": options.labels,
            "--use-scaling": options.use_scaling,
        },
        {"-o": options.output},
    )
    model = load_any(options.model)
    asked = {"device": options.device, "n_jobs": options.jobs}
    model.set_params(**{name: value for name, value in asked.items() if value is not None})
    data = read_for(model, options)
    predicted, lines = _predictions(model, data.X, options)
    results = [] if data.y is None or options.quiet else _results(model, predicted, data.y)
    if options.output == "-":
        _write(sys.stdout.buffer, lines)
        sys.stdout.flush()
    else:
        with writing(options.output) as file:
            _write(file, lines)
    for result in results:
        (say if options.output == "-" else print)(result)
    return 0


def _predictions(model: Any, X: Any, options: argparse.Namespace) -> tuple[np.ndarray | None, Iterator[str]]:
    """Labels or targets, where they are computed, and the lines to write."""
    if options.probabilities or options.b:
        if not hasattr(model, "predict_proba"):
            raise DataError(f"{type(model).__name__} has no probabilities; train with --task logistic for them")
        probabilities = model.predict_proba(X)
        labels = model.classes_[probabilities.argmax(axis=1)]
        header = " ".join(("labels", *texts(model.classes_, among_others=True)))
        rows = (" ".join((label, *texts(row))) for label, row in zip(texts(labels, among_others=True), probabilities))
        return labels, _after(header, rows)
    if options.scores:
        if not hasattr(model, "decision_function"):
            raise DataError(f"{type(model).__name__} has no decision values; without --scores it predicts its targets")
        return None, _rows(model.decision_function(X))
    predicted = model.predict(X)
    return predicted, _rows(predicted)


def _rows(values: np.ndarray) -> Iterator[str]:
    return iter(texts(values)) if values.ndim == 1 else (" ".join(texts(row)) for row in values)


def _after(header: str, rows: Iterator[str]) -> Iterator[str]:
    yield header
    yield from rows


def texts(values: np.ndarray, among_others: bool = False) -> list[str]:
    """Numbers with all their digits, whole ones without a point; text as `on_a_line` writes it."""
    if values.dtype.kind == "f":
        return [repr(value).removesuffix(".0") for value in values.tolist()]
    if values.dtype.kind in "biu":
        return [str(value) for value in values.tolist()]
    known = {label: on_a_line(str(label), among_others) for label in set(values.tolist())}
    return [known[label] for label in values.tolist()]


def _write(file: BinaryIO, lines: Iterator[str]) -> None:
    kept: list[str] = []
    for line in lines:
        kept.append(line)
        if len(kept) == _LINES_AT_ONCE:
            file.write(("\n".join(kept) + "\n").encode())
            kept.clear()
    if kept:
        file.write(("\n".join(kept) + "\n").encode())


def _results(model: Any, predicted: np.ndarray | None, y: np.ndarray) -> list[str]:
    """How good the predictions are, in svm-predict's words where it has some."""
    if predicted is None or predicted.ndim != 1:
        return []
    if not is_regressor(model):
        if isinstance(predicted[0], str) != isinstance(y[0], str):
            return [f"no accuracy: the model's labels are like {predicted[0]}, and those of the data like {y[0]}"]
        right = int(np.sum(predicted == y))
        return [f"Accuracy = {100 * right / len(y):g}% ({right}/{len(y)}) (classification)"]
    if y.dtype.kind not in "biuf":
        return [f"no R2: the model predicts numbers, and the targets of the data are like {y[0]}"]
    errors = predicted - y
    spread = np.sum((y - y.mean()) ** 2)
    r2 = 1 - np.sum(errors**2) / spread if spread > 0 else float("nan")
    return [
        f"R2 = {r2:g} (regression)",
        f"Mean absolute error = {np.abs(errors).mean():g} (regression)",
        f"Mean squared error = {np.mean(errors**2):g} (regression)",
    ]
