"""Copies past the caches, for values that are written once and read much later.

An ordinary store first reads the cache line that it will overwrite, and drives out of the cache what is still in use.
A streaming store does neither: to keep kernel columns takes half the memory traffic, which is what many cores wait for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from parablock.compiling import njit

LINE = 64  # bytes of a cache line


def empty_lines(rows: int, length: int, dtype: Any) -> np.ndarray:
    """Uninitialised memory for rows of at least the given length, each of whole cache lines."""
    size = np.dtype(dtype).itemsize
    width = -(-length * size // LINE) * LINE // size
    memory = np.empty(rows * width + LINE // size, dtype=dtype)
    start = -memory.ctypes.data % LINE // size
    return memory[start : start + rows * width].reshape(rows, width)


@njit(cache=True, nogil=True)
def copy_past_caches(values: Any, out: Any, start: int) -> None:
    """Copy values to out from start on; out is a row of `empty_lines`."""
    lanes = LINE // values.itemsize
    before = min(-start % lanes, len(values))
    after = before + (len(values) - before) // lanes * lanes
    for j in range(before):
        out[start + j] = values[j]
    for j in range(before, after, lanes):
        _stream_line(out, start + j, values, j)  # type: ignore[call-arg]
    for j in range(after, len(values)):
        out[start + j] = values[j]


@intrinsic
def _stream_line(typing_context: Any, out: Any, to: Any, values: Any, at: Any) -> Any:
    """Copy one cache line from values[at:] to out[to:], which must be the beginning of one.

    No fence follows: who hands the values to another thread does so through a lock, which is one.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item = context.get_data_type(out.dtype)
        line = ir.VectorType(item, LINE // context.get_abi_sizeof(item)).as_pointer()

        def place(array: Any, index: int) -> Any:
            data = context.make_array(signature.args[index])(context, builder, array).data
            return builder.bitcast(builder.gep(data, [arguments[index + 1]]), line)

        store = builder.store(
            builder.load(place(arguments[2], 2), align=context.get_abi_sizeof(item)), place(arguments[0], 0), align=LINE
        )
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(cgutils.int32_t, 1)]))
        return context.get_dummy_value()

    return types.void(out, types.intp, values, types.intp), generate
