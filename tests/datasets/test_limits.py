"""Small files that ask for much: refused, with file, line and limit, before memory is taken."""

import bz2
import gzip
import io
import lzma
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

from parablock.datasets import DataError, open_csr, read_csv, read_data, read_parquet, read_svmlight, save_csr
from parablock.datasets.streams import whole_lines

MB = 1 << 20


def peak(work):
    """The most memory that Python and NumPy held at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def npy_header(shape, descr="<f8"):
    """The beginning of a .npy file of that shape."""
    told = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    told += b" " * (63 - (10 + len(told)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(told)) + told


# ------------------------------------------------------------------------------------------------------------ text


@pytest.mark.parametrize("name", ["endless.csv.bz2", "endless.svm.bz2"])
def test_a_line_without_end_is_refused_at_the_limit(name, tmp_path):
    (tmp_path / name).write_bytes(bz2.compress(b"1" * (65 * MB), 1))
    assert (tmp_path / name).stat().st_size < 10_000
    with pytest.raises(DataError, match=rf"{name}, line 1: it is longer than 64 MB \(max_line_bytes, or --max-line"):
        read_data(tmp_path / name)


def test_the_limit_can_be_raised_and_lowered(tmp_path):
    text = "a,b\n" + "1,2\n" * 4 + "1," + "0" * 100 + "2\n1,2\n"
    path = tmp_path / "wide.csv"
    path.write_text(text)
    assert read_data(path).X.shape == (6, 2)
    assert read_csv(path, max_line_bytes=103).X.shape == (6, 2)
    with pytest.raises(DataError, match="line 6: it is longer than 102 bytes"):
        read_data(path, max_line_bytes=102)
    with pytest.raises(DataError, match="line 6: it is longer than 50 bytes"):
        read_csv(path, max_line_bytes=50)
    sparse = io.BytesIO(b"1 1:1\n" * 1000 + b"1 " + b"0" * 200 + b"1:1\n")
    with pytest.raises(DataError, match="line 1001: it is longer than 100 bytes"):
        read_svmlight(sparse, max_line_bytes=100)


def test_a_long_line_is_put_together_once():
    """Of pieces of a line each is copied once, not with every piece that comes behind it."""
    copied = 0

    class Counted(bytes):
        def __radd__(self, other):
            nonlocal copied
            copied += len(other)
            return bytes(other) + bytes(self)

    class Pieces:
        left = 5000

        def read(self, size):
            self.left -= 1
            return Counted(b"1" * 100) if self.left > 0 else b""

    (line,) = whole_lines(Pieces(), "name", longest=MB, chunk=100)
    assert len(line) == 499_900
    assert copied == 0


def test_empty_lines_take_no_memory_for_columns_that_are_not_there():
    n_columns, n_lines = 20_000, 200_000
    text = ",".join(["1"] * n_columns).encode() + b"\n" * n_lines + b",".join([b"2"] * n_columns) + b"\n"
    data = {}

    def read():
        data["read"] = read_csv(io.BytesIO(text))

    assert peak(read) < 30 * MB  # and not 200,000 x 20,000 x 8
    assert data["read"].X.shape == (2, n_columns)


def test_a_file_that_begins_with_very_many_empty_lines(tmp_path):
    path = tmp_path / "late.csv.gz"
    path.write_bytes(gzip.compress(b"\n" * (17 * MB) + b"a,b\n1,2\n", 1))  # more than is read at once
    assert read_csv(path).names == ["a", "b"]
    with pytest.raises(DataError, match=rf"line {17 * MB + 3}, column 1"):
        read_csv(io.BytesIO(b"\n" * (17 * MB) + b"a,b\n1,2\nx,1\n"))


def test_one_long_label_does_not_take_its_length_for_every_row(tmp_path):
    text = b"a,kind\n" + b"1,x\n" * 50_000 + b"1," + b"y" * 300_000 + b"\n"

    def read():
        with pytest.raises(DataError, match=r"line 50002: a label of 300,000 bytes.* 64 MB are the limit"):
            read_csv(io.BytesIO(text), target="kind")

    assert peak(read) < 20 * MB
    few = read_csv(io.BytesIO(b"a,kind\n1,x\n1," + b"y" * 300_000 + b"\n"), target="kind")
    assert [len(label) for label in few.y.tolist()] == [1, 300_000]
    path = tmp_path / "labels.txt"
    path.write_bytes(b"x\n" * 50_000 + b"y" * 300_000 + b"\n")
    np.save(tmp_path / "X.npy", np.ones((50_001, 1)))
    with pytest.raises(DataError, match=r"labels\.txt, line 50001: a label of 300,000 bytes"):
        read_data(tmp_path / "X.npy", labels=path)


def test_a_wide_table_is_read_by_a_model_that_knows_its_names():
    """Each name is looked up, not compared with all others."""
    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str(self) == str(other)

        __hash__ = str.__hash__

    names = [f"feature {i}" for i in range(2000)]
    text = ",".join(names) + "\n" + ",".join(["1"] * 2000) + "\n"
    data = read_csv(io.BytesIO(text.encode()), features=[Name(name) for name in reversed(names)])
    assert data.names == names[::-1]
    assert compared < 20 * len(names)


def test_what_does_not_fit_into_memory_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("parablock.datasets.streams.memory_there_is", lambda: 1000)
    with pytest.raises(DataError, match="line 401: what was read until here is larger than memory"):
        read_csv(io.BytesIO(b"1,2\n" * 400))
    with pytest.raises(DataError, match="line 401: what was read until here is larger than memory"):
        read_svmlight(io.BytesIO(b"1 1:2\n" * 400))
    with pytest.raises(DataError, match="its content is larger than memory"):
        read_data(io.BytesIO(lzma.compress(b"\0" * 10_000)), format="npy")


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**32 + 1, 10**30])
def test_an_index_that_is_too_large(index):
    with pytest.raises(
        DataError, match=f"line 2: index {index} is too large: the largest that is expected is 2147483646"
    ):
        read_svmlight(io.BytesIO(f"1 1:1\n1 {index}:1\n".encode()))


# ---------------------------------------------------------------------------------------------------------- arrays


def test_an_array_that_claims_more_than_its_file_has(tmp_path):
    shape = (10**6, 10**6)
    (tmp_path / "a.npy").write_bytes(npy_header(shape) + b"\0" * 80)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy_header(shape) + b"\0" * 80)
    assert (tmp_path / "a.npz").stat().st_size < 400
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataError, match=rf"{name}.*it claims 7\.3 TB of values .*, and 80 bytes follow its header"):
            read_data(tmp_path / name)
    with pytest.raises(DataError, match=r"it claims 7\.3 TB of values"):
        read_data(io.BytesIO((tmp_path / "a.npy").read_bytes()), format="npy")


def test_an_archive_that_claims_more_than_compression_can_hold(tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy_header((1000, 1000)) + b"\0" * 8_000_000)
    content = bytearray(file.getvalue())
    size = struct.pack("<I", 8_000_000 + len(npy_header((1000, 1000))))
    assert content.count(size) == 2  # before the data, and in the list at the end
    (tmp_path / "bomb.npz").write_bytes(bytes(content.replace(size, struct.pack("<I", 4_000_000_000))))
    with pytest.raises(DataError, match=r"its array 'X' claims 3\.7 GB, which .* of an archive cannot hold"):
        read_data(tmp_path / "bomb.npz")


def test_arrays_larger_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("parablock.npy.memory_there_is", lambda: 1000)
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((100, 100)))
    with pytest.raises(DataError, match=r"an array in it cannot be read .its 78 kB are more than the memory"):
        read_data(tmp_path / "a.npz")


def test_folders_whose_arrays_claim_more_than_there_is(tmp_path):
    import scipy.sparse as sp

    save_csr(tmp_path / "rows", sp.eye(5, format="csr"))
    (tmp_path / "rows" / "indptr.npy").write_bytes(npy_header(f"({10**15},)", "<i4"))
    with pytest.raises(DataError, match=r"indptr\.npy cannot be opened .it claims .* TB"):
        open_csr(tmp_path / "rows")


def test_parquet_files_that_repeat_a_value_very_often(tmp_path, monkeypatch):
    path = tmp_path / "same.parquet"
    pd.DataFrame({"a": np.zeros(100_000), "b": ["x"] * 100_000}).to_parquet(path)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("parablock.datasets.tables.memory_there_is", lambda: 100_000)
    with pytest.raises(DataError, match=r"same\.parquet: it has 100,000 rows of 2 columns, which take 1\.5 MB"):
        read_parquet(path)


def test_parquet_labels_of_very_different_lengths(tmp_path):
    path = tmp_path / "labels.parquet"
    pd.DataFrame({"a": np.zeros(50_000), "y": ["x"] * 49_999 + ["y" * 300_000]}).to_parquet(path)
    with pytest.raises(DataError, match="row 50000, column 'y': a label of 300,000 bytes"):
        read_parquet(path, target="y")
