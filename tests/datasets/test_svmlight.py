"""LIBSVM's text: read as scikit-learn reads it, written so that it is read back exactly, strict about its lines."""

import bz2
import gzip
import io
import lzma
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from parablock.datasets import DataError, load_covtype_sample, read_svmlight, write_svmlight
from parablock.datasets.streams import whole_lines


def read(text, **options):
    return read_svmlight(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def same(one, other):
    return one.shape == other.shape and (one != other).nnz == 0


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-1000, 1000).map(float), st.floats(width=16)
).filter(np.isfinite)
rows = st.lists(
    st.tuples(numbers, st.dictionaries(st.integers(1, 60), numbers, max_size=6)), min_size=1, max_size=12
)  # labels, and values by index
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
ends = st.sampled_from(["", " ", "  # a comment: 3:4", "#", "\r"])


@given(rows, st.data())
def test_reads_what_scikit_learn_reads(rows, data):
    lines = []
    for label, entries in rows:
        cells = [repr(label), *(f"{index}:{entries[index]!r}" for index in sorted(entries))]
        if data.draw(st.booleans()):
            cells.insert(1, "qid:7")
        lines.append(data.draw(blanks).join(cells) + data.draw(ends))
        if data.draw(st.booleans()):
            lines.append(data.draw(st.sampled_from(["", "# only a comment", "  "])))
    text = "\n".join(lines) + data.draw(st.sampled_from(["", "\n"]))
    X, y = read(text, n_features=60)
    expected_X, expected_y = load_svmlight_file(io.BytesIO(text.encode()), n_features=60, zero_based=False)
    assert same(X, expected_X)
    assert np.array_equal(y, expected_y)
    assert X.has_canonical_format


@given(rows, st.booleans())
def test_what_is_written_is_read_back_exactly(rows, zero_based):
    X = sp.lil_matrix((len(rows), 61))
    for i, (_, entries) in enumerate(rows):
        for index, value in entries.items():
            X[i, index] = value
    X, y = X.tocsr(), np.array([label for label, _ in rows])
    file = io.BytesIO()
    write_svmlight(file, X, y, zero_based=zero_based)
    read_X, read_y = read(file.getvalue(), n_features=61, zero_based=zero_based)
    assert same(read_X, X)
    assert np.array_equal(read_y, y)


def test_real_data_both_ways(tmp_path):
    X, y, _, _ = load_covtype_sample(classes=7)
    X, y = X[:500], y[:500]
    write_svmlight(tmp_path / "ours", X, y)
    dump_svmlight_file(X, y, str(tmp_path / "theirs"), zero_based=False)
    for name in ("ours", "theirs"):
        read_X, read_y = read_svmlight(tmp_path / name, dtype=np.float32)
        assert read_X.dtype == np.float32
        assert np.array_equal(read_X.toarray(), X)
        assert np.array_equal(read_y, y)
        assert read_y.dtype == np.int64
    assert same(load_svmlight_file(str(tmp_path / "ours"))[0], read_svmlight(tmp_path / "ours")[0])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_text_is_unpacked_whatever_it_is_called(pack, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(pack(b"1 1:2\n-1 2:3\n"))
    X, y = read_svmlight(path)
    assert X.toarray().tolist() == [[2, 0], [0, 3]]
    assert y.tolist() == [1, -1]


@pytest.mark.parametrize(("ending", "opener"), [("gz", gzip.open), ("bz2", bz2.open), ("xz", lzma.open)])
def test_the_ending_says_how_to_compress(ending, opener, tmp_path):
    path = tmp_path / f"data.svm.{ending}"
    write_svmlight(path, np.eye(2), [1, 0])
    with opener(path) as file:
        assert file.read() == b"1 1:1.0\n0 2:1.0\n"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: content[:12] + b"x" * 50])
def test_a_damaged_archive_says_so(pack, damage, tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(damage(pack(b"1 1:2\n" * 10_000)))
    with pytest.raises(DataError, match=r"data\.gz: the compressed file is damaged or incomplete"):
        read_svmlight(path)


def test_pieces_of_a_file_end_where_lines_end():
    text = b"".join(b"%d 1:%d\n" % (i, i * i) for i in range(1000))
    pieces = list(whole_lines(io.BytesIO(text), "name", chunk=100))
    assert len(pieces) > 50
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == text
    assert list(whole_lines(io.BytesIO(b"no line ends"), "name", chunk=5)) == [b"no line ends"]


def test_a_file_of_several_pieces(monkeypatch):
    from parablock.datasets import svmlight

    text = "".join(f"{i % 3} 1:{i} 3:0.1234567890123456789{i}\n" for i in range(1000))
    whole = read(text)
    monkeypatch.setattr(svmlight, "whole_lines", lambda file, name, longest: whole_lines(file, name, chunk=300))
    X, y = read(text)
    assert same(X, whole[0])
    assert np.array_equal(y, whole[1])
    with pytest.raises(DataError, match="line 1001: 'x' is no label"):
        read(text + "x 1:2")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("x 1:2", "'x' is no label; a line is 'label index:value index:value ...' with a number as label"),
        ("1:2 2:3", "'1:2' is no label"),
        ("1,2 3:4", "'1,2' is no label"),
        ("nan 1:2", "'nan' is no label"),
        ("1 2", "'2' is not of the form index:value"),
        ("1 2 3:4", "'2' is not of the form index:value"),
        ("1 a:3", "'a:3' is not of the form index:value"),
        ("1 -1:3", "'-1:3' is not of the form index:value"),
        ("1 1.5:3", "'1.5:3' is not of the form index:value"),
        ("1 1:3 qid:4", "'qid:4' is not of the form index:value"),
        ("1 1:", "'' is no finite number"),
        ("1 1: 2", "'' is no finite number"),
        ("1 1:x", "'x' is no finite number"),
        ("1 1:2x", "'2x' is no finite number"),
        ("1 1:2:3", "'2:3' is no finite number"),
        ("1 1:NaN", "'NaN' is no finite number"),
        ("1 1:inf", "'inf' is no finite number"),
        ("1 1:0x1p3", "'0x1p3' is no finite number"),
        ("1 1:1_0", "'1_0' is no finite number"),
        ("1 1:1e999", "'1e999' is too large for a number"),
        ("1e999 1:1", "'1e999' is too large for a number"),
        ("1 3:1 2:1", "index 2 comes after index 3, but indices must ascend"),
        ("1 3:1 3:1", "index 3 comes after index 3, but indices must ascend"),
        ("1 0:1", "index 0, but indices count from 1"),
        ("1 99999999999999999999:1", "index 99999999999999999999 is too large: the largest that is expected is"),
        ("1 1:" + "7x" * 100, r"'7x7x[7x]{36}...' is no finite number"),
    ],
)
def test_a_malformed_line_is_named(line, complaint):
    exact = complaint if complaint.endswith("is no finite number") and "[" in complaint else re.escape(complaint)
    with pytest.raises(DataError, match=rf"^standard input, line 3: {exact}"):
        read(f"1 1:1\n# comment\n{line}\n2 1:1\n")


def test_the_file_is_named(tmp_path):
    path = tmp_path / "bad.svm"
    path.write_text("1 x")
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}, line 1: 'x' is not of the form"):
        read_svmlight(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_no_rows_at_all(text):
    with pytest.raises(DataError, match="there is no row in it"):
        read(text)


def test_the_number_of_features_may_be_larger_than_the_file_shows_but_not_smaller():
    assert read("1 2:5", n_features=4)[0].toarray().tolist() == [[0, 5, 0, 0]]
    with pytest.raises(DataError, match="line 1: index 5 is too large: the largest that is expected is 4"):
        read("1 2:5 5:1", n_features=4)
    assert read("1 3:5", n_features=4, zero_based=True)[0].toarray().tolist() == [[0, 0, 0, 5]]
    with pytest.raises(DataError, match="index 4 is too large: the largest that is expected is 3"):
        read("1 4:5", n_features=4, zero_based=True)


def test_rows_without_features():
    X, y = read("1\n2\n", n_features=3)
    assert X.toarray().tolist() == [[0, 0, 0]] * 2
    assert y.tolist() == [1, 2]
    assert read("1\n")[0].shape == (1, 0)


@pytest.mark.parametrize(
    ("labels", "kind"), [("1 -1", np.int64), ("1.0 3", np.int64), ("0.5 1", np.float64), ("1e17 1", np.float64)]
)
def test_labels_are_whole_numbers_where_all_are(labels, kind):
    _, y = read("\n".join(labels.split()))
    assert y.dtype == kind
    assert y.tolist() == [float(label) for label in labels.split()]


@pytest.mark.parametrize(
    ("y", "complaint"),
    [
        (["a", "b"], "'a' is none. Number the labels, or write .npz"),
        ([1], r"shape \(1,\) for 2 rows"),
        ([[1], [2]], "shape"),
    ],
)
def test_labels_that_cannot_be_written(y, complaint, tmp_path):
    with pytest.raises(DataError, match=complaint):
        write_svmlight(tmp_path / "file", np.eye(2), y)
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite_are_not_written(tmp_path):
    with pytest.raises(DataError, match="row 2 has a feature that is not"):
        write_svmlight(tmp_path / "file", np.array([[1.0, 2.0], [0.0, np.nan], [np.inf, 0.0]]), [1, 2, 3])
    with pytest.raises(DataError, match="finite numbers as labels"):
        write_svmlight(tmp_path / "file", np.eye(2), [1, np.inf])
    assert not list(tmp_path.iterdir())


def test_entries_that_are_there_twice_are_added_up():
    X = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    file = io.BytesIO()
    write_svmlight(file, X, [1])
    assert file.getvalue() == b"1 1:2.0 2:4.0\n"


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    class Failing:
        shape = (2, 2)

        def __getitem__(self, rows):
            raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        write_svmlight(path, Failing(), [1, 2])
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
