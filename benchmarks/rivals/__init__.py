"""Other solvers of the kernel machines that parablock trains, each written from its own paper."""

from benchmarks.rivals.base import Model, Moment, Rival
from benchmarks.rivals.cascade import CascadeSVM
from benchmarks.rivals.casvm import CASVM
from benchmarks.rivals.dcsvm import DCSVM
from benchmarks.rivals.first_step import FirstStep
from benchmarks.rivals.libsvm import LIBSVM
from benchmarks.rivals.linear import Nystroem, RandomFeatures
from benchmarks.rivals.ours import ALGORITHM_1, Parablock
from benchmarks.rivals.ppacksvm import PPackSVM
from benchmarks.rivals.psvm import PSVM

__all__ = [
    "ALGORITHM_1",
    "CASVM",
    "DCSVM",
    "LIBSVM",
    "PSVM",
    "CascadeSVM",
    "FirstStep",
    "Model",
    "Moment",
    "Nystroem",
    "PPackSVM",
    "Parablock",
    "RandomFeatures",
    "Rival",
]
