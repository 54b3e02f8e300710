"""The global and the local model as tensors, and back.

The expansions of a local model share most of their rows, so the file has each row once, and every expansion the numbers
of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from parablock.models.checked import FLOAT64, Tensors
from parablock.models.layout import Layout
from parablock.partition import Centres
from parablock.prediction import Expansion, GlobalModel, LocalModel

Models = dict[str, GlobalModel | LocalModel]


def models_to_tensors(models: Models, layout: Layout, tensors: dict[str, np.ndarray]) -> None:
    whole, local = models["global"], models.get("local")
    assert isinstance(whole, GlobalModel)
    expansions = [whole.expansion]
    _put(tensors, "global", whole.expansion)
    tensors["global.intercept"] = whole.intercept
    if isinstance(local, LocalModel):
        expansions += [local.common, *local.own]
        _put(tensors, "local.common", local.common)
        tensors["local.own.sizes"] = np.array([len(own.rows) for own in local.own], dtype=np.int64)
        tensors["local.own.rows"] = np.concatenate([own.rows for own in local.own]).astype(np.int64)
        tensors["local.own.coef"] = np.concatenate([own.coef for own in local.own], axis=1)
        tensors["local.intercepts"] = local.intercepts
    if not layout.given:
        tensors["vectors.rows"], vectors = _once(expansions)
        layout.vectors_to("vectors", vectors, tensors)


def models_from_tensors(tensors: Tensors, layout: Layout, n_outputs: int, centres: Centres, n_blocks: int) -> Models:
    vectors = _Vectors(tensors, layout)
    models: Models = {
        "global": GlobalModel(
            vectors.take(tensors, "global", n_outputs), tensors.take("global.intercept", FLOAT64, (n_outputs,))
        )
    }
    if "local.intercepts" in tensors:
        common = vectors.take(tensors, "local.common", n_outputs)
        together = vectors.take(tensors, "local.own", n_outputs)
        sizes = tensors.numbers("local.own.sizes", len(together.rows) + 1, (n_blocks,))
        tensors.require(sizes.sum() == len(together.rows), "the sizes of its blocks' own models do not add up")
        ends = np.cumsum(sizes)
        own = [vectors.part(together, end - size, end) for size, end in zip(sizes, ends, strict=True)]
        intercepts = tensors.take("local.intercepts", FLOAT64, (n_blocks, n_outputs))
        models["local"] = LocalModel(centres, common, own, intercepts)
    return models


class _Vectors:
    """The rows of all expansions."""

    def __init__(self, tensors: Tensors, layout: Layout) -> None:
        self.given = layout.given
        self.rows = np.empty(0, dtype=np.int64) if layout.given else tensors.numbers("vectors.rows", layout.n_rows)
        tensors.require(np.all(np.diff(self.rows) > 0), "the numbers of its support vectors do not ascend")
        self.vectors = layout.vectors_from("vectors", len(self.rows), tensors)
        self.n_rows = layout.n_rows

    def take(self, tensors: Tensors, name: str, n_outputs: int) -> Expansion:
        rows = tensors.numbers(f"{name}.rows", self.n_rows)
        coef = tensors.take(f"{name}.coef", FLOAT64, (n_outputs, len(rows)))
        if self.given or np.array_equal(rows, self.rows):
            return Expansion(rows, self.vectors, coef)
        tensors.require(np.isin(rows, self.rows).all(), f"rows of {name!r} are not among its support vectors")
        return Expansion(rows, self.vectors[np.searchsorted(self.rows, rows)], coef)

    def part(self, whole: Expansion, start: int, end: int) -> Expansion:
        """Some of the rows of an expansion."""
        vectors = whole.vectors if self.given else whole.vectors[start:end]
        return Expansion(whole.rows[start:end], vectors, np.ascontiguousarray(whole.coef[:, start:end]))


def _put(tensors: dict[str, np.ndarray], name: str, expansion: Expansion) -> None:
    tensors[f"{name}.rows"] = expansion.rows.astype(np.int64, copy=False)
    tensors[f"{name}.coef"] = expansion.coef


def _once(expansions: Sequence[Expansion]) -> tuple[np.ndarray, Any]:
    """The rows of all expansions, each once, in ascending order; and their numbers."""
    if len(expansions) == 1:
        return expansions[0].rows.astype(np.int64, copy=False), expansions[0].vectors
    rows, first = np.unique(np.concatenate([part.rows for part in expansions]), return_index=True)
    parts = [part.vectors for part in expansions]
    together = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    return rows.astype(np.int64, copy=False), together[first]
