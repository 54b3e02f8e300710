"""Dataframes and arrays of anything become numbers, or are refused by name."""

import numpy as np
import pytest

from parablock.tables.reading import Reader, array_columns, frame_columns, is_frame

pd = pytest.importorskip("pandas")


def table():
    return pd.DataFrame(
        {
            "age": [30, 40, None, 50],
            "count": pd.array([1, None, 3, 4], dtype="Int64"),
            "colour": ["red", "blue", None, "red"],
            "size": pd.Categorical(["s", "m", "s", "l"]),
            "member": [True, False, True, True],
            "perhaps": pd.array([True, None, False, True], dtype="boolean"),
        }
    )


def read(frame):
    columns, names, free = frame_columns(frame, warn=True)
    reader = Reader.learned(columns, names, free)
    return reader, reader.read(columns)


def test_columns_of_a_dataframe():
    reader, values = read(table())
    assert reader.n_levels == [0, 0, 3, 3, 0, 0]
    expected = [[30, 1, 1, 2, 1, 1], [40, np.nan, 0, 1, 0, np.nan], [np.nan, 3, 2, 2, 1, 0], [50, 4, 1, 0, 1, 1]]
    assert np.array_equal(values, expected, equal_nan=True)


def test_arrow_tables_are_the_same():
    pa = pytest.importorskip("pyarrow")
    frame = table()
    arrow = pa.table({name: pa.array(frame[name].astype(object).where(frame[name].notna(), None)) for name in frame})
    assert is_frame(arrow)
    reader, values = read(arrow)
    assert reader.n_levels == [0, 0, 3, 3, 0, 0]
    assert np.array_equal(values, read(frame)[1], equal_nan=True)


def test_arrays_of_objects_are_columns_too():
    X = np.array([[1, "x", True], [None, "y", False], [2.5, np.nan, None]], dtype=object)
    reader = Reader.learned(*array_columns(X))
    assert reader.n_levels == [0, 3, 0]
    expected = [[1, 0, 1], [np.nan, 1, 0], [2.5, 2, np.nan]]
    assert np.array_equal(reader.read(array_columns(X)[0]), expected, equal_nan=True)


def test_unknown_levels_and_missing_values_that_were_not_there_are_no_level():
    reader, _ = read(pd.DataFrame({"a": ["x", "y", "x"]}))
    columns, _, _ = frame_columns(pd.DataFrame({"a": ["y", "new", None]}), warn=False)
    assert reader.read(columns)[:, 0].tolist() == [1, -1, -1]


def test_dates_are_days_with_a_warning():
    frame = pd.DataFrame({"day": pd.to_datetime(["1970-01-02 00:00", None, "1970-01-03 12:00"])})
    with pytest.warns(UserWarning, match="'day' holds dates"):
        _, values = read(frame)
    assert np.array_equal(values[:, 0], [1, np.nan, 2.5], equal_nan=True)


def test_durations_are_days_with_a_warning():
    with pytest.warns(UserWarning, match="'t' holds durations"):
        _, values = read(pd.DataFrame({"t": pd.to_timedelta([1, 2, None], unit="h")}))
    assert np.allclose(values[:, 0], [1 / 24, 2 / 24, np.nan], equal_nan=True)


def test_free_text_is_refused_by_name():
    frame = pd.DataFrame({"note": [f"note {i}" for i in range(40)]})
    with pytest.raises(ValueError, match="'note' holds free text: 40 different values in 40 rows"):
        read(frame)
    assert read(frame.astype("category"))[0].n_levels == [40]  # somebody says that it is one


def test_what_is_no_table_is_refused_by_name():
    with pytest.raises(TypeError, match="'a' holds dict"):
        read(pd.DataFrame({"a": [{}, {}]}))
    with pytest.raises(ValueError, match="infinity in column 'a', row 1"):
        read(pd.DataFrame({"a": [1.0, np.inf]}))


def test_a_column_keeps_its_kind():
    reader, _ = read(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    with pytest.raises(ValueError, match="'a' held numbers in training, and holds text such as 'z'"):
        reader.read(frame_columns(pd.DataFrame({"a": ["z"], "b": ["x"]}), warn=False)[0])
    with pytest.raises(ValueError, match="'b' held categories in training, and holds numbers"):
        reader.read(frame_columns(pd.DataFrame({"a": [1], "b": [2]}), warn=False)[0])


def test_tiny_and_huge_columns_keep_their_digits():
    X = np.array([[1e-310, 1e305], [3e-310, -1e308], [2e-310, 0.0]])
    values = Reader.learned(*array_columns(X)).read(array_columns(X)[0])
    assert np.allclose(values[:, 0] / values[0, 0], [1, 3, 2])
    assert np.abs(values).max() < 1
    assert np.allclose(values[:, 1] / values[0, 1], [1, -1000, 0])
