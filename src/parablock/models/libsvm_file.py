"""LIBSVM's model text, written and read.

svm_type c_svc           or nu_svc, one_class, epsilon_svr, nu_svr
kernel_type rbf          or linear, polynomial, sigmoid (and precomputed, which is refused here)
gamma 0.5                degree, gamma and coef0 where the kernel has them
nr_class 3
total_sv 7
rho 0.1 -0.2 0.3         one for each pair of classes: minus the intercept
label 2 0 1              of a classifier
nr_sv 3 2 2              support vectors of each class, which follow class after class
SV
0.5 -1 1:0.25 3:1        one coefficient for each other class, and the features that are not zero
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid
from parablock.models.checked import MOST_DEGREE
from parablock.models.files import AnyPath, ModelFileError
from parablock.replacing import replacing

CLASSIFIERS = ("c_svc", "nu_svc")
_TYPES = (*CLASSIFIERS, "one_class", "epsilon_svr", "nu_svr")
_NAMES: dict[type[Kernel], str] = {Linear: "linear", Polynomial: "polynomial", RBF: "rbf", Sigmoid: "sigmoid"}
_PARTS = {"linear": (), "polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
_LISTS = {"rho": float, "label": int, "nr_sv": int, "probA": float, "probB": float, "prob_density_marks": float}
_NUMBERS = {"degree": int, "gamma": float, "coef0": float, "nr_class": int, "total_sv": int}
_MOST_FEATURES = 2**31 - 1


@dataclass(frozen=True)
class LibsvmFile:
    """What such a file says.

    Attributes
    ----------
    svm_type : str
    kernel : Kernel
    rho : ndarray
        One for each pair of classes; one of a regressor.
    coef : ndarray of shape (n_classes - 1, n_support)
        Of a regressor (1, n_support).
    vectors : CSR matrix of shape (n_support, n_features)
    labels, counts : list of int
        Of a classifier: the label and the number of support vectors of each class.
    lists : dict
        Lines that not every file has: probA, probB, prob_density_marks.
    """

    svm_type: str
    kernel: Kernel
    rho: np.ndarray
    coef: np.ndarray
    vectors: sp.csr_matrix
    labels: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    lists: dict[str, list[float]] = field(default_factory=dict)


def kernel_name(kernel: Kernel) -> str | None:
    """LIBSVM's name of a kernel, if it has it."""
    return _NAMES.get(type(kernel))


def write(path: AnyPath, model: LibsvmFile) -> None:
    name = _NAMES[type(model.kernel)]
    degree = getattr(model.kernel, "degree", 0)
    if degree > MOST_DEGREE:
        raise ModelFileError(f"A model file takes degrees up to {MOST_DEGREE}; this kernel has degree={degree}.")
    lines = [f"svm_type {model.svm_type}", f"kernel_type {name}"]
    lines += [f"{part} {getattr(model.kernel, part)!r}" for part in _PARTS[name]]
    lines += [f"nr_class {max(2, len(model.labels))}", f"total_sv {model.vectors.shape[0]}", _line("rho", model.rho)]
    if model.labels:
        lines.append(_line("label", model.labels))
    lines += [_line(key, values) for key, values in model.lists.items()]
    if model.labels:
        lines.append(_line("nr_sv", model.counts))
    with replacing(path) as file:
        file.write("\n".join([*lines, "SV", ""]).encode("ascii"))
        file.writelines(line.encode("ascii") for line in _vector_lines(model))


def _line(key: str, values: Any) -> str:
    return " ".join([key, *(repr(value) for value in np.asarray(values).tolist())])


def _vector_lines(model: LibsvmFile) -> Iterator[str]:
    vectors = model.vectors
    for row, coef in enumerate(model.coef.T.tolist()):
        start, stop = vectors.indptr[row], vectors.indptr[row + 1]
        features = zip((vectors.indices[start:stop] + 1).tolist(), vectors.data[start:stop].tolist(), strict=True)
        yield " ".join([*map(repr, coef), *(f"{number}:{value!r}" for number, value in features)]) + "\n"


def read(path: AnyPath) -> LibsvmFile:
    return _Reading(path).model()


class _Reading:
    """A file that is being read: errors say in which line."""

    def __init__(self, path: AnyPath) -> None:
        self.path, self.number = path, 0
        self.said: dict[str, Any] = {}

    def error(self, why: str) -> ModelFileError:
        return ModelFileError(f"{os.fspath(self.path)!r}, line {self.number}: {why}.")

    def require(self, condition: Any, why: str) -> None:
        if not condition:
            raise self.error(why)

    def model(self) -> LibsvmFile:
        with open(self.path, encoding="ascii", errors="replace") as file:
            lines = iter(file)
            self._header(lines)
            kernel = self._kernel()
            n_classes = self._classes()
            coef, vectors = self._vectors(lines, n_classes)
        extra = ("probA", "probB", "prob_density_marks")
        return LibsvmFile(
            self.said["svm_type"],
            kernel,
            np.array(self.said["rho"]),
            coef,
            vectors,
            self.said.get("label", []),
            self.said.get("nr_sv", []),
            {name: self.said[name] for name in extra if name in self.said},
        )

    def _header(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.number += 1
            key, *values = line.split() or [""]
            if key == "SV":
                return
            self.require(key not in self.said, f"{key!r} is there a second time")
            if key == "svm_type":
                self.said[key] = self._one_of(values, _TYPES)
            elif key == "kernel_type":
                self.said[key] = self._one_of(values, (*_PARTS, "precomputed"))
            elif key in _NUMBERS:
                self.require(len(values) == 1, f"{key} needs one number, got {line.strip()!r}")
                self.said[key] = self._numbers(_NUMBERS[key], values)[0]
            elif key in _LISTS:
                self.said[key] = self._numbers(_LISTS[key], values)
            else:
                raise self.error(f"{line.strip()[:40]!r} is no line of a LIBSVM model")
        raise self.error("the file ends before its support vectors, which begin after a line 'SV'")

    def _one_of(self, values: list[str], known: tuple[str, ...]) -> str:
        self.require(len(values) == 1 and values[0] in known, f"got {' '.join(values)!r} where one of {known} is known")
        return values[0]

    def _numbers(self, kind: type, values: list[str]) -> list[Any]:
        try:
            numbers = [kind(value) for value in values]
        except ValueError as error:
            raise self.error(f"numbers of type {kind.__name__} are needed, got {' '.join(values)[:40]!r}") from error
        if kind is int:
            self.require(all(abs(number) < 2**63 for number in numbers), "a whole number has more than 64 bits")
        else:
            self.require(np.all(np.isfinite(numbers)), "a number is nan or infinite")
        return numbers

    def _kernel(self) -> Kernel:
        for key in ("svm_type", "kernel_type", "nr_class", "total_sv", "rho"):
            self.require(key in self.said, f"the lines before this one have no {key}")
        name = self.said["kernel_type"]
        if name == "precomputed":
            raise self.error("its kernel is precomputed, so that the file does not tell what it predicts with")
        for part in _PARTS[name]:
            self.require(part in self.said, f"the lines before this one have no {part}, which the {name} kernel has")
        self.require(0 <= self.said.get("degree", 0) <= MOST_DEGREE, f"degree is not from 0 to {MOST_DEGREE}")
        self.require(self.said.get("gamma", 0.0) >= 0, f"gamma is {self.said.get('gamma')}, and must not be negative")
        kinds = {name: kind for kind, name in _NAMES.items()}
        return kinds[name](**{part: self.said[part] for part in _PARTS[name]})

    def _classes(self) -> int:
        said = self.said
        n_classes, total = said["nr_class"], said["total_sv"]
        self.require(total >= 0, "total_sv is negative")
        if said["svm_type"] not in CLASSIFIERS:
            self.require(n_classes == 2 and len(said["rho"]) == 1, "nr_class must be 2, with one rho, without classes")
            return 2
        self.require(n_classes >= 2, "a classifier needs two classes")
        pairs = n_classes * (n_classes - 1) // 2
        self.require(len(said["rho"]) == pairs, f"rho has {len(said['rho'])} numbers instead of {pairs}")
        for key in ("label", "nr_sv"):
            self.require(len(said.get(key, ())) == n_classes, f"{key} does not have {n_classes} numbers")
        self.require(len(set(said["label"])) == n_classes, "labels are not different from each other")
        self.require(min(said["nr_sv"]) >= 0 and sum(said["nr_sv"]) == total, "nr_sv do not add up to total_sv")
        for key in ("probA", "probB"):
            self.require(len(said.get(key, said["rho"])) == pairs, f"{key} does not have {pairs} numbers")
        self.require(("probA" in said) == ("probB" in said), "probA and probB come together")
        return n_classes

    def _vectors(self, lines: Iterator[str], n_classes: int) -> tuple[np.ndarray, sp.csr_matrix]:
        total, width = self.said["total_sv"], n_classes - 1
        coefs: list[list[float]] = []
        numbers, values, ends = [], [], [0]
        for line in lines:
            self.number += 1
            if not line.strip():
                continue
            self.require(len(coefs) < total, f"there are more support vectors than total_sv = {total}")
            words = line.split()
            coefs.append(self._numbers(float, words[:width]))
            self.require(len(coefs[-1]) == width, f"a support vector needs {width} coefficients")
            pairs = [word.split(":") for word in words[width:]]
            self.require(all(len(pair) == 2 for pair in pairs), "features are written as number:value")
            features = self._numbers(int, [pair[0] for pair in pairs])
            ascending = all(a < b for a, b in zip([0, *features], [*features, _MOST_FEATURES], strict=True))
            self.require(ascending, "numbers of features must ascend from 1")
            numbers.append(np.array(features, dtype=np.int64) - 1)
            values.append(np.array(self._numbers(float, [pair[1] for pair in pairs])))
            ends.append(ends[-1] + len(features))
        self.require(len(coefs) == total, f"the file ends after {len(coefs)} of {total} support vectors")
        indices = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        data = np.concatenate([np.empty(0), *values])
        shape = (total, int(indices.max(initial=-1)) + 1)
        return np.array(coefs).reshape(total, width).T.copy(), sp.csr_matrix((data, indices, ends), shape=shape)
