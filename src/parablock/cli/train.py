"""`parablock train`."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.cli import options as kinds
from parablock.cli.cross_validation import cross_validate
from parablock.cli.data import add_data_options, labelled, read, stored
from parablock.cli.failures import INTERRUPTED, UsageError, say
from parablock.cli.fitting import fit, is_untrained
from parablock.cli.models import model_format, write_trained
from parablock.cli.options import Parser, add_common
from parablock.cli.paths import refuse_overwriting
from parablock.cli.ranks import is_first, on_every_rank
from parablock.cli.scaling import (
    Scaler,
    add_scaling_options,
    load_scaling,
    names_of_scaling,
    save_scaling,
    scaler,
    widened,
)
from parablock.cli.tasks import (
    CLASSIFIERS,
    check_task,
    class_weight,
    kernel,
    make_model,
    task,
    with_weights_spelled_out,
)
from parablock.datasets import Data, DataError
from parablock.datasets.reading import TABLES, format_of
from parablock.datasets.streams import STANDARD_INPUT, without_compression
from parablock.planning.forecast import size

_EXAMPLES = """\
examples:
  parablock train flowers.csv --target species -o flowers.pbk
  parablock train covtype.svm -o model.pbk -c 32 -g 32 --device cuda --log run.jsonl
  parablock train house.parquet --target price --task ridge -o house.pbk
  parablock train heart_scale -v 5 -c 4 -g 0.1 -w1 2 -w-1 1
  zcat covtype.svm.gz | parablock train - -o model.pbk --checkpoint run.checkpoint --resume

Options of one letter are as in svm-train; -wLABEL WEIGHT too. See docs/command-line.md for all of it.
"""
# More different numbers than the first, with fewer rows each than the second, are unlikely to be classes.
_FEW_CLASSES, _ROWS_A_CLASS = 20, 10


class _TrainParser(Parser):
    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        return super().parse_args(with_weights_spelled_out(args), namespace)


def make_parser() -> Parser:
    parser = _TrainParser(
        "train", "DATA [-o MODEL] [options]", description="Train a model on a data file.", epilog=_EXAMPLES
    )
    parser.add_argument("data", metavar="DATA", help="file to train on; - is standard input")
    parser.add_argument(
        "-o", "--output", metavar="MODEL", type=kinds.output,
        help="file to write: .pbk, .model (LIBSVM's) or .onnx; by default DATA's name with .pbk, in this folder",
    )  # fmt: skip
    _add_problem(parser.add_argument_group("what to train (one letter: as in svm-train)"))
    _add_run(parser.add_argument_group("how to run"))
    scaling = add_scaling_options(add_data_options(parser))
    scaling.add_argument("--scale", action="store_true", help="scale features of LIBSVM's text and sparse files too")
    scaling.add_argument("--no-scaling", action="store_true", help="leave features of dense files as they are")
    add_common(parser)
    return parser


def _add_problem(group: Any) -> None:
    add = group.add_argument
    add("-s", "--task", type=task, default="svc", help="svc (0), logistic, svr (3), ridge or quantile (default: svc)")
    add("-t", "--kernel", type=kernel, default="rbf",
        help="linear (0), polynomial (1), rbf (2, default), sigmoid (3), precomputed (4), laplacian, chi2, matern32, "
        "matern52 or cosine")  # fmt: skip
    add("-c", "--C", type=kinds.positive, default=1.0, help="weight of the losses against the regulariser (1)")
    add("-g", "--gamma", type=kinds.gamma, default="scale",
        help="of the kernel: a number, scale (default: 1 / (features x variance)) or auto (svm-train's: 1 / features)",
        )  # fmt: skip
    add("-d", "--degree", type=kinds.count, default=3, help="of the polynomial kernel (3)")
    add("-r", "--coef0", type=kinds.finite, default=0.0, help="of the polynomial and sigmoid kernels (0)")
    add("-p", "--epsilon", type=kinds.zero_or_more, help="svr: errors up to this cost nothing (0.1)")
    add("--quantile", type=kinds.share, help="quantile: which one (0.5)")
    add("--class-weight", metavar="LABEL=WEIGHT", type=class_weight, action="append",
        help="multiply C of a class, also as -wLABEL WEIGHT; or 'balanced'")  # fmt: skip
    add("--no-intercept", dest="intercept", action="store_false", help="train without intercept")
    add("-v", "--folds", metavar="FOLDS", type=kinds.whole, help="cross-validate; no model is written")


def _add_run(group: Any) -> None:
    add = group.add_argument
    add("-e", "--tol", type=kinds.positive, default=1e-3, help="tolerance at which training ends (0.001)")
    add("--max-iter", type=kinds.whole, default=1000, help="most outer iterations (1000)")
    add(
        "--time-limit",
        metavar="TIME",
        type=kinds.seconds,
        help="end in time: seconds, or 10min, 2h",
    )
    add(
        "--early-stopping",
        action="store_true",
        help="hold rows out; end when they get no better, keep the best",
    )
    add("--hold-out", metavar="SHARE", type=kinds.share, default=0.1, help="how many, as a share of all rows (0.1)")
    add("--patience", type=kinds.whole, default=5, help="iterations to wait for something better (5)")
    add("--checkpoint", metavar="FILE", type=kinds.output, help="leave there how far training got; on SIGTERM too")
    add("--checkpoint-every", metavar="TIME", type=kinds.seconds, default=600.0, help="how often (10min)")
    add("--resume", action="store_true", help="go on from that file if it is there")
    add("--device", choices=["cpu", "cuda", "auto"], default="cpu", help="what computes (cpu)")
    add("--engine", choices=["local", "mpi"], default="local", help="mpi: the processes that mpiexec started")
    add("--jobs", metavar="N", type=kinds.jobs, help="threads; by default all cores")
    add("-m", "--memory-limit", metavar="SIZE", type=_megabytes, help="for kernel values: 2GB, or a number of MB")
    add(
        "--dtype",
        choices=["float32", "float64"],
        help="of the features; by default as in the file, text: float64",
    )
    add("--storage", choices=["auto", "dense", "sparse"], default="auto", help="of the features in memory (auto)")
    add("--seed", type=kinds.seed, default=0, help="of the random generator (0)")
    add("--log", metavar="FILE", type=kinds.output, help="write a line of JSON an iteration, for 'parablock report'")
    add("--verbose", action="store_const", const=1, default=0, help="write a line an iteration to standard error")
    add("-q", "--quiet", action="store_true", help="say nothing but errors and warnings")


def _megabytes(text: str) -> str:
    """svm-train's cache size is a number of megabytes."""
    return kinds.memory(f"{text}MB" if text.replace(".", "", 1).isdigit() else text)


def run(options: argparse.Namespace) -> int:
    _check(options)
    started = time.perf_counter()
    data, y, scale = on_every_rank(options.engine, lambda: _read(options))
    tell = (lambda text: None) if options.quiet else say
    tell(f"read {_described(data.X)} in {time.perf_counter() - started:.1f} s")
    if is_first(options.engine):
        _warn_of_many_classes(y, options)
    model = make_model(options, y)
    if options.folds is not None:
        scaling = scale(data.X)
        if options.save_scaling is not None and scaling is not None:
            save_scaling(options.save_scaling, scaling, data.names)
        for line in cross_validate(model, data.X, y, options.folds, options.seed, scale):
            print(line)
        return 0
    fit(model, data, scale, options, tell)
    if is_first(options.engine) and not is_untrained(model):
        write_trained(model, options.output, model_format(options.output, otherwise="pbk"))
        written = Path(options.output)
        tell(f"wrote {options.output}" + (f" ({size(written.stat().st_size)})" if written.is_file() else ""))
    return INTERRUPTED if model.stop_reason_ == "interrupted" else 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what makes no sense before anything is read."""
    check_task(options)
    if (options.format or format_of(options.data)) in TABLES and options.target is None and options.labels is None:
        raise UsageError("a table needs --target, the name or number of the column with the labels")
    if options.resume and options.checkpoint is None:
        raise UsageError("--resume needs --checkpoint, the file to go on from")
    if options.kernel == "precomputed" and (options.save_scaling or options.use_scaling or options.scale):
        raise UsageError("a precomputed kernel has no features to scale: leave the scaling out")
    if options.early_stopping and options.kernel == "precomputed":
        raise UsageError("--early-stopping cannot hold out rows of a precomputed kernel")
    if options.folds is not None:
        if options.folds < 2:
            raise UsageError("-v needs at least 2 folds")
        for name in ("output", "checkpoint", "log", "time_limit", "early_stopping"):
            if getattr(options, name):
                raise UsageError(f"--{name.replace('_', '-')} has no place beside -v, which writes no model")
        if options.engine != "local":
            raise UsageError("-v runs on one machine: leave --engine out")
        _refuse_overwriting(options)
        return
    if options.output is None:
        if options.data == STANDARD_INPUT:
            raise UsageError("name the model's file with -o when data comes from standard input")
        options.output = kinds.output(f"{Path(without_compression(options.data)).stem}.pbk")
    _refuse_overwriting(options)
    if model_format(options.output, otherwise="pbk") == "onnx" and find_spec("onnx") is None:
        raise UsageError("a model is written as ONNX with the package onnx: pip install 'parablock[onnx]'")


def _refuse_overwriting(options: argparse.Namespace) -> None:
    refuse_overwriting(
        {"the data": options.data, "--labels": options.labels, "--use-scaling": options.use_scaling},
        {
            "the model -o": options.output,
            "--save-scaling": options.save_scaling,
            "--log": options.log,
            "--checkpoint": options.checkpoint,
        },
    )


def _read(options: argparse.Namespace) -> tuple[Data, np.ndarray, Scaler]:
    given_kernel = options.kernel == "precomputed"
    data = read(options, given_kernel=given_kernel, names=names_of_scaling(options))
    y = labelled(data, options)
    _refuse_doubled_names(data.names, options.data)
    if options.task not in CLASSIFIERS and y.dtype.kind not in "biuf":
        raise DataError(f"{options.data}: --task {options.task} needs numbers as targets; {y[0]!s} is none")
    if options.task in CLASSIFIERS and y.dtype.kind == "f" and not np.array_equal(y, np.rint(y)):
        number = y[y != np.rint(y)][0]
        raise DataError(f"{options.data}: {number} is no class; for numbers to predict there are --task svr and ridge")
    if given_kernel and data.X.shape[0] != data.X.shape[1]:
        shape = f"{data.X.shape[0]} x {data.X.shape[1]}"
        raise DataError(f"{options.data}: a kernel matrix must be square, and this one is {shape}")
    scale = scaler(options, dense=not sp.issparse(data.X))
    if options.use_scaling is not None:
        data = widened(data, load_scaling(options.use_scaling)[0], options.data)
    X = stored(data.X, "dense" if given_kernel else options.storage, options.dtype)
    return Data(X, y, data.names), y, scale


def _refuse_doubled_names(names: list[str] | None, path: str) -> None:
    """By which `predict` would not find its columns."""
    doubled = [name for name, times in Counter(names or ()).items() if times > 1]
    if doubled:
        raise DataError(
            f"{path}: several columns are called {doubled[0]!r}, and predict finds columns by their names; rename "
            "them, or leave all but one out by their numbers, as in --drop 3"
        )


def _warn_of_many_classes(y: np.ndarray, options: argparse.Namespace) -> None:
    """Where whole numbers are so many classes that they are likely to be numbers to predict."""
    count = len(np.unique(y)) if options.task in CLASSIFIERS and y.dtype.kind in "iuf" else 0
    if count > _FEW_CLASSES and count * _ROWS_A_CLASS > len(y):
        say(
            f"parablock: warning: the target has {count:,} different numbers in {len(y):,} rows, and each is taken for "
            "a class; if they are numbers to predict, train with --task svr or ridge"
        )


def _described(X: Any) -> str:
    kind = "sparse" if hasattr(X, "nnz") else "dense"
    return f"{X.shape[0]:,} rows x {X.shape[1]:,} features ({kind} {X.dtype})"
