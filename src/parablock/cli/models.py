"""Model files as commands take them."""

from __future__ import annotations

import argparse
import os
from itertools import chain, count
from pathlib import Path
from typing import Any

from parablock.cli.data import read
from parablock.cli.failures import UsageError, say
from parablock.cli.scaling import load_scaling, names_of_scaling, scaled
from parablock.datasets import Data, DataError
from parablock.datasets.streams import STANDARD_INPUT

WRITTEN = {".pbk": "pbk", ".model": "libsvm", ".onnx": "onnx"}


def model_format(path: str, otherwise: str | None = None) -> str:
    """In which format to write a model, by the ending of its name."""
    format = WRITTEN.get(Path(path).suffix.lower(), otherwise)
    if format is None:
        known = ", ".join(f"{ending} ({name})" for ending, name in WRITTEN.items())
        raise UsageError(f"{path!r} does not say in which format to write the model; its name should end in {known}")
    return format


def write_model(model: Any, path: str, format: str) -> None:
    import parablock
    from parablock import models

    {"pbk": parablock.save, "libsvm": models.to_libsvm, "onnx": models.to_onnx}[format](model, path)


def write_trained(model: Any, path: str, format: str) -> None:
    """Write a model that may have taken long to train: what its format cannot hold is not lost."""
    from parablock.models import ModelFileError

    try:
        write_model(model, path, format)
    except ModelFileError as error:
        if format == "pbk":
            raise
        instead = _free(path)
        write_model(model, instead, "pbk")
        raise ModelFileError(f"{error} The model was written to {instead} instead.") from error


def _free(path: str) -> str:
    """A name like the given one that nothing has yet."""
    names = chain([f"{path}.pbk"], (f"{path}.{number}.pbk" for number in count(1)))
    return next(name for name in names if not os.path.lexists(name))


def looks_like_model(path: str) -> bool:
    """Whether a file holds a model, of parablock's or LIBSVM's, and no data."""
    if path == STANDARD_INPUT or os.path.isdir(path):
        return False
    with open(path, "rb") as file:
        head = file.read(16)
    return Path(path).suffix.lower() in WRITTEN or head.startswith(b"svm_type") or head[8:9] == b"{"


def read_for(model: Any, options: argparse.Namespace) -> Data:
    """The data of a command, with the features that a model knows, and scaled as options ask where it does not do that
    itself."""
    names = vars(model).pop("feature_names_in_", None)  # asked for here; arrays have none
    data = read(
        options,
        n_features=getattr(model, "n_features_in_", None),
        names=names_of_scaling(options) if names is None else names.tolist(),
        given_kernel=getattr(model, "kernel", None) == "precomputed",
    )
    if getattr(model, "_scaling", None) is None:
        return scaled(data, options)
    if options.use_scaling is not None:
        _refuse_another_scaling(model, options)
    return data


def _refuse_another_scaling(model: Any, options: argparse.Namespace) -> None:
    """A model that scales its rows needs no file for it, and none but its own may be given."""
    if not load_scaling(options.use_scaling)[0].is_same(model._scaling):
        raise DataError(
            f"{options.use_scaling} is not the scaling of {options.model}, which scales the rows itself: leave "
            "--use-scaling out"
        )
    if not options.quiet:
        say(f"{options.model} scales the rows itself: --use-scaling is not needed")
