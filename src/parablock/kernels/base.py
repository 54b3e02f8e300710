"""What a kernel is: how an *overlap* of two samples becomes a kernel value.

Every kernel here is a function of the overlap s(x, z) and of the samples' self-overlaps s(x, x) and s(z, z).
Overlaps are sums over features of a term that vanishes where either sample has a zero, so dense tiles and
sparse rows need the same three:

    product   s(x, z) = sum x_f z_f               s(x, x) = |x|^2     the inner product
    minimum   s(x, z) = sum min(|x_f|, |z_f|)     s(x, x) = |x|_1     (terms of equal sign only)
    harmonic  s(x, z) = sum 2 x_f z_f/(x_f+z_f)   s(x, x) = sum x_f   (features that are not negative)

and with each of them `s(x, x) + s(z, z) - 2 s(x, z)` is a distance: the squared Euclidean, the Manhattan and
the chi-squared one. Computing overlaps is the device's work; a kernel knows nothing of tiles' sizes, threads
or sparsity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np


class Kernel(ABC):
    """Turns tiles of overlaps into tiles of kernel values.

    Attributes
    ----------
    overlap : {"product", "minimum", "harmonic", "given", "called"}
        What the device must put into a tile: an overlap, the user's own matrix, or the result of the user's
        function.
    shift_invariant : bool
        Whether the same vector may be subtracted from all samples. The device then centres dense data, which
        keeps float32 accurate.

    Examples
    --------
    A kernel of one's own is a class; a Python function would do, but this one works in tiles and on sparse rows:

    >>> import numpy as np
    >>> from parablock import KernelSVC
    >>> from parablock.kernels import Kernel
    >>> class Cauchy(Kernel):
    ...     shift_invariant = True
    ...
    ...     def transform(self, tile, row_self, column_self):
    ...         tile[...] = 1 / (1 + row_self[:, None] + column_self - 2 * tile)
    ...
    ...     def diagonal(self, self_overlap):
    ...         return np.ones_like(self_overlap)
    >>> KernelSVC(kernel=Cauchy()).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.2], [2.9]])
    array([0, 1])
    """

    overlap: ClassVar[str] = "product"
    shift_invariant: ClassVar[bool] = False

    @abstractmethod
    def transform(self, tile: np.ndarray, row_self: np.ndarray, column_self: np.ndarray) -> None:
        """Overlaps to kernel values, in place."""

    @abstractmethod
    def diagonal(self, self_overlap: np.ndarray) -> np.ndarray:
        """The kernel of each sample with itself."""
