"""Files that are damaged, foreign or written by someone who means harm: one clear error each, and no harm."""

import copy
import io
import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import parablock
from parablock import KernelSVC
from parablock.models import ModelFileError, container, describe, load_any
from tests.models.zoo import LOCAL, NEW, SETTINGS, fit, given_kernel, make, wide_and_sparse

VICTIMS = ("three classes", "scaled", "two targets", "rows left out", "local, kernel_kmeans", "local, blocks given")


def content_of(path):
    """Record and tensors of a file, read without the library."""
    with safe_open(path, "np") as file:
        record = json.loads(file.metadata()["parablock model"])
        return record, {name: file.get_tensor(name) for name in file.keys() if name != "sha256"}  # noqa: SIM118


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def whole(folder):
    """The bytes of a good file."""
    make("svc").save(folder / "whole.pbk")
    return (folder / "whole.pbk").read_bytes()


@pytest.fixture(scope="module")
def victims(folder):
    """Record and tensors of good files, whose checksum a forger computes anew."""
    models = {name: make(name, "csr" if "rows" in name else "dense") for name in VICTIMS}
    models["precomputed"] = given_kernel(**LOCAL)[0]
    models["wide"] = wide_and_sparse(**LOCAL)
    found = {}
    for name, model in models.items():
        model.save(folder / "victim.pbk")
        found[name] = content_of(folder / "victim.pbk")
    return found


def refused(path, match=None):
    """All that open a file refuse it with the same kind of error, which names the file."""
    for opener in (parablock.load, load_any):
        with pytest.raises(ModelFileError, match=match) as caught:
            opener(path)
        assert path.name in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def survives(path):
    """The file is refused, or holds a model that predicts."""
    try:
        model = parablock.load(path)
    except ModelFileError:
        return False
    new = NEW if model.n_features_in_ == NEW.shape[1] else np.zeros((2, model.n_features_in_))
    assert len(model.predict(new)) == len(new)
    return True


# ----------------------------------------------------------------------------------------------------- files by mistake


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"x", "text"),
        (b"1 1:0.5 2:0.25\n-1 1:0.5\n", "other text"),
        (b"\x00" * 100, "like none of"),
        (bytes(range(100, 228)), "like none of"),
        (pickle.dumps({"model": 1}), "pickle"),
        (pickle.dumps({"model": 1}, protocol=2), "pickle"),
        (b"parablock checkpoint\n" + b"\x00" * 50, "checkpoint: resume"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'", "array file"),
        (b"\x1f\x8b\x08\x00 compressed", "unpack"),
        (b"\x08\x08\x12\tparablock", "ONNX"),
        (struct.pack("<Q", 2**63) + b'{"a": 1}', r"header of 9,223,372,036,854,775,808 bytes"),
        (struct.pack("<Q", 1 << 25) + b"{" + b" " * 100, r"header of 33,554,432 bytes"),
        (struct.pack("<Q", 1000) + b"{" + b" " * 100, "ends after 109 bytes, inside its header"),
        (struct.pack("<Q", 100) + b"{" + b" " * 200, "header makes no sense"),
        (struct.pack("<Q", 8) + b"{[1, 2]}" + b" " * 200, "header makes no sense"),
        (struct.pack("<Q", 100_000) + b'{"a":' + b"[" * 99_995, "header makes no sense"),
        (struct.pack("<Q", 22) + b'{"__metadata__": "no"}', "header makes no sense"),
        (struct.pack("<Q", 2) + b"{}", "not a model of parablock"),
    ],
)
def test_other_files_are_refused(content, match, folder):
    path = folder / "other"
    path.write_bytes(content)
    refused(path, match)
    with pytest.raises(ModelFileError):
        describe(path)


def test_an_archive_of_arrays_and_a_foreign_safetensors_file_are_refused(folder):
    path, archive = folder / "foreign", io.BytesIO()
    np.savez(archive, coef=np.zeros(3))
    path.write_bytes(archive.getvalue())
    refused(path, "zip archive")
    save_file({"weight": np.zeros((2, 2))}, path, {"format": "pt"})
    refused(path, "not a model of parablock")


def test_a_pickle_is_never_opened(folder):
    path, mark = folder / "evil.pbk", folder / "mark"

    class Evil:
        def __reduce__(self):
            return open, (str(mark), "w")

    path.write_bytes(pickle.dumps(Evil()))
    refused(path, "pickle")
    assert not mark.exists()


def test_a_libsvm_model_is_told_from_ours(folder):
    path = folder / "libsvm"
    path.write_text("svm_type c_svc\n")
    with pytest.raises(ModelFileError, match=r"LIBSVM model: open it with .*from_libsvm"):
        parablock.load(path)


# --------------------------------------------------------------------------------------------------------------- damage


def test_every_truncated_file_is_refused(whole, folder):
    path = folder / "truncated"
    lengths = {*range(0, 40), *range(40, len(whole), 97), len(whole) - 1}
    for length in lengths:
        path.write_bytes(whole[:length])
        refused(path)
    path.write_bytes(whole + b"\0")
    refused(path)


@examples(max_examples=300)
@given(place=st.integers(0, 10**9), change=st.integers(1, 255))
def test_a_changed_byte_is_found(whole, folder, place, change):
    damaged, place = bytearray(whole), place % len(whole)
    damaged[place] ^= change
    if damaged[place : place + 1].isspace() and whole[place : place + 1].isspace():
        return  # padding: white space for white space
    path = folder / "flipped"
    path.write_bytes(damaged)
    refused(path)


# ------------------------------------------------------------------------------------------------------------ forgeries


def forged(folder, record, tensors):
    """A file with the right checksum for whatever is in it."""
    path = folder / "forged.pbk"
    version = record.pop("format_version", 1)
    told = json.dumps({"format_version": version, **record})
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file({**arrays, "sha256": container._checksum(told, arrays)}, path, {container.FORMAT: told})
    return path


def put(record, keys, value):
    for key in keys[:-1]:
        record = record[key]
    record[keys[-1]] = value


@pytest.mark.parametrize(
    ("keys", "value", "match"),
    [
        (["format_version"], 3, "format version 3; this parablock reads versions 1 and 2"),
        (["format_version"], "1", "no whole number"),
        (["estimator"], "KernelForest", "estimator 'KernelForest'.*newer version"),
        (["estimator"], "os.system", "estimator 'os.system'"),
        (["estimator"], "KernelSVR", "parameters make no sense|no 'single_target'"),
        (["kernel", "name"], "Wavelet", "kernel 'Wavelet'.*knows Chi2"),
        (["kernel", "gamma"], 2.0, "not that of its parameters"),
        (["kernel", "gamma"], -1.0, "not positive"),
        (["kernel", "degree"], 3, "RBF has the parameters"),
        (["kernel", "degree"], 1001, "no whole number from 0 to 1000"),
        (["kernel"], {"name": "Polynomial", "gamma": 1.0, "coef0": 0.0, "degree": 10**9}, "from 0 to 1000"),
        (["kernel"], {"name": "Polynomial", "gamma": 1.0, "coef0": 10**400, "degree": 3}, "no finite number"),
        (["parameters", "coef0"], 10**400, "its parameter 'coef0' is too large"),
        (["parameters", "class_weight"], {"weights": [[0, 10**400]]}, "no pairs of a label and a number"),
        (["parameters", "n_jobs"], 0, "parameters make no sense .*n_jobs"),
        (["parameters", "memory_limit"], "garbage", "parameters make no sense .*memory_limit must be"),
        (["parameters", "memory_limit"], -1, "parameters make no sense"),
        (["parameters", "kernel"], "wavelet", "parameters make no sense"),
        (["parameters", "C"], -1, "parameters make no sense"),
        (["parameters", "C"], "1", "parameters make no sense"),
        (["parameters", "loss"], "own", "parameters make no sense"),
        (["parameters", "magic"], 1, "parameters make no sense"),
        (["parameters", "C"], {"python": "1"}, "'python'"),
        (["parameters", "partition"], {"tensor": "vectors"}, "elsewhere"),
        (["fitted", "gamma"], float("nan"), "no finite number"),
        (["fitted", "outputs"], 2, "outputs than classes"),
        (["fitted", "support_vectors"], 10**12, "other support vectors"),
        (["fitted", "passed_rows"], 10**15, "which rows took part"),
        (["fitted", "data", "features"], 10**15, "shape"),
        (["fitted", "data", "rows"], 10**15, "which rows took part"),
        (["fitted", "data", "dtype"], "object", "precision 'object'"),
        (["fitted", "classes", "values"], [1, 1, 2], "not different"),
        (["fitted", "classes", "values"], ["a", "b", "c"], "not of type int64"),
        (["fitted", "classes", "values"], [0, 1, 2**70], "do not fit into int64"),
        (["fitted", "classes", "values"], [0, 1, [2]], "neither numbers nor text"),
        (["fitted", "classes", "type"], "complex64", "type of labels 'complex64'"),
        (["fitted", "of_classes", "n_support_"], [0, 0], "counts and weights than classes"),
        (["fitted", "of_classes", "n_support_"], [-1, 0, 10**400], "do not add up"),
        (["fitted", "of_classes", "n_support_"], [1.0, 2.0, 3.0], "no list of int"),
        (["fitted", "of_classes", "class_weight_"], [1.0, 1.0, float("nan")], "not positive numbers"),
        (["fitted", "of_classes", "class_weight_"], [1.0, 1.0, 0.0], "not positive numbers"),
        (["fitted", "of_classes"], {}, "has no 'n_support_'"),
        (["fitted", "predictions"], ["global", "local"], "other models"),
        (["fitted", "history", "columns"], ["iteration"], "columns iteration"),
        (["fitted", "history", "kinds"], [], "records of no kind"),
        (["fitted", "partition", "centres"], {"kind": "joined", "parts": []}, "block centres"),
        (["fitted", "more"], 1, "'more', which this parablock does not know"),
        (["more"], 1, "'more', which this parablock does not know"),
    ],
)
def test_a_record_that_is_changed_on_purpose_is_refused(victims, folder, keys, value, match):
    record, tensors = copy.deepcopy(victims["three classes"])
    put(record, keys, value)
    refused(forged(folder, record, tensors), match)


def test_a_file_without_the_counts_of_the_classes_is_read_and_written_again(victims, folder):
    """Files of the first versions."""
    record, tensors = copy.deepcopy(victims["three classes"])
    del record["fitted"]["of_classes"]
    model = parablock.load(forged(folder, record, tensors))
    assert not hasattr(model, "n_support_")
    model.save(folder / "again.pbk")
    assert np.array_equal(parablock.load(folder / "again.pbk").dual_coef_, model.dual_coef_)


def test_a_number_of_very_many_digits_is_refused(victims, folder):
    """More than Python turns into a number."""
    record, tensors = copy.deepcopy(victims["three classes"])
    path, arrays = folder / "digits.pbk", {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    told = json.dumps({**record, "format_version": 1}).replace('"outputs": 3', f'"outputs": {"3" * 5000}')
    assert "3" * 5000 in told
    save_file({**arrays, "sha256": container._checksum(told, arrays)}, path, {container.FORMAT: told})
    refused(path, "its record of the model makes no sense")
    with pytest.raises(ModelFileError, match="its record of the model makes no sense"):
        describe(path)


def leaves(value, path=()):
    """Where something stands in a record."""
    yield path
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:3]):
            yield from leaves(inner, (*path, key))


NONSENSE = [
    None,
    True,
    -1,
    0,
    10**6,
    2**70,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "rbf",
    "cuda",
    [],
    [[]],
    {},
    {"": 0},
]


@pytest.mark.parametrize("name", [*VICTIMS, "precomputed", "wide"])
def test_nonsense_anywhere_in_a_record_is_refused_or_harmless(victims, folder, name):
    record, tensors = victims[name]
    tried = lived = 0
    for place in leaves(record):
        if not place:
            continue
        for value in NONSENSE:
            changed = copy.deepcopy(record)
            put(changed, place, value)
            tried += 1
            if place[0] != "parameters":  # those are tried as they are: a model of another C predicts the same
                lived += survives(forged(folder, changed, tensors))
            else:
                try:
                    parablock.load(forged(folder, changed, tensors))
                except ModelFileError:
                    continue
    assert tried > 500
    assert lived < 0.2 * tried


@pytest.mark.parametrize("name", [*VICTIMS, "precomputed", "wide"])
def test_nonsense_in_any_tensor_is_refused_or_harmless(victims, folder, name):
    record, tensors = victims[name]
    for chosen, tensor in tensors.items():
        wide = tensor.astype(np.float64)
        changes = {
            "missing": None,
            "short": tensor[:-1],
            "empty": tensor[:0],
            "long": np.concatenate((tensor, tensor)),
            "deep": tensor[None],
            "flat": tensor.reshape(-1, 1) if tensor.ndim == 1 else tensor.ravel(),
            "float16": wide.clip(-1, 1).astype(np.float16),
            "text": np.frombuffer(b"import os", dtype=np.uint8),
            "negative": -1 - np.abs(tensor) if tensor.dtype.kind in "if" else tensor[::-1],
            "huge": np.full_like(tensor, 2**62) if tensor.dtype == np.int64 else tensor + tensor.dtype.type(1),
            "nan": wide * np.nan,
            "constant": np.zeros_like(tensor),
        }
        for value in changes.values():
            changed = dict(tensors)
            if value is None:
                del changed[chosen]
            else:
                changed[chosen] = value
            survives(forged(folder, copy.deepcopy(record), changed))
        certain = ["deep"] if chosen == "history" or tensor.size == 0 else ["deep", "nan"]
        for kind in certain:
            refused(forged(folder, copy.deepcopy(record), {**tensors, chosen: changes[kind]}))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"points.indices": lambda old: old + 2_000}, "sparse matrix 'partition.centres.points' makes no sense"),
        ({"points.indptr": lambda old: old[::-1]}, "sparse matrix 'partition.centres.points' makes no sense"),
        ({"points.indptr": lambda old: -old}, "sparse matrix 'partition.centres.points' makes no sense"),
        ({"points.indptr": lambda old: old[:-1]}, "'partition.centres.points.indptr' has shape"),
        ({"points.data": lambda old: old * np.nan}, "nan or infinite"),
        ({"points.data": lambda old: old.astype(np.int32)}, "int32 instead of"),
        ({"points.indices": lambda old: old.astype(np.float64)}, "float64 instead of"),
        ({"offsets": lambda old: np.append(old, 0.0)}, "'partition.centres.points.indptr' has shape"),
        ({"points": lambda _: np.zeros((4, 2_000))}, "does not know"),
    ],
)
def test_sparse_centres_that_make_no_sense_are_refused(victims, folder, change, match):
    record, tensors = copy.deepcopy(victims["wide"])
    assert record["fitted"]["partition"]["centres"] == {"kind": "sparse features"}
    for name, alter in change.items():
        tensors[f"partition.centres.{name}"] = alter(tensors.get(f"partition.centres.{name}"))
    refused(forged(folder, record, tensors), match)


def test_sparse_centres_of_dense_data_are_refused(victims, folder):
    record, tensors = copy.deepcopy(victims["three classes"])
    put(record, ["fitted", "partition", "centres"], {"kind": "sparse features"})
    refused(forged(folder, record, tensors), "its block centres are sparse, and its data is not")


def test_a_tensor_that_nobody_asked_for_is_refused(victims, folder):
    record, tensors = copy.deepcopy(victims["three classes"])
    refused(forged(folder, record, {**tensors, "__reduce__": np.zeros(3)}), "'__reduce__', which this parablock")


def test_csr_vectors_that_point_outside_are_refused(victims, folder):
    record, tensors = copy.deepcopy(victims["rows left out"])
    for name, value in (("vectors.indices", 4), ("vectors.indices", -1), ("vectors.indptr", 10**6)):
        changed = dict(tensors)
        changed[name] = np.full_like(tensors[name], value)
        refused(forged(folder, copy.deepcopy(record), changed), "sparse matrix 'vectors' makes no sense")


def test_a_path_in_a_file_is_not_taken_over(folder, tmp_path):
    """A fit of a stranger's model must not write where the stranger wants."""
    model = fit(KernelSVC(**SETTINGS))
    model.save(folder / "plain.pbk")
    record, tensors = content_of(folder / "plain.pbk")
    record["parameters"]["checkpoint"] = str(tmp_path / "stolen")
    refused(forged(folder, record, tensors), "'checkpoint'")
