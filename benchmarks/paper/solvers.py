"""The solvers of the comparisons: what they are called, how they are made, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.paper.problems import Problem
from benchmarks.rivals import (
    ALGORITHM_1,
    CASVM,
    DCSVM,
    LIBSVM,
    PSVM,
    CascadeSVM,
    FirstStep,
    Nystroem,
    Parablock,
    PPackSVM,
    RandomFeatures,
    Rival,
)

# Okabe and Ito's colours, which people who confuse some colours can tell apart; markers and lines tell the rest.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#777777"


@dataclass(frozen=True)
class Place:
    """Where and how large: the scale, and the device."""

    scale: str = "small"
    device: str = "cpu"

    def blocks(self, rows: int) -> int:
        """How many stand for the paper's 32 machines."""
        if self.scale == "small":
            return 8
        # A GPU solves blocks of at most 4,096 rows, and k-means makes some that are a quarter larger than the mean.
        return max(32, -(-5 * rows // (4 * 4096))) if self.device == "cuda" else 32

    @property
    def memory(self) -> str:
        return "4GB" if self.scale == "small" else "48GB"

    @property
    def options(self) -> dict[str, Any]:
        """Of everything that computes kernel values."""
        return {"device": self.device, "memory_limit": self.memory}


@dataclass(frozen=True)
class Solver:
    """A solver with its settings.

    Attributes
    ----------
    label : str
    make : callable
        From a problem and a place to a rival.
    colour, marker, line : str
    most_rows : int or None
        More would take hours.
    series : str
        What it is drawn as one of, where several solvers differ by a number only.
    number : int
        That number.
    dual : bool
        Whether its coefficients are a point of the dual problem without intercept.
    """

    label: str
    make: Callable[[Problem, Place], Rival]
    colour: str
    marker: str
    line: str = "-"
    most_rows: int | None = None
    series: str = ""
    number: int = 0
    dual: bool = True


def _ours(
    options: dict[str, Any], prediction: str = "global", loss: str = "hinge"
) -> Callable[[Problem, Place], Rival]:
    def make(problem: Problem, place: Place) -> Rival:
        return Parablock(
            problem.C, problem.gamma, loss=loss, prediction=prediction, options=dict(options), **place.options
        )

    return make


def _algorithm_1(
    max_iter: int, prediction: str = "global", loss: str = "hinge", **options: Any
) -> Callable[[Problem, Place], Rival]:
    def make(problem: Problem, place: Place) -> Rival:
        parameters = {
            **ALGORITHM_1,
            "n_blocks": place.blocks(len(problem.y)),
            "max_iter": max_iter,
            "tol": TOL,
            **options,
        }
        return _ours(parameters, prediction, loss)(problem, place)

    return make


def _dual(make: Any, **options: Any) -> Callable[[Problem, Place], Rival]:
    """A rival that solves problems of support vector machines to our tolerance."""
    return lambda problem, place: make(problem.C, problem.gamma, tol=TOL, **options, **place.options)


def _first_step(loss: str = "hinge") -> Callable[[Problem, Place], Rival]:
    return lambda problem, place: _dual(FirstStep, blocks=place.blocks(len(problem.y)), loss=loss)(problem, place)


def _features(make: Any, count: int, loss: str = "hinge") -> Callable[[Problem, Place], Rival]:
    def made(problem: Problem, place: Place) -> Rival:
        device = {"device": place.device} if make is Nystroem else {}
        most = 1000 if place.scale == "small" else 30  # passes over the rows: a limit of time
        return make(problem.C, problem.gamma, features=count, loss=loss, max_iter=most, **device)

    return made


TOL = 1e-2  # largest violation of the optimality conditions, of everyone who has such a tolerance
FEATURES = {"small": (100, 400, 1600), "full": (250, 500, 1000, 2000)}


def svm_solvers(scale: str) -> dict[str, Solver]:
    """Of the support vector machine, by the names that ``--only`` takes."""
    small = scale == "small"
    solvers = {
        "first-step": Solver("PBM, first step", _first_step(), VERMILION, "*", ""),
        "algorithm-1": Solver("PBM, Algorithm 1", _algorithm_1(100 if small else 1000), VERMILION, "o"),
        "parablock": Solver("parablock", _ours({"tol": TOL}), BLACK, "s"),
        "dcsvm": Solver("DC-SVM", _dual(DCSVM), BLUE, "D"),
        "dcsvm-early": Solver(
            "DC-SVM, early", _dual(DCSVM, early=1) if small else _dual(DCSVM, levels=4, early=3), SKY, "D", ""
        ),
        "casvm": Solver("CA-SVM", lambda p, at: _dual(CASVM, clusters=at.blocks(len(p.y)))(p, at), ORANGE, "P", ""),
        "cascade": Solver(
            "Cascade SVM",
            _dual(CascadeSVM, parts=8, loops=2) if small else _dual(CascadeSVM, parts=128, loops=1),
            PURPLE,
            "X",
        ),
        "ppack": Solver(
            "P-packSVM",
            lambda p, at: PPackSVM(p.C, p.gamma, epochs=8 if small else 2, moments=24, **at.options),
            GREEN,
            "^",
            dual=False,
        ),
        "psvm-0.5": Solver(
            "PSVM, rank n^0.5", lambda p, at: PSVM(p.C, p.gamma, power=0.5, **at.options), GREY, "<", "", dual=False
        ),
        "psvm-0.6": Solver(
            "PSVM, rank n^0.6", lambda p, at: PSVM(p.C, p.gamma, power=0.6, **at.options), GREY, ">", "", dual=False
        ),
        "libsvm": Solver(
            "LIBSVM (with intercept)", lambda p, at: LIBSVM(p.C, p.gamma), BLACK, "x", "", 60_000, dual=False
        ),
    }
    return solvers | feature_solvers(scale)


def feature_solvers(scale: str, loss: str = "hinge") -> dict[str, Solver]:
    """Random Fourier features and Nystroem's, each with several numbers of features."""
    return {
        f"{name}-{count}": Solver(
            f"{label}, {count:,}", _features(make, count, loss), colour, marker, ":", series=label, number=count
        )
        for name, label, make, colour, marker in (
            ("rff", "RFF + linear", RandomFeatures, PURPLE, "v"),
            ("nystroem", "Nystroem + linear", Nystroem, ORANGE, "h"),
        )
        for count in FEATURES[scale]
    }


def logistic_solvers(scale: str) -> dict[str, Solver]:
    """Of logistic regression."""
    solvers = {
        "first-step": Solver("PBM, first step", _first_step("logistic"), VERMILION, "*", ""),
        "algorithm-1": Solver(
            "PBM, Algorithm 1", _algorithm_1(60 if scale == "small" else 400, loss="logistic"), VERMILION, "o"
        ),
        "parablock": Solver("parablock", _ours({"tol": TOL}, loss="logistic"), BLACK, "s"),
        "ppack": Solver(
            "P-packSGD",
            lambda p, at: PPackSVM(
                p.C, p.gamma, epochs=4 if scale == "small" else 1, moments=24, loss="logistic", **at.options
            ),
            GREEN,
            "^",
        ),
    }
    return solvers | feature_solvers(scale, "logistic")


def partition_solvers() -> dict[str, Solver]:
    """parablock with several partitions and predictions."""
    return {
        "kmeans-local": Solver("k-means, local", _algorithm_1(100, "local"), VERMILION, "*"),
        "kmeans-global": Solver("k-means, global", _algorithm_1(100), VERMILION, "o", "--"),
        "random-local": Solver("random, local", _algorithm_1(100, "local", partition="random"), SKY, "*"),
        "random-global": Solver("random, global", _algorithm_1(100, partition="random"), BLUE, "o", "--"),
        "tree-global": Solver("tree, global", _algorithm_1(100, partition="tree"), GREEN, "^", "--"),
        "regrouped": Solver("tree, regrouped (parablock)", _ours({"tol": TOL}), BLACK, "s"),
    }
