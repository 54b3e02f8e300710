"""What a partition is (paper, section 4.3): disjoint blocks of all rows, and how to find a new row's block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from parablock import vectors
from parablock.compact import squared_norms, stacked, widened, with_columns
from parablock.devices.base import Device, ReadableRows, Rows, Samples
from parablock.kernels import Kernel

if TYPE_CHECKING:
    from parablock.partition.regions import Regions

S = TypeVar("S")
T = TypeVar("T")
_AT_ONCE = 512  # rows whose distances are the work of one thread


class Spread(Protocol):
    """Several machines that share a list of work: each item is the work of one of them, and all get all results."""

    def __call__(self, work: Callable[[S], T], items: Sequence[S], /) -> list[T]: ...


def alone(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """One machine."""
    return [work(item) for item in items]


@dataclass(frozen=True)
class Partition:
    """Disjoint blocks that together hold every row.

    Attributes
    ----------
    method : str
        How it was made.
    blocks : list of ndarray of int
        The rows of each block.
    centres : Centres
        Which block a new row belongs to.
    kernel_mass_inside : float
        Estimated share of the kernel's squared mass that lies inside the blocks,
        ``sum K_ij^2 over pairs in one block / sum K_ij^2 over all pairs``: 1 minus the paper's relative error.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> partition = KernelSVC(n_blocks=4, random_state=0).fit(X, y % 2).partition_
    >>> partition.sizes
    array([50, 50, 50, 50])
    >>> partition.labels.shape
    (200,)
    """

    method: str
    blocks: Sequence[np.ndarray]
    centres: Centres
    kernel_mass_inside: float = float("nan")

    @property
    def sizes(self) -> np.ndarray:
        return np.array([len(block) for block in self.blocks])

    @property
    def labels(self) -> np.ndarray:
        """The block of every row."""
        labels = np.empty(self.sizes.sum(), dtype=np.intp)
        for number, block in enumerate(self.blocks):
            labels[block] = number
        return labels

    @classmethod
    def joined(cls, parts: Sequence[Partition], starts: np.ndarray) -> Partition:
        """Partitions of stretches of rows, which begin at the given numbers, as one."""
        blocks = [block + start for part, start in zip(parts, starts, strict=True) for block in part.blocks]
        sizes = [float(part.sizes.sum()) for part in parts]
        # Between the parts lies mass that nobody has seen: what is inside all of them is at most this.
        mass = sum(part.kernel_mass_inside * size**2 for part, size in zip(parts, sizes, strict=True)) / sum(sizes) ** 2
        return cls(parts[0].method, blocks, JoinedCentres([part.centres for part in parts]), mass)

    def report(self) -> str:
        """Block sizes and quality in one line."""
        sizes = self.sizes
        return (
            f"{self.method} partition: {len(sizes)} blocks of {sizes.min()} to {sizes.max()} rows "
            f"(mean {sizes.mean():.0f}), {self.kernel_mass_inside:.1%} of the kernel's squared mass inside"
        )


class Centres(ABC):
    """A partition's blocks as seen by a row that has none yet.

    Local prediction asks it for the block of every new row.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from parablock import KernelSVC
    >>> from parablock.partition import Centres
    >>> X, y = make_blobs(200, centers=4, random_state=0)
    >>> isinstance(KernelSVC(n_blocks=4, random_state=0).fit(X, y % 2).partition_.centres, Centres)
    True
    """

    @abstractmethod
    def distances(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        """Squared distance of every sample to every block's centre, up to a constant a sample."""

    def of_columns(self, columns: np.ndarray, n_columns: int) -> Centres:
        """The same where feature i is number columns[i] (in order) of so many."""
        raise TypeError(f"{type(self).__name__} cannot have their features numbered anew.")

    def nearest(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        """The block of every sample."""
        labels = [self.distances(device, kernel, part).argmin(axis=1) for part in chunks(samples)]
        return np.concatenate(labels) if labels else np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class FeatureCentres(Centres):
    """Centres that are points among the samples, each with an offset to its squared distances.

    Attributes
    ----------
    points : ndarray or csr_matrix of shape (n_blocks, n_features)
        Sparse where few of their features are not zero: dense points of very wide rows might have no room.
    offsets : ndarray of shape (n_blocks,)
    """

    points: Any
    offsets: np.ndarray

    @classmethod
    def means(cls, samples: Samples, blocks: Sequence[np.ndarray], spread: Spread = alone) -> FeatureCentres:
        rows = spread(samples.mean, blocks)
        return cls(stacked(rows), np.zeros(len(rows)))

    def distances(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        columns, squares = self._ready(samples.dtype)
        whole = samples.features()
        features = whole if self._used is None else with_columns(whole, self._used)
        distances = np.empty((len(samples), len(self.offsets)))

        def fill(start: int) -> None:
            rows = features[start : start + _AT_ONCE]
            products = rows @ columns
            products = products.toarray() if sp.issparse(products) else np.asarray(products)
            distances[start : start + _AT_ONCE] = (
                squared_norms(whole[start : start + _AT_ONCE])[:, None] - 2.0 * products + (squares + self.offsets)
            )

        device.map(fill, range(0, len(samples), _AT_ONCE))
        return distances

    def _ready(self, dtype: np.dtype) -> tuple[Any, np.ndarray]:
        """What distances are computed of, in the samples' precision: the points as columns, and their squared norms."""
        if dtype not in self._columns:
            points = (self.points if self._used is None else with_columns(self.points, self._used)).astype(dtype)
            columns = points.T.tocsr() if sp.issparse(points) else np.ascontiguousarray(points.T)
            self._columns[dtype] = columns, squared_norms(points)
        return self._columns[dtype]

    @cached_property
    def _used(self) -> np.ndarray | None:
        """The features that some point has, where the others are so many that nothing may have a value for each."""
        few = sp.issparse(self.points) and self.points.nnz < self.points.shape[1]
        return np.unique(self.points.indices) if few else None

    def of_columns(self, columns: np.ndarray, n_columns: int) -> FeatureCentres:
        return FeatureCentres(widened(self.points, columns, n_columns), self.offsets)

    @cached_property
    def _columns(self) -> dict[np.dtype, tuple[Any, np.ndarray]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # what is ready is soon made again


@dataclass(frozen=True)
class JoinedCentres(Centres):
    """Those of several partitions, one after the other."""

    parts: Sequence[Centres]

    def distances(self, device: Device, kernel: Kernel, samples: Samples) -> np.ndarray:
        return np.concatenate([part.distances(device, kernel, samples) for part in self.parts], axis=1)

    def of_columns(self, columns: np.ndarray, n_columns: int) -> JoinedCentres:
        return JoinedCentres([part.of_columns(columns, n_columns) for part in self.parts])


class Partitioner(ABC):
    """A way to make partitions.

    One of your own has the method `blocks`, and is passed to an estimator as ``partition``.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import KernelSVC
    >>> from parablock.partition import Partitioner
    >>> class ByFirstFeature(Partitioner):
    ...     method = "first feature"
    ...
    ...     def blocks(self, device, kernel, samples, n_blocks, rng):
    ...         order = np.argsort(samples.features()[:, 0])
    ...         return [np.sort(part) for part in np.array_split(order, n_blocks)], None
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = KernelSVC(partition=ByFirstFeature(), n_blocks=4).fit(X, X[:, 0] > 0)
    >>> model.partition_.method, model.partition_.sizes
    ('first feature', array([25, 25, 25, 25]))
    """

    method: str

    @abstractmethod
    def blocks(
        self, device: Device, kernel: Kernel, samples: Samples, n_blocks: int, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], Centres | None]:
        """Disjoint blocks of all given samples, none empty, at most `n_blocks` of them; and their centres
        where the method has its own."""

    def shared_blocks(
        self,
        device: Device,
        kernel: Kernel,
        samples: Samples,
        n_blocks: int,
        rng: np.random.Generator,
        spread: Spread,
    ) -> tuple[list[np.ndarray], Centres | None]:
        """Such blocks where several machines have the samples: the work of one of them, unless the method can be
        divided. All call this with the same numbers, and their generators must stay alike."""
        own = np.random.default_rng(int(rng.integers(2**62)))

        def make(count: int) -> tuple[list[np.ndarray], Centres | None]:
            made, centres = self.blocks(device, kernel, samples, count, own)
            return [vectors.to_host(block) for block in made], centres

        return spread(make, [n_blocks])[0]

    def regroup(
        self,
        device: Device,
        kernel: Kernel,
        samples: Rows,
        rows: np.ndarray,
        n_blocks: int,
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        """Fresh blocks of some of the rows."""
        if n_blocks <= 1:
            return [rows]
        blocks, _ = self.blocks(device, kernel, samples.take(rows), n_blocks, rng)
        return [rows[vectors.place(rows, block)] for block in blocks]

    def shared_regroup(
        self,
        device: Device,
        kernel: Kernel,
        samples: ReadableRows,
        rows: np.ndarray,
        n_blocks: int,
        rng: np.random.Generator,
        spread: Spread,
    ) -> list[np.ndarray]:
        """The same where several machines have these rows, as in `shared_blocks`."""
        own = np.random.default_rng(int(rng.integers(2**62)))
        return spread(lambda count: self.regroup(device, kernel, samples, rows, count, own), [n_blocks])[0]

    def regions(
        self, device: Device, samples: ReadableRows, rows: np.ndarray, n_blocks: int, rng: np.random.Generator
    ) -> Regions | None:
        """Where blocks of rows like these may lie, for rows that are not known yet; None if the method has no such."""
        return None

    def restricted(self, rows: np.ndarray) -> Partitioner:
        """A partitioner of the given rows, numbered anew."""
        return self

    def partition(
        self,
        device: Device,
        kernel: Kernel,
        samples: Samples,
        n_blocks: int,
        rng: np.random.Generator,
        spread: Spread = alone,
    ) -> Partition:
        """All rows in blocks, with centres and a report of quality."""
        from parablock.partition.quality import kernel_mass_inside

        if spread is alone:
            made, centres = self.blocks(device, kernel, samples, n_blocks, rng)
        else:
            made, centres = self.shared_blocks(device, kernel, samples, n_blocks, rng, spread)
        blocks = [vectors.to_host(block) for block in made]
        if centres is None:
            centres = FeatureCentres.means(samples, blocks, spread)
        return Partition(self.method, blocks, centres, kernel_mass_inside(device, kernel, samples, blocks, rng, spread))


def chunks(samples: Samples, size: int = 8192) -> Iterator[Samples]:
    """The samples a few at a time; those that are on disk need not be in memory together."""
    for start in range(0, len(samples), size):
        yield samples.take(slice(start, start + size))
