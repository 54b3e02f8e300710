"""The formats: whole files of each, how they are changed, and who reads them.

A `Format` is made once in a process: it writes its whole files, and reads them once, so that what must be compiled is.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import shutil
import struct
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.fuzz.mutations import (
    Rng,
    as_json,
    changed_array,
    changed_bytes,
    changed_json,
    changed_text,
    one_of,
)
from parablock import AutoKernelClassifier, AutoKernelRegressor, Checkpoint, CheckpointError, KernelRidge, KernelSVC
from parablock.callbacks import JSONLog, LogError, read_log
from parablock.cli.scaling import load_scaling, save_scaling
from parablock.datasets import Data, DataError, read_data, save_csr, write_data
from parablock.models import ModelFileError, container, describe, load_any, to_libsvm
from parablock.report.page import html
from parablock.scaling import Scaling

_ROWS, _FEATURES = 60, 4


def rows() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(_ROWS, _FEATURES))


def labels() -> np.ndarray:
    X = rows()
    return (X[:, 0] * X[:, 1] > 0.2 * X[:, 2]).astype(np.int64)


class Wrong(Exception):
    """A file was read to something that it does not say."""


class Format(ABC):
    """Files of one format.

    Parameters
    ----------
    folder : Path
        For whole files and changed ones.
    """

    refusal: type[Exception] = DataError
    name = "file"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wholes = self.made()
        for number in range(len(self.wholes)):
            self.write(self.wholes[number])
            self.read()

    @property
    def path(self) -> Path:
        return self.folder / self.name

    @abstractmethod
    def made(self) -> list[Any]:
        """Whole files."""

    @abstractmethod
    def changed(self, rng: Rng, whole: Any) -> Any:
        """One of them, changed."""

    def write(self, content: Any) -> None:
        self.path.write_bytes(content)

    @abstractmethod
    def read(self) -> None:
        """Read the file, and use what was in it."""

    def case(self, rng: Rng) -> bool:
        """Whether a changed file is read; otherwise it is refused."""
        self.write(self.changed(rng, one_of(rng, self.wholes)))
        try:
            self.read()
        except self.refusal:
            return False
        return True


def _check_data(data: Data) -> None:
    X, y = data.X, data.y
    if X.ndim != 2 or (y is not None and y.shape != (X.shape[0],)):
        raise Wrong(f"X of shape {X.shape}, y of shape {None if y is None else y.shape}")
    if sp.issparse(X):
        X.check_format(full_check=True)
    if y is not None and y.dtype.kind == "U":
        "".join(y.tolist()).encode()


# ----------------------------------------------------------------------------------------------------------------- text


class Csv(Format):
    """With a header and text as labels; labels in their own words; no header and quotes."""

    name = "data.csv"
    options: tuple[dict[str, Any], ...] = ({}, {"target": "kind"}, {"target": -1}, {"target": "1", "drop": ["2"]})

    def made(self) -> list[Any]:
        cells = [",".join(map(repr, row)) for row in rows()[:20].tolist()]
        named = "a,b,c,d,kind\n" + "".join(f"{row},{'no' if i % 3 else 'yes'}\n" for i, row in enumerate(cells))
        quoted = "".join(f'{i};"{i % 4}";{row.replace(",", ";")}\r\n' for i, row in enumerate(cells))
        return [named.encode(), quoted.encode(), ("\n".join(cells) + "\n").encode()]

    def changed(self, rng: Rng, whole: Any) -> Any:
        return changed_text(rng, whole)

    def write(self, content: Any) -> None:
        super().write(content)
        self.turn = len(content)

    def read(self) -> None:
        read = False
        for options in self.options:
            try:
                _check_data(read_data(self.path, **options))
                read = True
            except DataError as error:
                refusal = error
        if not read:
            raise refusal


class Packed(Csv):
    """Compressed: the text is changed, or the file, or both."""

    options = ({"target": "kind"}, {})
    packers: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
        (".gz", lambda text: gzip.compress(text, 1)),
        (".bz2", lambda text: bz2.compress(text, 1)),
        (".xz", lambda text: lzma.compress(text, preset=0)),
    )

    def made(self) -> list[Any]:
        return [pack(text) for text in super().made() for _, pack in self.packers]

    def changed(self, rng: Rng, whole: Any) -> Any:
        if rng.random() < 0.3:
            text = one_of(rng, [*Csv.made(self), b"\n" * 60_000, b"1," * 30_000, b"1" * 60_000])
            whole = one_of(rng, self.packers)[1](changed_text(rng, text))
        return changed_bytes(rng, whole) if rng.random() < 0.7 else whole


class Svmlight(Format):
    name = "data.svm"

    def made(self) -> list[Any]:
        write_data(self.path, Data(sp.csr_matrix(np.round(rows()[:20], 1) * (rows()[:20] > 0)), labels()[:20]))
        return [self.path.read_bytes(), b"+1 qid:3 1:.5 2147483646:2 # comment\n-1.5 3:1e-3\n\n0\n"]

    def changed(self, rng: Rng, whole: Any) -> Any:
        return changed_text(rng, whole)

    def read(self) -> None:
        _check_data(read_data(self.path))


class LabelFile(Format):
    """Labels in a text of their own."""

    name = "labels.txt"

    def made(self) -> list[Any]:
        np.save(self.folder / "X.npy", rows()[:5])
        return [b"yes\nno\nyes\nno\nyes\n", b"1\n2\n3\n1\n2\n\n\n", b"0.5\r\n1\r\n1e3\r\n-7\r\n0\r\n"]

    def changed(self, rng: Rng, whole: Any) -> Any:
        return changed_text(rng, whole)

    def read(self) -> None:
        _check_data(read_data(self.folder / "X.npy", labels=self.path))


# --------------------------------------------------------------------------------------------------------------- arrays


# What types and shapes in headers become.
TYPES = (
    "O", "V8", "U0", "<U9", "S1", "<f2", "<f4", ">f8", "<i8", ">i4", "|b1", "M8[D]", "<f16", "f8,i4", "?", "x",
)  # fmt: skip
SHAPES = (
    "(-1,)", "(2147483648, 4294967296)", "(9223372036854775807,)", f"({'9' * 5000},)", "()", "(0, 99999999999)",
    "(99999999999, 0)", "[3, 4]", "(True, 4)", "(1.0, 4)", "(" * 150 + ")" * 150, "3", "(60, 4L)",
)  # fmt: skip


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def changed_npy(rng: Rng, content: bytes) -> bytes:
    """Header or bytes changed, or the array in it."""
    match int(rng.integers(4)):
        case 0:
            return changed_bytes(rng, content)
        case 1:
            try:
                return npy(changed_array(rng, np.load(io.BytesIO(content))))
            except Exception:  # it is changed already, and NumPy's own reader does not understand it
                return content
        case _:
            return _changed_header(rng, content)


def _changed_header(rng: Rng, content: bytes) -> bytes:
    start = content.find(b"{")
    stop = content.find(b"\n", start) + 1
    if start < 0 or not stop:
        return changed_bytes(rng, content)
    told = content[start:stop].decode("latin1")
    match int(rng.integers(6)):
        case 0:
            kind = one_of(
                rng, ("O", "V8", "U0", "<U9", "S1", "<f4", ">f8", "<i8", "|b1", "M8[D]", "<f16", "f8,i4", "?", "x")
            )
            told = told.replace("<f8", kind).replace("<i8", kind).replace("<i4", kind)
        case 1:
            shape = one_of(rng, SHAPES)
            told = told[: told.find("(")] + shape + told[told.rfind(")") + 1 :]
        case 2:
            told = told.replace("False", one_of(rng, ("True", "0", "None", "[]", "__import__('os')", "lambda: 0")))
        case 3:
            return content[:start] + changed_text(rng, content[start:stop]) + content[stop:]
        case 4:
            told = one_of(rng, ("{", "{}", "1", "'''", "{'descr': '<f8'}", "-" * 9000 + "1", "[" * 9000, "\x00", "a b"))
        case _:
            length = one_of(rng, (0, 1, 10, 65535, len(told) - 1, len(told) + 1))
            version = one_of(rng, (b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09", b"\xff\xff"))
            return content[:6] + version + struct.pack("<H", length) + content[start:]
    text = told.encode("latin1")
    return content[:8] + struct.pack("<H", min(len(text), 65535)) + text + content[stop:]


class Npy(Format):
    name = "data.npy"

    def made(self) -> list[Any]:
        return [npy(rows()), npy(rows().astype(np.float32)), npy(np.asfortranarray(labels().reshape(-1, 2)))]

    def changed(self, rng: Rng, whole: Any) -> Any:
        return changed_npy(rng, whole)

    def read(self) -> None:
        data = read_data(self.path)
        _check_data(data)
        float(data.X.sum(dtype=np.float64))


class Npz(Format):
    name = "data.npz"

    def made(self) -> list[Any]:
        sparse = sp.csr_matrix(rows() * (rows() > 0))
        names = [f"feature {i}" for i in range(_FEATURES)]
        contents = []
        for data in (Data(rows(), labels(), names), Data(sparse, labels().astype(str), names)):
            write_data(self.path, data)
            contents.append(self.path.read_bytes())
        sp.save_npz(self.path, sparse.tocsc())
        return [*contents, self.path.read_bytes()]

    def changed(self, rng: Rng, whole: Any) -> Any:
        if rng.random() < 0.3:
            return changed_bytes(rng, whole)
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        for _ in range(int(rng.geometric(0.6))):
            number = int(rng.integers(len(members)))
            name, content = members[number]
            match int(rng.integers(6)):
                case 0 if len(members) > 1:
                    del members[number]
                case 1:
                    members[number] = (one_of(rng, ("X.npy", "y.npy", "indices.npy", "format.npy", "Z", "X")), content)
                case _:
                    members[number] = (name, changed_npy(rng, content))
        packing = one_of(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        file = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as archive:
            warnings.simplefilter("ignore", UserWarning)  # the same name twice
            for name, content in members:
                archive.writestr(name, content)
        return changed_bytes(rng, file.getvalue()) if rng.random() < 0.2 else file.getvalue()

    def read(self) -> None:
        _check_data(read_data(self.path))


class CsrFolder(Format):
    name = "rows"

    def made(self) -> list[Any]:
        wholes = []
        for index in (np.int32, np.int64):
            matrix = sp.csr_matrix(rows() * (rows() > 0))
            matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
            shutil.rmtree(self.path, ignore_errors=True)
            save_csr(self.path, matrix)
            wholes.append({path.name: path.read_bytes() for path in self.path.iterdir()})
        return wholes

    def changed(self, rng: Rng, whole: Any) -> Any:
        name = one_of(rng, sorted(whole))
        return {**whole, name: changed_npy(rng, whole[name])}

    def write(self, content: Any) -> None:
        for name, part in content.items():
            (self.path / name).write_bytes(part)

    def read(self) -> None:
        data = read_data(self.path)
        _check_data(data)
        float(data.X.data.sum(dtype=np.float64))


class Parquet(Format):
    name = "data.parquet"

    def made(self) -> list[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        text = [("no", "yes")[label] for label in labels().tolist()]
        columns = {"a": rows()[:, 0], "b": rows()[:, 1].astype(np.float32), "c": labels(), "kind": text}
        contents = []
        for options in ({"compression": "none"}, {"compression": "snappy"}, {"compression": "gzip"}):
            file = io.BytesIO()
            pq.write_table(pa.table(columns), file, **options)
            contents.append(file.getvalue())
        columns["kind"] = pa.array(text).dictionary_encode()
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file, compression="zstd", use_dictionary=False, row_group_size=16)
        return [*contents, file.getvalue()]

    def changed(self, rng: Rng, whole: Any) -> Any:
        if rng.random() < 0.5:  # the description at the end, which tells where everything is
            length = int.from_bytes(whole[-8:-4], "little")
            start = len(whole) - 8 - length
            return whole[:start] + changed_bytes(rng, whole[start:-8]) + whole[-8:]
        return changed_bytes(rng, whole)

    def read(self) -> None:
        _check_data(read_data(self.path, target="kind"))


# --------------------------------------------------------------------------------------------------------------- models


def _fitted() -> list[Any]:
    X, y = rows(), labels()
    local = {"prediction": "local", "regroup": False, "n_blocks": 3, "max_iter": 2}
    targets = np.stack((X[:, 0], X[:, 1]), axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            KernelSVC(C=2.0, gamma=0.5).fit(X, y),
            KernelSVC(C=2.0, gamma=0.5, partition="kernel_kmeans")
            .set_params(**local)
            .fit(sp.csr_matrix(X), y + (X[:, 3] > 1)),
            KernelRidge(kernel="poly", degree=2, gamma=0.3).fit(X, targets),
            AutoKernelRegressor(random_state=0).fit(X, targets, groups=np.arange(len(X)) // 2),
            AutoKernelClassifier(random_state=0).fit(np.where(X > 2, np.nan, X), y),
        ]


class Model(Format):
    """Files of `save`, changed byte by byte."""

    name, refusal = "model.pbk", ModelFileError

    def made(self) -> list[Any]:
        contents = []
        for model in _fitted():
            model.save(self.path)
            contents.append(self.path.read_bytes())
        return contents

    def changed(self, rng: Rng, whole: Any) -> Any:
        length = int.from_bytes(whole[:8], "little")
        if rng.random() < 0.3:
            header = changed_text(rng, whole[8 : 8 + length])
            return struct.pack("<Q", len(header)) + header + whole[8 + length :]
        return changed_bytes(rng, whole)

    def read(self) -> None:
        with suppress(ModelFileError):  # it is load that counts
            describe(self.path)
        model = load_any(self.path)
        try:
            predicted = model.predict(np.zeros((3, getattr(model, "n_features_in_", _FEATURES))))
        except ValueError as error:
            if "not finite numbers" in str(error):  # a model of huge numbers, which prediction says
                return
            raise
        if len(predicted) != 3:
            raise Wrong(f"3 rows have {len(predicted)} predictions")


class ForgedModel(Model):
    """The same with another content, and the right checksum for it."""

    def changed(self, rng: Rng, whole: Any) -> Any:
        from safetensors.numpy import load, save

        header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
        record = json.loads(header["__metadata__"][container.FORMAT])
        tensors = load(whole)
        del tensors["sha256"]
        if rng.random() < 0.5:
            record = changed_json(rng, record)
        else:
            name = one_of(rng, sorted(tensors))
            array = changed_array(rng, tensors[name])
            tensors[name] = array if array.dtype.kind in "biuf" else tensors[name]
        told = json.dumps(record)
        arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        arrays["sha256"] = container._checksum(told, arrays)
        try:
            return save(arrays, {container.FORMAT: told})
        except UnicodeEncodeError:  # half a letter
            return whole


class Libsvm(Model):
    name = "svm.model"

    def made(self) -> list[Any]:
        contents = []
        X, y = rows(), labels()
        for kernel in ("rbf", "poly", "sigmoid", "linear"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                to_libsvm(KernelSVC(kernel=kernel, gamma=0.1).fit(X[:30], y[:30] + 2 * (X[:30, 1] > 0)), self.path)
            contents.append(self.path.read_bytes())
        return contents

    def changed(self, rng: Rng, whole: Any) -> Any:
        head, mark, vectors = whole.partition(b"SV\n")
        if rng.random() < 0.5:
            return changed_text(rng, head) + mark + vectors
        return changed_text(rng, whole)


# ---------------------------------------------------------------------------------------------------------- checkpoints

_HEADER = struct.Struct("<IQ32s")
_MARK = b"parablock checkpoint\n"


class CheckpointFile(Format):
    """Checkpoints of fits with one block and with several, changed byte by byte, and resumed."""

    name, refusal = "run.checkpoint", CheckpointError
    settings: tuple[dict[str, Any], ...] = (
        {"n_blocks": 4, "max_iter": 3},
        {"n_blocks": 4, "regroup": False, "max_iter": 2},
        {"n_blocks": 3, "fit_intercept": False, "max_iter": 2},
    )

    def __init__(self, folder: Path) -> None:
        self.chosen = 0
        self.optima = [self.objective(self.machine(number, max_iter=1000).fit(rows(), labels())) for number in range(3)]
        super().__init__(folder)

    def machine(self, number: int, **more: Any) -> Any:
        settings = {
            "C": 10.0,
            "gamma": 1.0,
            "tol": 1e-6,
            "random_state": 0,
            "n_jobs": 1,
            **self.settings[number],
            **more,
        }
        return KernelSVC(**settings)

    def objective(self, model: Any) -> float:
        """The dual objective of the coefficients that are published, without the library."""
        X, coef = rows(), np.zeros(_ROWS)
        coef[model.support_] = model.dual_coef_[0]
        kernel = np.exp(-model.gamma * ((X[:, None] - X) ** 2).sum(axis=2))
        y = 2.0 * labels() - 1.0
        outside = max(0.0, float((y * coef - model.C).max()), float(-(y * coef).min()))
        off = abs(coef.sum()) if model.fit_intercept else 0.0
        if outside > 1e-6 or off > 1e-6:
            raise Wrong(f"coefficients leave their box by {outside:.3g}, and their sum is off by {off:.3g}")
        return float(coef @ y - 0.5 * coef @ kernel @ coef)

    def made(self) -> list[Any]:
        wholes = []
        for number in range(len(self.settings)):
            checkpoint = Checkpoint(self.path, seconds=0, iterations=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.machine(number, checkpoint=checkpoint, resume=False).fit(rows(), labels())
            wholes.append((number, self.path.read_bytes()))
            self.path.unlink()
        return wholes

    def changed(self, rng: Rng, whole: Any) -> Any:
        number, content = whole
        return number, changed_bytes(rng, content)

    def write(self, content: Any) -> None:
        self.chosen = content[0]
        self.path.write_bytes(content[1])

    def read(self) -> None:
        checkpoint = Checkpoint(self.path, seconds=1e9)
        model = self.machine(self.chosen, max_iter=1000, checkpoint=checkpoint, resume=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows(), labels())
        best = self.optima[self.chosen]
        if not abs(self.objective(model) - best) <= 1e-4 * abs(best):
            raise Wrong(f"{model.stop_reason_} at {self.objective(model):.6g}; the optimum is {best:.6g}")
        if not abs(model.dual_objective_ - best) <= 1e-4 * abs(best):
            raise Wrong(f"it says that it is at {model.dual_objective_:.6g}, and is at {best:.6g}")


class ForgedCheckpoint(CheckpointFile):
    """The same with another content, and the right checksum for it."""

    def changed(self, rng: Rng, whole: Any) -> Any:
        number, content = whole
        version, _, _ = _HEADER.unpack_from(content, len(_MARK))
        body = content[len(_MARK) + _HEADER.size :]
        if rng.random() < 0.1:
            body = changed_bytes(rng, body)
        else:
            with np.load(io.BytesIO(body)) as arrays:
                parts = {name: arrays[name] for name in arrays.files}
            for _ in range(int(rng.geometric(0.7))):
                name = one_of(rng, sorted(parts))
                if name == "told" and parts[name].dtype.kind == "U" and parts[name].ndim == 0:
                    told = json.loads(parts[name].item())
                    parts[name] = np.array(as_json(changed_json(rng, told)).decode())
                elif rng.random() < 0.1:
                    del parts[name]
                else:
                    parts[name] = changed_array(rng, parts[name])
                if not parts:
                    break
            file = io.BytesIO()
            np.savez(file, **parts)
            body = file.getvalue()
        return number, _MARK + _HEADER.pack(version, len(body), hashlib.sha256(body).digest()) + body


# ----------------------------------------------------------------------------------------------------------------- JSON


class ScalingFile(Format):
    name = "scaling.json"

    def made(self) -> list[Any]:
        contents = []
        for X, names in ((rows(), ["a", "b", "c", "d"]), (sp.csr_matrix(rows()), None)):
            save_scaling(str(self.path), Scaling.of(X), names)
            contents.append(self.path.read_bytes())
        return contents

    def changed(self, rng: Rng, whole: Any) -> Any:
        return as_json(changed_json(rng, json.loads(whole))) if rng.random() < 0.7 else changed_text(rng, whole)

    def read(self) -> None:
        scaling, names = load_scaling(str(self.path))
        if not (np.isfinite(scaling.shift).all() and np.isfinite(scaling.scale).all() and (scaling.scale > 0).all()):
            raise Wrong(f"shift {scaling.shift}, scale {scaling.scale}")
        if names is not None and len(names) != len(scaling.scale):
            raise Wrong(f"{len(scaling.scale)} features have {len(names)} names")


class RunLog(Format):
    """Logs of runs, and the pages of them."""

    name, refusal = "run.jsonl", LogError

    def made(self) -> list[Any]:
        KernelSVC(n_blocks=3, gamma=1.0).set_callbacks(JSONLog(self.path)).fit(rows(), labels())
        KernelRidge(gamma=1.0).set_callbacks(JSONLog(self.path)).fit(rows(), rows()[:, 0])
        return [self.path.read_bytes()]

    def changed(self, rng: Rng, whole: Any) -> Any:
        if rng.random() < 0.3:
            return changed_text(rng, whole)
        lines = whole.splitlines()
        number = int(rng.integers(len(lines)))
        lines[number] = as_json(changed_json(rng, json.loads(lines[number])))
        return b"\n".join(lines) + b"\n"

    def read(self) -> None:
        page = html(read_log(self.path))
        if "<script>alert" in page or "\n<script>\n<script" in page:
            raise Wrong("a script got into the page")


FORMATS: dict[str, type[Format]] = {
    "csv": Csv,
    "csv-packed": Packed,
    "svmlight": Svmlight,
    "labels": LabelFile,
    "npy": Npy,
    "npz": Npz,
    "csr": CsrFolder,
    "parquet": Parquet,
    "model": Model,
    "model-forged": ForgedModel,
    "libsvm": Libsvm,
    "checkpoint": CheckpointFile,
    "checkpoint-forged": ForgedCheckpoint,
    "scaling": ScalingFile,
    "log": RunLog,
}


def format_of(name: str) -> type[Format]:
    """A format by its name here, or as module:class from elsewhere."""
    if ":" not in name:
        return FORMATS[name]
    module, kind = name.split(":")
    found: type[Format] = getattr(import_module(module), kind)
    return found
