"""Rows on their way to the card, from wherever they are."""

# ruff: noqa: E402
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="rows become torch tensors")

from parablock.devices.cuda import sources, staging
from parablock.devices.cuda.sources import Source, source_of
from parablock.devices.cuda.staging import staged
from parablock.mapped import MappedRows
from parablock.tensors import TensorRows

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
X = np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32)


def mapped(tmp_path, array=X):
    np.save(tmp_path / "X.npy", array)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def read(source, most=None):
    out = torch.full(source.shape, torch.nan, device=DEVICE)
    for places, part in source.parts(most):
        assert part.dtype == torch.float32
        assert part.device == DEVICE
        assert most is None or len(part) <= most
        out[places] = part
    return out.cpu().numpy()


FORMS = {
    "array": lambda tmp_path: X,
    "float64": lambda tmp_path: X.astype(np.float64),
    "read only": lambda tmp_path: np.frombuffer(X.tobytes(), dtype=np.float32).reshape(X.shape),
    "backwards": lambda tmp_path: X[::-1].copy()[::-1],
    "fortran": lambda tmp_path: np.asfortranarray(X),
    "every second": lambda tmp_path: np.repeat(X, 2, axis=0)[::2],
    "file": mapped,
    "rows of a file": lambda tmp_path: MappedRows(mapped(tmp_path, X[::-1].copy()), np.arange(23)[::-1]),
    "tensor": lambda tmp_path: TensorRows(torch.tensor(X, device=DEVICE)),
    "CSR": lambda tmp_path: sp.csr_matrix(X),
    "CSR of a file": lambda tmp_path: MappedRows(sp.csr_matrix(X), np.arange(23)),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("most", [None, 5])
def test_every_form_is_read(tmp_path, name, most):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read(source_of(FORMS[name](tmp_path), DEVICE), most), X)


@pytest.mark.parametrize("name", ["array", "file", "rows of a file", "tensor"])
def test_rows_can_be_taken_again_and_again_and_centred(tmp_path, name):
    source = source_of(FORMS[name](tmp_path), DEVICE).centred(np.arange(4.0))
    rows = np.array([20, 3, 3, 11, 4, 5, 6])
    for index in (rows, torch.tensor(rows, device=DEVICE)):
        some = source.take(index)
        np.testing.assert_array_equal(read(some, 2), X[rows] - np.arange(4, dtype=np.float32))
    again = some.take(slice(1, 5)).take(np.array([2, 0]))
    np.testing.assert_array_equal(again.values().cpu().numpy(), X[rows[[3, 1]]] - np.arange(4, dtype=np.float32))
    brought = some.brought()
    assert brought.on_card
    np.testing.assert_array_equal(read(brought), read(some))
    assert len(source.take(rows[:0])) == 0
    assert list(source.take(rows[:0]).parts()) == []


def test_files_are_read_from_their_beginning_to_their_end(monkeypatch):
    seen = []

    def watched(rows, stretches, device):
        seen.extend(stretches)
        return staged(rows, stretches, device)

    monkeypatch.setattr(sources, "staged", watched)
    order = np.array([9, 0, 1, 2, 22, 10, 11, 5])
    np.testing.assert_array_equal(read(Source(torch.tensor(X), DEVICE, order), 3), X[order])
    assert seen[0] == slice(0, 3)  # one after the other: no numbers are needed
    assert [stretch.tolist() for stretch in seen[1:]] == [[5, 9, 10], [11, 22]]


def test_a_tensor_of_the_card_is_read_where_it_is(monkeypatch):
    monkeypatch.setattr(sources, "staged", None)  # nothing travels
    tensor = torch.tensor(X, device=DEVICE)
    source = source_of(TensorRows(tensor), DEVICE)
    assert source.brought() is source
    assert source.rows.data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(read(source.take(np.array([4, 2]))), X[[4, 2]])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool", "int16", "uint16", "int64", "float16", "bfloat16"])
def test_small_types_stay_small_until_they_are_read(dtype):
    whole = torch.arange(24).reshape(6, 4).to(getattr(torch, dtype))
    source = source_of(TensorRows(whole.to(DEVICE)), DEVICE)
    assert source.nbytes == 24 * whole.element_size()
    np.testing.assert_array_equal(read(source.take(np.array([5, 0]))), whole.float().numpy()[[5, 0]])
    assert source.is_whole()


def test_whole_numbers():
    assert source_of(np.rint(X), DEVICE).is_whole()
    assert source_of(np.rint(X), DEVICE).centred(np.full(4, 0.5)).is_whole()  # before anything is subtracted
    assert not source_of(X, DEVICE).is_whole()
    assert source_of(sp.csr_matrix(np.rint(X)), DEVICE).is_whole()
    assert not source_of(sp.csr_matrix(X), DEVICE).is_whole()


def test_csr_rows_have_no_centre():
    source = source_of(sp.csr_matrix(X), DEVICE)
    assert source.centred(None) is source
    with pytest.raises(ValueError, match="CSR rows cannot be centred"):
        source.centred(np.zeros(4))


def test_buffers_take_turns():
    # On a card: two buffers, more stretches than that, and work on each of them that outlasts its copy.
    rows = torch.arange(4000.0).reshape(1000, 4)
    stretches = [slice(start, start + 100) for start in range(0, 900, 100)] + [torch.tensor([7, 3, 999])]
    sums = []
    for part in staged(rows, stretches, DEVICE):
        busy = part.double()
        for _ in range(20):
            busy = busy + 0.0 * busy.sort(dim=0).values
        sums.append(busy.sum())
    assert [float(total) for total in sums] == [float(rows[stretch].sum()) for stretch in stretches]


def test_a_stream_can_be_left_early():
    rows = torch.arange(400.0).reshape(100, 4)
    stream = staged(rows, [slice(0, 50), slice(50, 100)], DEVICE)
    first = next(stream).clone()
    stream.close()
    assert torch.equal(first.cpu(), rows[:50])
    assert list(staged(rows, [], DEVICE)) == []


@pytest.mark.parametrize("stretch", [slice(2, 5), torch.tensor([22, 0, 7])])
@pytest.mark.parametrize("rows", [X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]])
def test_buffers_are_filled_with_the_stretch(stretch, rows):
    out = torch.empty((3, 4))
    staging._gather(torch.from_numpy(rows), stretch, out)
    np.testing.assert_array_equal(out.numpy(), X[stretch.numpy() if isinstance(stretch, torch.Tensor) else stretch])
