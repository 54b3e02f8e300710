"""Files that other libraries stumble over: the readers say what is wrong in errors of their own."""

import io
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from parablock.datasets import DataError, open_csr, read_csv, read_data, read_parquet, save_csr


def npy(told, version=(1, 0), length=None, content=b"\0" * 64):
    """A .npy file with this text as header."""
    told = told.encode("latin1")
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(told) if length is None else length) + told + content


GOOD = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }\n"
HEADERS = [
    npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), \n"),  # NumPy: TokenError
    npy("{'descr': <f8, 'shape': }\n"),  # SyntaxError
    npy(GOOD.replace("(2, 4)", "(9223372036854775808,)")),  # OverflowError
    npy(GOOD.replace("(2, 4)", "(-2, 4)")),
    npy(GOOD.replace("(2, 4)", "(2, 4, 0.5)")),
    npy(GOOD.replace("(2, 4)", "(True, 4)")),
    npy(GOOD.replace("(2, 4)", "[2, 4]")),
    npy(GOOD.replace("<f8", "|O")),
    npy(GOOD.replace("<f8", "<U0").replace("(2, 4)", f"({10**12}, 4)")),
    npy(GOOD.replace("'<f8'", "[('a', '<f8')]")),
    npy(GOOD.replace("'<f8'", "None")),
    npy(GOOD.replace("<f8", "<f7")),
    npy("[" * 5000),
    npy("-" * 9000 + "1"),
    npy("{}"),
    npy("1"),
    npy("\0" * 20),
    npy(GOOD, version=(9, 9)),
    npy(GOOD, length=60_000),
    npy(GOOD, length=20_000, content=b" " * 30_000),
    npy(GOOD, content=b"\0" * 63),
    npy(GOOD.replace("<f8", "<U1"), content=b"\xff" * 64),  # letters that do not exist
    b"\x93NUMPY",
    b"\x93NUMPY\x01\x00\x10",
]


@pytest.mark.parametrize("content", HEADERS)
def test_arrays_that_make_no_sense(content, tmp_path):
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content)
    save_csr(tmp_path / "rows", sp.eye(3, format="csr"))
    (tmp_path / "rows" / "data.npy").write_bytes(content)
    for name in ("a.npy", "a.npz", "rows"):
        with pytest.raises(DataError, match=name):
            read_data(tmp_path / name)
    with pytest.raises(DataError, match="standard input"):
        read_data(io.BytesIO(content), format="npy")


def test_what_python_2_wrote_is_read(tmp_path):
    (tmp_path / "old.npy").write_bytes(npy(GOOD.replace("(2, 4)", "(2L, 4L)")))
    assert read_data(tmp_path / "old.npy").X.shape == (2, 4)  # and not aligned, which compiled code may count on
    assert read_data(tmp_path / "old.npy").X.flags.aligned


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_packed_as_numpy_does_not(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("X.npy", npy(GOOD))
    with pytest.raises(DataError, match="packed in a way that NumPy does not use"):
        read_data(tmp_path / "a.npz")


def test_damaged_archives(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.arange(1000.0).reshape(-1, 2))
    whole, refused = (tmp_path / "a.npz").read_bytes(), 0
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        (tmp_path / "a.npz").write_bytes(damaged)
        try:
            read_data(tmp_path / "a.npz")
        except DataError:
            refused += 1
    assert refused > 0.8 * len(whole) / 3


def test_damaged_parquet_files(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": np.arange(50.0), "y": ["x", "y"] * 25}).to_parquet(path)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_parquet(path, target="y")
        except DataError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    ("name", "array", "complaint"),
    [
        ("data", np.array(["a", "b", "c"]), "data.npy must hold numbers as SciPy takes them; it holds <U1"),
        ("data", np.ones(3, ">f8"), "it holds >f8"),
        ("shape", np.array([3, -3]), "shape.npy holds 3 rows and -3 columns"),
        ("shape", np.array([3.0, 3.0]), "two whole numbers"),
        ("shape", np.array([3]), "two whole numbers"),
        ("indices", np.array([0, 1, 3], np.int32), "indices.npy has numbers from 0 to 3; the matrix has 3 columns"),
        ("indices", np.array([0.0, 1, 2]), "int32 or int64"),
        ("indptr", np.array([0, 2, 1, 3]), "indptr.npy must rise"),
        ("indptr", np.array([0, 1, 2, 2**40]), "indptr.npy must rise"),
    ],
)
def test_folders_that_make_no_sense(name, array, complaint, tmp_path):
    save_csr(tmp_path / "rows", sp.eye(3, format="csr"))
    np.save(tmp_path / "rows" / f"{name}.npy", array)
    with pytest.raises(DataError, match=complaint):
        open_csr(tmp_path / "rows")


@pytest.mark.parametrize(
    "change",
    [
        {"indptr": [0, 5, 2]}, {"indptr": [0, 1]}, {"indptr": [1, 1, 2]}, {"indices": [-1, 0]}, {"indices": [0, 2]},
        {"indices": [0.5, 1.0]}, {"indices": [0]}, {"data": ["a", "b"]}, {"shape": [2, 2, 2]}, {"shape": [-2, 2]},
        {"shape": 2}, {"shape": ["a", "b"]}, {"format": [1]}, {"format": b"\xff"}, {"format": ["csr", "csr"]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sparse_archives_that_make_no_sense(change, format, tmp_path):
    parts = {"format": format, "shape": [2, 2], "data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], **change}
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DataError, match=r"a\.npz"):
        read_data(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_nothing_is_no_data(shape, tmp_path):
    np.save(tmp_path / "a.npy", np.empty(shape))
    with pytest.raises(DataError, match=r"there is no (row|feature) in it"):
        read_data(tmp_path / "a.npy")


def test_labels_keep_their_nul_characters_or_are_refused(tmp_path):
    """NumPy's text forgets them at the end: "a\\0" and "a" would be one class."""
    with pytest.raises(DataError, match="line 3: a label with a NUL character, which is no text"):
        read_csv(io.BytesIO(b"a,y\n1,a\n2,a\0\n"), target="y")
    assert read_csv(io.BytesIO(b"a,b\0,y\n1,\0,a\n2,x,b\n"), target="y", drop=[2]).y.tolist() == ["a", "b"]
    (tmp_path / "y.txt").write_bytes(b"a\na\0\n")
    np.save(tmp_path / "X.npy", np.eye(2))
    with pytest.raises(DataError, match="line 2: a label with a NUL character"):
        read_data(tmp_path / "X.npy", labels=tmp_path / "y.txt")
    pd.DataFrame({"a": [1.0, 2.0], "y": ["a", "a\0"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="row 2, column 'y': a label with a NUL character"):
        read_parquet(tmp_path / "a.parquet", target="y")
