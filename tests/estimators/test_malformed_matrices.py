"""Sparse matrices whose arrays contradict each other, and masked arrays: refused before compiled code sees them, which
would read and write elsewhere in memory."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from parablock import KernelRidge, KernelSVC, KernelSVCCV, solve
from parablock.datasets import Data, save_csr, write_data, write_svmlight
from parablock.kernels import RBF
from parablock.losses import Hinge
from parablock.models import from_libsvm, to_libsvm

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(60, 6)) * (RNG.random((60, 6)) < 0.6)
Y = (DENSE[:, 0] > 0).astype(int)
FAR = 10**8  # beyond whatever is mapped


def indptr_far(X):
    X.indptr[3] = FAR


def indptr_falls(X):
    X.indptr[2] = X.indptr[1] - 1


def indptr_does_not_begin_at_zero(X):
    X.indptr[0] = 1


def indptr_negative(X):
    X.indptr = -X.indptr  # which SciPy's own check does not see


def last_far(X):
    X.indptr[-1] = FAR


def indptr_short(X):
    X.indptr = X.indptr[:4].copy()


def indptr_is_no_array_of_whole_numbers(X):
    X.indptr = X.indptr.astype(float)


def index_far(X):
    X.indices[2] = FAR


def index_just_beyond(X):
    X.indices[2] = 60


def index_negative(X):
    X.indices[2] = -1


def values_missing(X):
    X.data = X.data[:-1].copy()


def values_of_two_dimensions(X):
    X.data = X.data[:, None]


COMPRESSED = [
    indptr_far, indptr_falls, indptr_negative, indptr_does_not_begin_at_zero, last_far, indptr_short,
    indptr_is_no_array_of_whole_numbers, index_far, index_just_beyond, index_negative, values_missing,
    values_of_two_dimensions,
]  # fmt: skip


def row_far(X):
    X.row[1] = FAR


def column_negative(X):
    X.col[1] = -FAR


def columns_missing(X):
    X.coords = (X.row, X.col[:-1])


def list_far(X):
    X.rows[2], X.data[2] = [0, FAR], [1.0, 2.0]


def list_short(X):
    X.data[2] = X.data[2][:-1]


def key_far(X):
    X._dict[(FAR, FAR)] = 1.0


def cases():
    for change in COMPRESSED:
        yield "csr", change
        yield "csc", change
        yield "bsr", change
    for change in (row_far, column_negative, columns_missing):
        yield "coo", change
    for change in (list_far, list_short):
        yield "lil", change
    yield "dok", key_far


def malformed(format, change, kind=sp.csr_matrix):
    X = kind(DENSE).asformat(format, copy=True)
    change(X)
    return X


@pytest.mark.parametrize(("format", "change"), list(cases()))
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array], ids=["matrix", "array"])
def test_every_contradiction_is_refused_in_fit_and_predict(format, change, kind):
    X = malformed(format, change, kind)
    with pytest.raises(ValueError, match=rf"X is no valid sparse matrix \({format}\): .*Build it anew"):
        KernelSVC(gamma=1.0).fit(X, Y)
    for rows in (DENSE, sp.csr_matrix(DENSE)):
        model = KernelRidge(gamma=1.0).fit(rows, Y)
        with pytest.raises(ValueError, match="X is no valid sparse matrix"):
            model.predict(X)


def test_all_that_take_rows_refuse_it(tmp_path):
    X = malformed("csr", index_far)
    good = KernelSVC(gamma=1.0).fit(DENSE, Y)
    to_libsvm(good, tmp_path / "m.model")
    uses = [
        lambda: KernelSVCCV(Cs=[1.0], gammas=[1.0]).fit(X, Y),
        lambda: KernelSVC.path(X, Y, Cs=[1.0], gamma=1.0),
        lambda: solve(X, 2.0 * Y - 1.0, Hinge(), RBF(1.0)),
        lambda: good.decision_function(X),
        lambda: good.score(X, Y),
        lambda: good.certify(X, Y),
        lambda: from_libsvm(tmp_path / "m.model").predict(X),
        lambda: write_svmlight(io.BytesIO(), X, Y),
        lambda: write_data(tmp_path / "a.npz", Data(X, Y)),
        lambda: save_csr(tmp_path / "rows", X),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="is no valid sparse matrix"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == ["m.model"]


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_good_matrices_of_every_format_are_taken(format):
    expected = KernelSVC(gamma=1.0, tol=1e-6).fit(DENSE, Y).decision_function(DENSE)
    for kind in (sp.csr_matrix, sp.csr_array):
        X = kind(DENSE).asformat(format)
        model = KernelSVC(gamma=1.0, tol=1e-6).fit(X, Y)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-4)


def test_room_for_more_entries_is_no_contradiction():
    """SciPy leaves some; what is in it means nothing."""
    X = sp.csr_matrix(DENSE)
    roomy = sp.csr_matrix(DENSE)
    roomy.data = np.append(X.data, [np.nan, 1.0])
    roomy.indices = np.append(X.indices, [FAR, -1]).astype(X.indices.dtype)
    model = KernelSVC(gamma=1.0, tol=1e-6).fit(roomy, Y)
    expected = KernelSVC(gamma=1.0, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(roomy), expected.decision_function(X), atol=1e-4)


def test_masked_arrays_that_hide_something_are_refused():
    """NumPy would give what is behind the mask: often a number that stands for a missing one."""
    hidden = np.ma.masked_array(DENSE, mask=np.zeros(DENSE.shape, dtype=bool))
    y = np.ma.masked_array(Y, mask=np.zeros(60, dtype=bool))
    model = KernelSVC(gamma=1.0).fit(hidden, y)  # which hide nothing
    assert np.array_equal(model.predict(hidden), KernelSVC(gamma=1.0).fit(DENSE, Y).predict(DENSE))
    assert model.score(hidden, y) == model.score(DENSE, Y)
    hidden[3, 2], y[4] = np.ma.masked, np.ma.masked
    weight = np.ma.masked_equal(np.arange(60.0), 7)
    uses = {
        "X": [
            lambda: KernelSVC().fit(hidden, Y), lambda: model.predict(hidden), lambda: model.score(hidden, Y),
            lambda: KernelSVCCV(Cs=[1.0]).fit(hidden, Y), lambda: KernelSVC.path(hidden, Y),
            lambda: model.certify(hidden, Y),
            lambda: solve(hidden, 2.0 * Y - 1.0, Hinge(), RBF(1.0)),
        ],
        "y": [
            lambda: KernelSVC().fit(DENSE, y), lambda: KernelRidge().fit(DENSE, y), lambda: model.score(DENSE, y),
            lambda: KernelSVCCV(Cs=[1.0]).fit(DENSE, y), lambda: KernelSVC.path(DENSE, y),
            lambda: model.certify(DENSE, y),
        ],
        "sample_weight": [
            lambda: KernelSVC().fit(DENSE, Y, sample_weight=weight), lambda: model.score(DENSE, Y, weight),
        ],
    }  # fmt: skip
    for name, some in uses.items():
        for use in some:
            with pytest.raises(ValueError, match=f"{name} is a masked array, and 1 of its .* values are masked"):
                use()
