"""Torch tensors as data: which stay where they are, and what is asked of them there.

Nothing here imports PyTorch before a tensor is given: whoever has one has imported it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

_VALUES_AT_ONCE = 1 << 25  # of a pass over all values: a bound on the memory of its float64 copy
_NEED_FLOAT64 = ("float64", "int32", "int64", "uint32", "uint64")  # what arrays of these types become, too


class TensorRows:
    """Rows of a tensor that stay on their device, in their own type. An index brings rows to the host, as an array.

    Parameters
    ----------
    tensor : tensor of shape (n, n_features)
    dtype : dtype, optional
        Of the arrays: by default float32 where that holds the tensor's type exactly, otherwise float64.

    Examples
    --------
    >>> import torch
    >>> from parablock.tensors import TensorRows
    >>> rows = TensorRows(torch.tensor([[0, 255], [3, 4]], dtype=torch.uint8))
    >>> rows.shape, rows.dtype
    ((2, 2), dtype('float32'))
    >>> rows[[1]]
    array([[3., 4.]], dtype=float32)
    """

    def __init__(self, tensor: Any, dtype: Any = None) -> None:
        self.tensor = tensor.detach()
        self.shape = tuple(tensor.shape)
        name = _type_name(tensor)
        self.dtype = np.dtype(dtype or (np.float64 if name in _NEED_FLOAT64 else np.float32))

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()

    def astype(self, dtype: Any, copy: bool = False) -> TensorRows:
        """The same rows, which will come to the host in another type."""
        return TensorRows(self.tensor, dtype)

    def take(self, rows: Any) -> TensorRows:
        """The given rows, on their device."""
        return TensorRows(self._some(rows), self.dtype)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return on_host(self._some(rows)).astype(self.dtype)

    def means(self) -> np.ndarray:
        """Of every feature."""
        total = sum(part.double().sum(dim=0) for part in self._parts())
        return on_host(total / self.shape[0])

    def moments(self, share: np.ndarray) -> tuple[float, float]:
        """Weighted sums of all values and of their squares, with one weight a row."""
        import torch

        weight = torch.as_tensor(share, dtype=torch.float64, device=self.tensor.device)
        first, second, start = 0.0, 0.0, 0
        for part in self._parts():
            values, own = part.double(), weight[start : start + len(part)]
            first = first + values.sum(dim=1) @ own
            second = second + values.square().sum(dim=1) @ own
            start += len(part)
        return float(first), float(second)

    def finite(self) -> bool:
        """Whether no value is infinite or not a number."""
        if not self.tensor.is_floating_point():
            return True
        # One answer for all parts: each question to a GPU waits for it.
        return bool(sum((~part.isfinite()).any().int() for part in self._parts()) == 0)

    def smallest(self) -> float:
        """The smallest value."""
        lowest = None
        for part in self._parts():
            own = part.float().min()
            lowest = own if lowest is None else lowest.minimum(own)
        return 0.0 if lowest is None else float(lowest)

    def _some(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return self.tensor[rows]
        import torch

        return self.tensor[torch.as_tensor(rows, device=self.tensor.device)]

    def _parts(self) -> Iterator[Any]:
        yield from self.tensor.split(max(1, _VALUES_AT_ONCE // max(1, self.shape[1])))


def is_tensor(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "torch" and hasattr(values, "detach")


def is_plain(tensor: Any) -> bool:
    """Whether the tensor holds real numbers, all of them."""
    return str(tensor.layout) == "torch.strided" and not tensor.is_complex() and not tensor.is_quantized


def on_host(values: Any) -> Any:
    """A torch tensor as an array (a sparse one as a CSR matrix), without a copy where it is in host memory; anything
    else as it is."""
    if not is_tensor(values):
        return values
    values = values.detach()
    if str(values.layout) != "torch.strided":
        rows = values.to_sparse_csr().cpu()
        parts = on_host(rows.values()), rows.col_indices().numpy(), rows.crow_indices().numpy()
        return sp.csr_matrix(parts, shape=tuple(rows.shape))
    if _type_name(values) == "bfloat16":  # NumPy has none
        values = values.float()
    return values.cpu().numpy()


def _type_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
