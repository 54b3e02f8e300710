"""Model files on disk: what kind of file one is."""

from __future__ import annotations

import os
from typing import TypeAlias

AnyPath: TypeAlias = str | os.PathLike[str]

PARABLOCK, LIBSVM = "parablock", "LIBSVM"
_LIBSVM_KEYS = (b"svm_type", b"kernel_type", b"nr_class", b"total_sv")
_HEAD = 64  # bytes that tell what a file is
# What else is given to us by mistake, by the bytes that it begins with.
_OTHERS = {
    b"parablock checkpoint\n": "a checkpoint: resume the fit with checkpoint=... and resume=True, then save the model",
    **{bytes((0x80, version)): "a pickle, which could run any program if it were opened" for version in range(2, 6)},
    b"PK\x03\x04": "a zip archive (or .npz file)",
    b"\x93NUMPY": "an array file (.npy)",
    b"\x1f\x8b": "compressed: unpack it first",
    b"BZh": "compressed: unpack it first",
    b"\x08": "perhaps an ONNX model, which onnxruntime opens",
}


class ModelFileError(ValueError):
    """A model that cannot be written to a file, or a file that holds no model that can be used.

    Examples
    --------
    >>> import tempfile
    >>> import parablock
    >>> from parablock.models import ModelFileError
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         parablock.load(file.name)
    ...     except ModelFileError as error:
    ...         print(str(error).split(": ")[1])
    it is empty.
    """


def kind_of(path: AnyPath) -> str:
    """PARABLOCK or LIBSVM, by what is in the file; an error that says what it is instead, where that can be told."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_LIBSVM_KEYS):
        return LIBSVM
    if head[8:9] == b"{":  # safetensors: eight bytes of length, and JSON
        return PARABLOCK
    raise ModelFileError(f"{os.fspath(path)!r} is no model file: {_other(head)}.")


def _other(head: bytes) -> str:
    if not head:
        return "it is empty"
    for start, what in _OTHERS.items():
        if head.startswith(start):
            return f"it is {what}"
    printable = all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head)
    return "it is some other text" if printable else "it begins like none of parablock's and none of LIBSVM's"
