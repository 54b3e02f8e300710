"""The container of a .pbk file: a safetensors file whose header also holds a record of plain JSON.

    header    {"__metadata__": {"parablock model": "{ the record }"}, "global.coef": {"dtype": "F64", ...}, ...}
    data      the tensors; one of them, "sha256", is the checksum of the record and of all others

Nothing in it can be executed, and everything is checked before it is used: sizes before memory is taken, then the
checksum, then (by the readers of `checked`) every single entry. The same model always makes the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from parablock.models.checked import Fields, Tensors
from parablock.models.files import LIBSVM, AnyPath, ModelFileError, kind_of
from parablock.replacing import replacing

FORMAT, VERSION = "parablock model", 1
WITH_SCALING = 2  # the version of a model that scales rows: a reader of version 1 alone would predict without that
_MOST_HEADER = 1 << 24  # far more than a header needs: long things are tensors
_CHECKSUM = "sha256"
_TYPES = {"U64", "I64", "F64", "F32", "U32", "I32", "F16", "U16", "I16", "I8", "U8", "BOOL"}  # of tensors


def write(path: AnyPath, record: dict[str, Any], tensors: dict[str, np.ndarray], version: int = VERSION) -> None:
    """Replace the file at once, or leave it as it is and raise an error."""
    told = json.dumps({"format_version": version, **record})
    if len(told) > _MOST_HEADER // 2:
        raise ModelFileError(
            f"This model has {len(told) / 2**20:.0f} MB of labels and parameters; a model file takes "
            f"{_MOST_HEADER // 2**21} MB. Use shorter labels."
        )
    arrays = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in tensors.items()}
    with replacing(path) as file:
        file.write(save({**arrays, _CHECKSUM: _checksum(told, arrays)}, {FORMAT: told}))


def read(path: AnyPath) -> tuple[Fields, Tensors]:
    """Record and tensors of a whole file."""
    told, types = _header(path)
    record = _record(path, told)
    unknown = types - _TYPES
    if unknown:
        raise _damaged(path, f"it has tensors of type {', '.join(sorted(unknown))}")
    try:
        arrays = load_file(path)
    except SafetensorError as error:
        raise _damaged(path, str(error)) from error
    written = arrays.pop(_CHECKSUM, None)
    if written is None or not np.array_equal(written, _checksum(told, arrays)):
        raise _damaged(path, "its checksum does not fit its content")
    return record, Tensors(path, arrays)


def read_record(path: AnyPath) -> Fields:
    """The record alone: of a large file only its first bytes are read, so its checksum is not checked."""
    return _record(path, _header(path)[0])


def _header(path: AnyPath) -> tuple[str, set[str]]:
    """The text of the record, and the types of the tensors, of a file of our format."""
    if kind_of(path) == LIBSVM:
        raise ModelFileError(
            f"{os.fspath(path)!r} is a LIBSVM model: open it with parablock.models.from_libsvm, or load_any."
        )
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > _MOST_HEADER:
            raise _damaged(path, f"it claims to have a header of {length:,} bytes")
        if 8 + length > size:
            raise _damaged(path, f"it ends after {size:,} bytes, inside its header")
        text = file.read(length)
    try:
        header = json.loads(text)
        told = header.pop("__metadata__", {}).get(FORMAT)
        types = {str(tensor["dtype"]) for tensor in header.values()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(path, "its header makes no sense") from error
    if not isinstance(told, str):
        raise ModelFileError(
            f"{os.fspath(path)!r} is a safetensors file, but not a model of parablock, which parablock.save writes."
        )
    return told, types


def _record(path: AnyPath, told: str) -> Fields:
    """What the text says, of our version."""
    try:
        record = Fields(path, "record", json.loads(told))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its record of the model makes no sense") from error
    version = record.integer("format_version")
    if version not in (VERSION, WITH_SCALING):
        raise ModelFileError(
            f"{os.fspath(path)!r} has format version {version}; this parablock reads versions {VERSION} and "
            f"{WITH_SCALING}. Open it with the version of parablock that wrote it, or a newer one."
        )
    return record


def _checksum(told: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256(told.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _damaged(path: AnyPath, why: str) -> ModelFileError:
    return ModelFileError(f"The model file {os.fspath(path)!r} is damaged: {why}.")
