"""Data files of all kinds through one function, and back."""

import io
import os
import re
import stat
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.datasets import Data, DataError, load_covtype_sample, read_data, save_csr, write_data
from parablock.datasets.reading import format_of


@pytest.fixture(scope="module")
def sample():
    X, y, _, _ = load_covtype_sample()
    return X[:200], y[:200].astype(np.int64)


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.svm", "svmlight"), ("a.svm.gz", "svmlight"), ("a", "svmlight"), ("a.t", "svmlight"), ("a.csv", "csv"),
        ("a.CSV.bz2", "csv"), ("a.tsv", "csv"), ("a.parquet", "parquet"), ("a.npy", "npy"), ("a.npz", "npz"),
        ("-", "svmlight"),
    ],
)  # fmt: skip
def test_the_name_tells_the_format(name, format):
    assert format_of(name) == format


@pytest.mark.parametrize("name", ["data.svm", "data.svm.bz2", "data.npz"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_what_is_written_is_read_back(name, sparse, sample, tmp_path):
    X, y = sample
    write_data(tmp_path / name, Data(sp.csr_matrix(X) if sparse else X, y))
    data = read_data(tmp_path / name)
    assert np.array_equal(dense(data.X).astype(np.float32), X)
    assert np.array_equal(data.y, y)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_sparse_npz_files_are_scipys_both_ways(sample, tmp_path):
    X, y = sp.csr_matrix(sample[0]), sample[1]
    write_data(tmp_path / "ours.npz", Data(X, y))
    assert (sp.load_npz(tmp_path / "ours.npz") != X).nnz == 0
    for matrix in (X, X.tocsc(), sp.csr_array(X)):
        sp.save_npz(tmp_path / "theirs.npz", matrix)
        data = read_data(tmp_path / "theirs.npz")
        assert (data.X != X).nnz == 0
        assert data.y is None


def test_npy_files_are_mapped_and_have_labels_beside_them(sample, tmp_path):
    X, y = sample
    write_data(tmp_path / "X.npy", Data(X, y), labels=tmp_path / "y.npy")
    data = read_data(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    assert isinstance(data.X, np.memmap)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    (tmp_path / "y.txt").write_text("\n".join("ab"[int(label > 0)] for label in y) + "\n\n")
    assert read_data(tmp_path / "X.npy", labels=tmp_path / "y.txt").y.tolist() == ["ab"[int(label > 0)] for label in y]


def test_a_folder_of_save_csr(sample, tmp_path):
    save_csr(tmp_path / "folder", sp.csr_matrix(sample[0]))
    np.save(tmp_path / "y.npy", sample[1])
    data = read_data(tmp_path / "folder", labels=tmp_path / "y.npy")
    assert np.array_equal(data.X.toarray(), sample[0])


@pytest.mark.parametrize("format", ["npz", "npy"])
def test_numpys_files_from_a_stream(format, sample):
    file = io.BytesIO()
    np.save(file, sample[0]) if format == "npy" else np.savez(file, X=sample[0], y=sample[1])
    file.seek(0)
    assert np.array_equal(read_data(file, format=format).X, sample[0])


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\n")))
    assert read_data("-").X.toarray().tolist() == [[2]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1,2\n")))
    assert read_data("-", format="csv").X.tolist() == [[1, 2]]


def npz(path, **arrays):
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("arrays", "options", "complaint"),
    [
        ({"Z": np.eye(2)}, {}, r"it holds Z; it should hold the arrays X and y, or a CSR matrix as scipy\.sparse"),
        ({"X": np.eye(2), "y": np.ones(3)}, {}, r"one label a row; there are 2 rows, and labels of shape \(3,\)"),
        ({"X": np.ones(3)}, {}, r"numbers in two dimensions; these are float64 of shape \(3,\)"),
        ({"X": np.array([["a"]])}, {}, "numbers in two dimensions; these are <U1"),
        ({"X": np.array([[{}]], dtype=object)}, {}, "an array in it cannot be read"),
        ({"X": np.empty((0, 2))}, {}, "there is no row in it"),
        ({"X": np.eye(2)}, {"n_features": 3}, "there are 2 features, and 3 are expected"),
        ({"X": np.eye(2)}, {"target": "a"}, "columns were named; this is read as npz"),
        ({"X": np.eye(2), "y": np.ones(2)}, {"labels": "y.npy"}, "it has labels of its own"),
        ({"X": np.eye(2)}, {"format": "xml"}, "format 'xml' is not known; there are svmlight, csv"),
        (
            {"format": "coo", "shape": [2, 2], "data": [1.0], "indices": [0], "indptr": [0]}, {},
            "a sparse matrix in the format 'coo'; csr and csc can be read",
        ),
        (
            {"format": "csr", "shape": [2, 2], "data": [1.0], "indices": [7], "indptr": [0, 1, 1]}, {},
            "an array in it cannot be read .*ind",
        ),
    ],
)  # fmt: skip
def test_what_an_npz_file_must_not_hold(arrays, options, complaint, tmp_path):
    npz(tmp_path / "data.npz", **arrays)
    with pytest.raises(DataError, match=complaint):
        read_data(tmp_path / "data.npz", **options)


@pytest.mark.parametrize("name", ["data.npz", "data.npy"])
@pytest.mark.parametrize("content", [b"", b"no array", b"PK\x03\x04 no archive", b"\x93NUMPY no array"])
def test_files_that_are_not_numpys(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"^{re.escape(str(tmp_path / name))}: it is no file of NumPy's"):
        read_data(tmp_path / name)


def test_several_arrays_that_are_called_npy(tmp_path):
    with open(tmp_path / "data.npy", "wb") as file:
        np.savez(file, X=np.eye(2))
    with pytest.raises(DataError, match="it holds several arrays; read it as npz"):
        read_data(tmp_path / "data.npy")


def test_a_single_array_that_is_called_npz(tmp_path):
    with open(tmp_path / "data.npz", "wb") as file:
        np.save(file, np.eye(2))
    with pytest.raises(DataError, match="it holds a single array; read it as npy"):
        read_data(tmp_path / "data.npz")


@pytest.mark.parametrize(
    ("content", "complaint"), [(b"1\n\n2\n", "line 2: there is no label on it"), (b"1\n", "labels of shape")]
)
def test_label_files_that_do_not_fit(content, complaint, tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    (tmp_path / "y.txt").write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_data(tmp_path / "X.npy", labels=tmp_path / "y.txt")


def test_labels_of_two_dimensions(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    np.save(tmp_path / "y.npy", np.eye(3))
    with pytest.raises(DataError, match="labels must have one dimension"):
        read_data(tmp_path / "X.npy", labels=tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("a.csv", Data(np.eye(2), np.ones(2)), "data can be written as svmlight, npy, npz, and not as csv"),
        ("a.svm", Data(np.eye(2), None), "LIBSVM's text needs a label for every row"),
        ("a.svm", Data(np.eye(2), np.array(["a", "b"])), "one number as label of each row; 'a' is none"),
        ("a.npy", Data(np.eye(2), np.ones(2)), "a .npy file has no place for labels"),
    ],
)
def test_what_cannot_be_written(name, data, complaint, tmp_path):
    with pytest.raises(DataError, match=complaint):
        write_data(tmp_path / name, data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_names_are_kept_in_npz_files(tmp_path, kind):
    X = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])
    write_data(tmp_path / "a.npz", Data(kind(X), np.array([0, 1]), ["long", "wide", "é"]))
    data = read_data(tmp_path / "a.npz")
    assert (data.names, data.y.tolist()) == (["long", "wide", "é"], [0, 1])
    data = read_data(tmp_path / "a.npz", features=["wide", "long"])
    assert (data.names, sp.csr_matrix(data.X).toarray().tolist()) == (["wide", "long"], [[2, 1], [4, 3]])
    with pytest.raises(DataError, match="there is no column 'deep'; its columns are 'long', 'wide', 'é'"):
        read_data(tmp_path / "a.npz", features=["wide", "deep"])


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], [1, 2]])
def test_names_that_do_not_fit(tmp_path, names):
    np.savez(tmp_path / "a.npz", X=np.eye(2), feature_names=names)
    with pytest.raises(DataError, match=r"its feature_names must be text of shape \(2,\), one a feature; they are"):
        read_data(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["datetime64[D]", "S1", "complex128", "longdouble"])
def test_labels_are_numbers_or_text(tmp_path, kind):
    y = np.array([1, 2]).astype(kind)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=y)
    np.save(tmp_path / "X.npy", np.eye(2))
    np.save(tmp_path / "y.npy", y)
    for options in ({"source": tmp_path / "a.npz"}, {"source": tmp_path / "X.npy", "labels": tmp_path / "y.npy"}):
        with pytest.raises(DataError, match=r"labels must be numbers or text; these are .*y\.astype\(str\)"):
            read_data(**options)


def test_links_are_followed_and_devices_written_to(tmp_path):
    data = Data(np.eye(3), np.array([1, 2, 3]))
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_data(tmp_path / "link", data)
    assert (tmp_path / "real").read_text() == "1 1:1.0\n2 2:1.0\n3 3:1.0\n"
    assert (tmp_path / "link").is_symlink()
    write_data("/dev/null", data)
    assert not os.path.isfile("/dev/null")


def test_the_permissions_of_a_file_are_kept(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("old")
    path.chmod(0o604)
    write_data(path, Data(np.eye(3), np.array([1, 2, 3])))
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
