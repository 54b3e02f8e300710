"""The centres of a partition's blocks as JSON and tensors, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.devices.base import Device, Samples
from parablock.devices.cpu.samples import GivenSamples
from parablock.kernels import Kernel
from parablock.models.checked import FLOAT64, FLOATS, Fields, Tensors, csr_parts
from parablock.models.files import ModelFileError
from parablock.models.layout import Layout
from parablock.partition import Centres
from parablock.partition.base import FeatureCentres, JoinedCentres
from parablock.partition.kernel_kmeans import KernelCentres
from parablock.prediction import Expansion


@dataclass(frozen=True)
class LoadedKernelCentres(Centres):
    """Means of sampled rows in the kernel's space, like `KernelCentres`, for whichever device predicts."""

    means: Expansion  # the sampled rows, centred where the data was; coefficients are the weights of each mean
    squares: np.ndarray

    def distances(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        own = kernel.diagonal(samples.self_overlap)[:, None]
        return own - 2.0 * self.means.values(device, kernel, samples, None).T + self.squares


def centres_to_json(centres: Centres, name: str, layout: Layout, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(centres, JoinedCentres):
        parts = [centres_to_json(part, f"{name}.{i}", layout, tensors) for i, part in enumerate(centres.parts)]
        return {"kind": "joined", "parts": parts}
    if isinstance(centres, FeatureCentres):
        tensors[f"{name}.offsets"] = centres.offsets
        if sp.issparse(centres.points):
            tensors.update(csr_parts(f"{name}.points", centres.points))
            return {"kind": "sparse features"}
        tensors[f"{name}.points"] = centres.points
        return {"kind": "features"}
    if isinstance(centres, KernelCentres):
        centres = _loaded(centres, layout)
    if isinstance(centres, LoadedKernelCentres):
        tensors[f"{name}.rows"] = centres.means.rows
        tensors[f"{name}.weights"], tensors[f"{name}.squares"] = centres.means.coef, centres.squares
        layout.vectors_to(f"{name}.vectors", centres.means.vectors, tensors)
        return {"kind": "kernel"}
    raise ModelFileError(
        f"The blocks have centres of the class {type(centres).__name__}, a program that a file cannot hold. Fit with a "
        "partition of parablock, or give the block of every row as an array."
    )


def centres_from_json(told: Fields, name: str, layout: Layout, tensors: Tensors) -> tuple[Centres, int]:
    """The centres and how many they are."""
    kind = told.text("kind", list(_READERS), "kind of block centres")
    centres, count = _READERS[kind](told, name, layout, tensors)
    told.done()
    return centres, count


def _joined(told: Fields, name: str, layout: Layout, tensors: Tensors) -> tuple[Centres, int]:
    parts = [Fields(told.path, "centres", part) for part in told.listed("parts", dict)]
    told.require(all(part.values.get("kind") != "joined" for part in parts), "its centres are joined twice")
    read = [centres_from_json(part, f"{name}.{i}", layout, tensors) for i, part in enumerate(parts)]
    return JoinedCentres([centres for centres, _ in read]), sum(count for _, count in read)


def _features(told: Fields, name: str, layout: Layout, tensors: Tensors) -> tuple[Centres, int]:
    points = tensors.take(f"{name}.points", FLOATS, (None, layout.n_rows if layout.given else layout.n_features))
    return FeatureCentres(points, tensors.take(f"{name}.offsets", FLOAT64, points.shape[:1])), len(points)


def _sparse_features(told: Fields, name: str, layout: Layout, tensors: Tensors) -> tuple[Centres, int]:
    told.require(layout.sparse is not None, "its block centres are sparse, and its data is not")
    offsets = tensors.take(f"{name}.offsets", FLOAT64, (None,))
    points = tensors.csr(f"{name}.points", FLOATS, (len(offsets), layout.n_features), sp.csr_matrix)
    return FeatureCentres(points, offsets), len(offsets)


def _kernel(told: Fields, name: str, layout: Layout, tensors: Tensors) -> tuple[Centres, int]:
    rows = tensors.numbers(f"{name}.rows", layout.n_rows)
    weights = tensors.take(f"{name}.weights", FLOAT64, (None, len(rows)))
    squares = tensors.take(f"{name}.squares", FLOAT64, weights.shape[:1])
    vectors = layout.vectors_from(f"{name}.vectors", len(rows), tensors)
    return LoadedKernelCentres(Expansion(rows, vectors, weights), squares), len(weights)


_READERS: dict[str, Callable[[Fields, str, Layout, Tensors], tuple[Centres, int]]] = {
    "joined": _joined,
    "features": _features,
    "sparse features": _sparse_features,
    "kernel": _kernel,
}


def _loaded(centres: KernelCentres, layout: Layout) -> LoadedKernelCentres:
    sample = centres.sample
    if isinstance(sample, GivenSamples):
        return LoadedKernelCentres(Expansion(sample.rows, np.empty((0, 0)), centres.weights), centres.squares)
    vectors = sample.features()  # a GPU has them dense and in float32, whatever the data was
    if layout.sparse is not None and not sp.issparse(vectors):
        vectors = layout.sparse(vectors)
    numbers = np.zeros(len(sample), dtype=np.int64)  # only a precomputed kernel asks for them
    means = Expansion(numbers, vectors.astype(layout.dtype, copy=False), centres.weights)
    return LoadedKernelCentres(means, centres.squares)
