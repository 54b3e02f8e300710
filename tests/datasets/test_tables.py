"""CSV text and Parquet files: features, targets, names, and what is said of cells that are no numbers."""

import csv
import gzip
import io
import re
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parablock.datasets import DataError, csv_text, read_csv, read_parquet
from parablock.datasets.streams import whole_lines

FLOWERS = b"length,width,kind,place\n5.1,3.5,iris,1\n6,2.9,rose,2\n"


def read(text, **options):
    return read_csv(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


finite = st.floats(allow_nan=False, allow_infinity=False)
labels = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), min_size=1).filter(
    lambda text: text == text.strip() and not re.fullmatch(r"[\d.eE+-]*|nan|inf(inity)?", text.lower())
)


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.tuples(st.lists(finite, min_size=width, max_size=width), labels), min_size=1, max_size=8
        )
    ),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_pythons_csv_module_writes_is_read_back(rows, delimiter, header, end):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC)
    width = len(rows[0][0])
    names = [f"feature {i}" for i in range(width)]
    if header:
        writer.writerow([*names, "label"])
    for values, label in rows:
        writer.writerow([*values, label])
    data = read(file.getvalue(), target="label" if header else -1, header=header)
    assert np.array_equal(data.X, np.array([values for values, _ in rows]))
    assert data.y.tolist() == [label for _, label in rows]
    assert data.names == (names if header else None)


def test_reads_what_pandas_writes():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 5)) * 10.0 ** rng.integers(-20, 20, size=(300, 5))
    frame = pd.DataFrame(values, columns=list("abcde"))
    data = read(frame.to_csv(index=False), target="c")
    assert np.array_equal(data.X, frame[list("abde")].to_numpy())
    assert np.array_equal(data.y, frame["c"].to_numpy())
    assert data.names == list("abde")


@pytest.mark.parametrize(
    ("target", "y"),
    [("kind", ["iris", "rose"]), ("3", ["iris", "rose"]), (3, ["iris", "rose"]), (-2, ["iris", "rose"])],
)
def test_the_target_by_name_or_number(target, y):
    data = read(FLOWERS, target=target)
    assert data.y.tolist() == y
    assert data.X.tolist() == [[5.1, 3.5, 1], [6, 2.9, 2]]
    assert data.names == ["length", "width", "place"]


def test_the_first_line_is_what_it_is_said_to_be():
    text = "0,1,2\n3,4,5\n"
    assert read(text, target="2", header=True).y.tolist() == [5]
    assert read(text, target="2", header=False).y.tolist() == [1, 4]
    assert read(text, target=2).y.tolist() == [1, 4]  # no text, and so no name


def test_names_that_are_numbers_are_found_in_any_order():
    data = read("1,2,0\n0.3,7,0.5\n0.9,8,0.1\n", features=["0", "1"])
    assert data.X.tolist() == [[0.5, 0.3], [0.1, 0.9]]


def test_columns_to_leave_out_and_to_take():
    data = read(FLOWERS, target="place", drop=["kind", 2])
    assert data.X.tolist() == [[5.1], [6]]
    assert data.y.tolist() == [1, 2]
    data = read(FLOWERS, features=["width", "length"])
    assert data.X.tolist() == [[3.5, 5.1], [2.9, 6]]
    assert data.names == ["width", "length"]
    assert data.y is None


def test_columns_that_are_left_out_may_hold_anything():
    data = read('a,text,b\n1,"Smith, ""Jo""",2\n3,,4\n', drop=["text"])
    assert data.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ("a,b\n1,2\n", {}, ["a", "b"]),
        ("1,2\n3,4\n", {}, None),
        ("5.1,3.5,iris\n6,2.9,rose\n", {"target": -1}, None),
        ("a,b,kind\n6,2.9,rose\n", {"target": -1}, ["a", "b"]),
        ("x,5.1,iris\ny,6,rose\n", {"target": -1, "drop": [1]}, None),
        ("2019,2020\n1,2\n", {"header": True}, ["2019", "2020"]),
        ("\ufeffa,b\n1,2\n", {}, ["a", "b"]),
        ("\n\na,b\n\n1,2\n\n", {}, ["a", "b"]),
        ('"a, or b",c\n1,2\n', {}, ["a, or b", "c"]),
        ("1,0.5,0.3\n-1,0.1,0.9\n", {"target": "1"}, None),  # a number that is asked for is no name for being there
        ("3,3.5,0\n4,3.0,1\n6,3,0\n", {"target": "3"}, None),
        ("5,5,3\n1,2,3\n", {"target": "3"}, None),  # names are different
        ("x,3.5,2\ny,3.0,1\n", {"target": "3", "drop": ["1"]}, None),
        ("id,2019,2020\n1,2,3\n", {"target": "2020"}, ["id", "2019"]),
        ("1,0\n0.3,0.5\n", {"features": ["1", "0"]}, ["1", "0"]),
        ("1,0,5\n-1,1,3\n", {"target": "1", "features": ["a", "b"]}, None),
        (",a,b\n0,5.1,3.5\n", {"features": ["a", "b"]}, ["a", "b"]),  # as pandas writes a table with its index
    ],
)
def test_whether_there_is_a_header(text, options, names):
    data = read(text, **options)
    assert data.names == names
    assert data.X.shape[1] == 2 - (1 if "drop" in options else 0)
    assert len(data.X) == (1 if names else text.count("\n"))


@pytest.mark.parametrize(
    ("cells", "y"),
    [
        ("1 2", [1, 2]), ("1.0 2", [1, 2]), ("0.5 2", [0.5, 2]), ("a 2", ["a", "2"]), ("1_0 10", ["1_0", "10"]),
        ("007 7", ["007", "7"]), ("007 8", [7, 8]), ("1.0 1", [1, 1]), ("-0 0", [0, 0]), ("+1 -1", [1, -1]),
        ("9007199254740993 9007199254740992", [2**53 + 1, 2**53]),
        ("9007199254740993 9007199254740992 0.5", ["9007199254740993", "9007199254740992", "0.5"]),
        ("18446744073709551616 18446744073709551617", ["18446744073709551616", "18446744073709551617"]),
        ("é ß", ["é", "ß"]), ('"say" "yes"', ["say", "yes"]), ('"say ""hi""" no', ['say "hi"', "no"]),
    ],
)  # fmt: skip
def test_targets_are_numbers_where_all_are(cells, y):
    lines = re.findall(r'"(?:[^"]|"")*"|\S+', cells)
    data = read("".join(f"{cell},7\n" for cell in lines), target=1)
    assert data.y.tolist() == y
    assert data.y.dtype.kind == ("U" if isinstance(y[0], str) else "i" if isinstance(y[0], int) else "f")


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("a,b\n1,2\n3,x\n", {}, "line 3, column 2 ('b'): 'x' is no finite number; text can be the target"),
        ("1,2\n3,x\n", {}, "line 2, column 2: 'x' is no finite number"),
        ("1,2\n\n3,nan\n", {}, "line 3, column 2: 'nan' is no finite number"),
        ("1,2\n3,1e999\n", {}, "line 2: '1e999' is too large for a number"),
        ("1,2\n3,\n", {}, "line 2, column 2: the cell is empty; fill missing values or leave them out"),
        ("1,2\n3,", {}, "line 2, column 2: the cell is empty"),
        ("1,2\n,3\n", {}, "line 2, column 1: the cell is empty"),
        ("1,2\n,3\n", {"target": 1}, "line 2, column 1: the cell is empty"),
        ("1,2\n3\n", {}, "line 2: there are 1 columns instead of the 2 of the first line"),
        ("1,2\n3,4,5\n", {}, "line 2: there are more columns instead of the 2 of the first line"),
        ("1,2\n3,4,", {}, "line 2: there are more columns instead of the 2 of the first line"),
        ('1,2\n3,"4\n', {}, "line 2, column 2: '\"4' is not quoted well; a quoted cell ends on its line"),
        ('1,2\n3,"4"5\n', {}, "line 2, column 2: '\"4\"5' is not quoted well"),
        ("id,2019\n1,2\n", {}, "line 1, column 1: 'id' is no finite number"),
        ("a,b\n1,2\n", {"target": "c"}, "no column is called 'c'; its columns are 'a', 'b'"),
        ("1,2\n1,2\n", {"target": "c"}, "no column is called 'c'; it has no header"),
        ("a,b\n1,2\n", {"target": 3}, "column 3 was named as the target; there are the columns 1 to 2"),
        ("a,b\n1,2\n", {"target": 0}, "column 0 was named as the target; there are the columns 1 to 2"),
        ("a,b\n1,2\n", {"target": "a", "drop": ["a"]}, "the target 'a' is among the columns to leave out"),
        ("a,a\n1,2\n", {"target": "a"}, "several columns are called 'a'"),
        ("a,b\n1,2\n", {"features": ["b", "c"]}, "there is no column 'c'; its columns are 'a', 'b'"),
        ("a\n1\n", {"target": "a"}, "no column is left for the features"),
        ("1,nan\n", {"target": 2}, "the target of row 1 is nan, which is no finite number"),
        ("0,1,2\n3,4,5\n", {"target": "2"}, "2 can be a column's number, or its name if the first line is a header"),
        ("1,,0.3\n1,2,3\n", {"target": "1"}, "line 1, column 2: the cell is empty"),
        ("a,b\r1,2\r", {}, "line 1: its lines end with CR alone; save it with LF or CRLF"),
        (f"{'a' * 200_000},b\n1,2\n", {}, "line 1: field larger than field limit"),
        ("", {}, "there is no row in it"),
        ("a,b\n", {}, "there is no row in it"),
        (b"a,\xff\n1,2\n", {}, "it is no UTF-8 text"),
        (b"1,\xff\n1,2\n", {"target": 2, "header": False}, "it is no UTF-8 text"),
        (b"a,b\n1,\xff\n", {"target": 2}, "the labels are no UTF-8 text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text, options, complaint):
    with pytest.raises(DataError, match=rf"^standard input(, |: ){re.escape(complaint)}"):
        read(text, **options)


def test_a_table_of_several_pieces(monkeypatch):
    text = "a,b,label\n" + "".join(f"{i},{i / 7},{'x' * (1 + i % 9)}\n" for i in range(500))
    whole = read(text, target="label")
    monkeypatch.setattr(csv_text, "whole_lines", lambda file, name, longest: whole_lines(file, name, chunk=200))
    data = read(text, target="label")
    assert np.array_equal(data.X, whole.X)
    assert data.y.tolist() == whole.y.tolist() == ["x" * (1 + i % 9) for i in range(500)]
    with pytest.raises(DataError, match="line 502, column 1 "):
        read(text + "x,1,1\n", target="label")


def test_compressed_text(tmp_path):
    path = tmp_path / "flowers.csv.gz"
    path.write_bytes(gzip.compress(FLOWERS))
    assert read_csv(path, target="kind").y.tolist() == ["iris", "rose"]


# --------------------------------------------------------------------------------------------------------- Parquet


@pytest.fixture
def parquet(tmp_path):
    def write(**columns):
        path = tmp_path / "table.parquet"
        pd.DataFrame(columns).to_parquet(path)
        return path

    return write


def test_a_parquet_file(parquet):
    path = parquet(a=[1, 2], b=[0.5, 1.5], flag=[True, False], kind=["iris", "rose"], name=["x", None])
    data = read_parquet(path, target="kind", drop=["name"])
    assert data.X.tolist() == [[1, 0.5, 1], [2, 1.5, 0]]
    assert data.X.dtype == np.float64
    assert data.y.tolist() == ["iris", "rose"]
    assert data.names == ["a", "b", "flag"]
    with open(path, "rb") as file:
        assert read_parquet(file, features=["b", "a"], drop=["name"]).X.tolist() == [[0.5, 1], [1.5, 2]]


def test_small_types_stay_small_and_categories_are_text(parquet):
    path = parquet(a=np.array([1, 2], np.float32), b=np.array([3, 4], np.int8), kind=pd.Categorical(["x", "y"]))
    data = read_parquet(path, target=-1)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"a": [1, 2], "b": ["x", "y"]}, "the column 'b' holds (large_)?string, not numbers; text can be the target"),
        ({"a": [1.0, None]}, "row 2, column 'a': the cell is empty"),
        ({"a": np.array([1.0, np.inf])}, "row 2, column 'a': inf is no finite number"),
        ({"a": []}, "there is no row in it"),
    ],
)
def test_what_a_parquet_file_must_not_hold(parquet, columns, complaint):
    with pytest.raises(DataError, match=complaint):
        read_parquet(parquet(**columns))


@pytest.mark.parametrize(
    ("values", "y"),
    [
        (["007", "7"], ["007", "7"]),
        (["1", "2"], ["1", "2"]),
        ([2**53 + 1, 2**53], [2**53 + 1, 2**53]),
        (np.array([2**63 + 1, 2**63], np.uint64), [2**63 + 1, 2**63]),
        ([1.0, 2.0], [1, 2]),
        ([0.5, 2.0], [0.5, 2.0]),
        ([True, False], [1, 0]),
        ([Decimal("7.00"), Decimal("8.00")], [7, 8]),
        ([b"a", b"b"], ["a", "b"]),
        (pd.Categorical([2**53 + 1, 2**53]), [2**53 + 1, 2**53]),
    ],
)
def test_a_target_keeps_its_type(parquet, values, y):
    found = read_parquet(parquet(a=[1.0, 2.0], y=values), target="y").y
    assert found.tolist() == y
    assert [type(label) for label in found.tolist()] == [type(label) for label in y]


@pytest.mark.parametrize("values", [[date(2026, 1, 1)] * 2, pd.to_datetime(["2026-01-01"] * 2), [[1], [2]]])
def test_a_target_that_is_neither_number_nor_text(parquet, values):
    with pytest.raises(DataError, match=r"the column 'y' holds .*; a target is numbers, truth values or text"):
        read_parquet(parquet(a=[1.0, 2.0], y=values), target="y")


def test_a_target_without_a_value(parquet):
    with pytest.raises(DataError, match="row 1, column 'y': the cell is empty"):
        read_parquet(parquet(a=[1.0, 2.0], y=[None, "x"]), target="y")


def test_what_is_no_parquet_file(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"something else altogether")
    with pytest.raises(DataError, match="it is no Parquet file that can be read"):
        read_parquet(path)
